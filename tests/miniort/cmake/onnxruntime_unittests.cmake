# The test executables, with GoogleTest where the system has it, else with a small runner that speaks its protocol.

if(NOT MINIORT_GTEST MATCHES "^(AUTO|SYSTEM|OWN)$")
  message(FATAL_ERROR "MINIORT_GTEST is ${MINIORT_GTEST}; it can be AUTO, SYSTEM or OWN")
endif()
if(NOT MINIORT_GTEST STREQUAL "OWN")
  find_package(GTest QUIET)
endif()
if(TARGET GTest::gtest)
  message(STATUS "Tests: GoogleTest of the system")
  set(onnxruntime_test_framework GTest::gtest)
  set(onnxruntime_test_framework_main GTest::gtest_main)
elseif(MINIORT_GTEST STREQUAL "SYSTEM")
  message(FATAL_ERROR "MINIORT_GTEST is SYSTEM, but there is no GoogleTest\ninstall it: apt-get install libgtest-dev")
else()
  message(STATUS "Tests: own minimal runner (no GoogleTest: apt-get install libgtest-dev; or MINIORT_GTEST=OWN)")
  add_library(onnxruntime_test_runner STATIC EXCLUDE_FROM_ALL "${ONNXRUNTIME_ROOT}/test/runner/runner.cc")
  target_compile_options(onnxruntime_test_runner PRIVATE -O0)
  target_include_directories(onnxruntime_test_runner PUBLIC "${ONNXRUNTIME_ROOT}/test/runner/include")
  set(onnxruntime_test_framework onnxruntime_test_runner)
  add_library(onnxruntime_test_runner_main STATIC EXCLUDE_FROM_ALL "${ONNXRUNTIME_ROOT}/test/runner/runner_main.cc")
  target_link_libraries(onnxruntime_test_runner_main PUBLIC onnxruntime_test_runner)
  set(onnxruntime_test_framework_main onnxruntime_test_runner_main)
endif()

function(miniort_test_executable target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE "${ONNXRUNTIME_ROOT}" "${PROJECT_BINARY_DIR}")
  target_compile_definitions(${target} PRIVATE
    USE_MEMORY_EFFICIENT_ATTENTION=$<BOOL:${onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION}>
    USE_FLASH_ATTENTION=$<BOOL:${onnxruntime_USE_FLASH_ATTENTION}>
    MINIORT_STATIC_PROVIDER=$<BOOL:${MINIORT_STATIC_PROVIDER}>)
  target_compile_options(${target} PRIVATE -O0)  # GoogleTest's headers cost three times as much optimized
  target_link_libraries(${target} PRIVATE ${onnxruntime_test_framework})
endfunction()

# Framework tests only: the operators' are not in it.
miniort_test_executable(onnxruntime_test_all "${ONNXRUNTIME_ROOT}/test/framework/float16_test.cc")
target_link_libraries(onnxruntime_test_all PRIVATE ${onnxruntime_test_framework_main})

miniort_test_executable(onnxruntime_provider_test
  "${ONNXRUNTIME_ROOT}/test/contrib_ops/attention_op_test.cc"
  "${ONNXRUNTIME_ROOT}/test/providers/attention_op_test.cc"
  "${ONNXRUNTIME_ROOT}/test/providers/reference_attention.cc"
  "${ONNXRUNTIME_ROOT}/test/unittest_util/provider_bridge.cc"
  "${ONNXRUNTIME_ROOT}/test/unittest_util/simulate.cc"
  "${ONNXRUNTIME_ROOT}/test/unittest_util/test_main.cc"
  "${ONNXRUNTIME_ROOT}/test/unittest_util/unit_revisions.cc")
add_dependencies(onnxruntime_provider_test ${onnxruntime_providers_cuda_target})
if(MINIORT_STATIC_PROVIDER)
  target_link_libraries(onnxruntime_provider_test PRIVATE ${onnxruntime_providers_cuda_target})
else()
  target_link_libraries(onnxruntime_provider_test PRIVATE ${CMAKE_DL_LIBS})
endif()
