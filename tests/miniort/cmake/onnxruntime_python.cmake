# The Python module: its package gets a copy of the provider whenever the module is linked, and only then.

add_library(onnxruntime_pybind11_state MODULE "${ONNXRUNTIME_ROOT}/python/onnxruntime_pybind_module.cc")
set_target_properties(onnxruntime_pybind11_state PROPERTIES PREFIX "")
add_dependencies(onnxruntime_pybind11_state ${onnxruntime_providers_cuda_target})
set(onnxruntime_package_dir "${PROJECT_BINARY_DIR}/onnxruntime/capi")
file(MAKE_DIRECTORY "${onnxruntime_package_dir}")
add_custom_command(TARGET onnxruntime_pybind11_state POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:onnxruntime_pybind11_state>
          $<TARGET_FILE:${onnxruntime_providers_cuda_target}> "${onnxruntime_package_dir}/")
