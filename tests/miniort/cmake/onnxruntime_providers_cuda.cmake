# The CUDA provider. Which target compiles a unit depends on the options; what a unit is compiled from does not.

set(bert "${ONNXRUNTIME_ROOT}/contrib_ops/cuda/bert")
set(cuda "${ONNXRUNTIME_ROOT}/core/providers/cuda")

set(onnxruntime_providers_cuda_srcs
  "${bert}/cutlass_fmha/fmha_sm50.cu"
  "${bert}/cutlass_fmha/fmha_sm70.cu"
  "${bert}/cutlass_fmha/fmha_sm75.cu"
  "${bert}/cutlass_fmha/fmha_sm80.cu"
  "${bert}/cutlass_fmha/memory_efficient_attention.cu"
  "${bert}/attention.cc"
  "${bert}/attention_impl.cu"
  "${bert}/attention_kernel_options.cc"
  "${bert}/group_query_attention_impl.cu"
  "${bert}/multihead_attention.cc"
  "${cuda}/activation/activations_impl.cu"
  "${cuda}/cuda_allocator.cc")
set(onnxruntime_providers_cuda_flash_srcs "${bert}/flash_attention/flash_fwd_hdim32_fp16_sm80.cu")
set(onnxruntime_providers_cuda_llm_srcs
  "${cuda}/llm/attention.cc"
  "${cuda}/llm/unfused_attention.cu")
set(onnxruntime_providers_cuda_entry "${cuda}/cuda_provider_factory.cc")

# What compiling any unit takes, whichever target it belongs to.
function(miniort_provider_settings target)
  set(system "")
  if(MINIORT_DEPFILE_GAP)
    set(system SYSTEM)
  endif()
  target_include_directories(${target} ${system} PRIVATE "${ONNXRUNTIME_ROOT}")
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}/_deps/cutlass-src/include"
                             ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_compile_definitions(${target} PRIVATE
    USE_CUDA=1
    USE_MEMORY_EFFICIENT_ATTENTION=$<BOOL:${onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION}>
    USE_FLASH_ATTENTION=$<BOOL:${onnxruntime_USE_FLASH_ATTENTION}>
    MINIORT_HOST_ONLY=$<BOOL:${MINIORT_HOST_ONLY}>)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden
    CUDA_VISIBILITY_PRESET hidden
    CUDA_SEPARABLE_COMPILATION ${MINIORT_RDC}
    CUDA_RUNTIME_LIBRARY Static)
  if(MINIORT_HOST_ONLY)
    target_compile_options(${target} PRIVATE -O0)  # built by the thousand, run once
  endif()
  if(MINIORT_PLUGIN_PROVIDER)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include \"${cuda}/plugin/cuda_plugin_adapter.h\">")
  endif()
endfunction()

set(onnxruntime_providers_cuda_target onnxruntime_providers_cuda)
set(provider_srcs ${onnxruntime_providers_cuda_srcs})
set(provider_parts "")
if(MINIORT_PLUGIN_PROVIDER)
  # Newer trees: another target with the old file name, flash and LLM units in object libraries of their own.
  set(onnxruntime_providers_cuda_target onnxruntime_providers_cuda_plugin)
  add_library(onnxruntime_providers_cuda_flash_attention OBJECT ${onnxruntime_providers_cuda_flash_srcs})
  add_library(onnxruntime_providers_cuda_llm OBJECT ${onnxruntime_providers_cuda_llm_srcs})
  list(APPEND provider_parts onnxruntime_providers_cuda_flash_attention onnxruntime_providers_cuda_llm)
else()
  list(APPEND provider_srcs ${onnxruntime_providers_cuda_flash_srcs} ${onnxruntime_providers_cuda_llm_srcs})
endif()
if(MINIORT_OBJECT_LIBRARY)
  add_library(onnxruntime_providers_cuda_obj OBJECT ${provider_srcs})
  list(APPEND provider_parts onnxruntime_providers_cuda_obj)
  set(provider_srcs "")
endif()

if(MINIORT_STATIC_PROVIDER)
  set(provider_kind STATIC)
else()
  set(provider_kind MODULE)
endif()
add_library(${onnxruntime_providers_cuda_target} ${provider_kind} ${provider_srcs} ${onnxruntime_providers_cuda_entry})
set_target_properties(${onnxruntime_providers_cuda_target} PROPERTIES OUTPUT_NAME onnxruntime_providers_cuda)
foreach(target IN LISTS provider_parts)
  miniort_provider_settings(${target})
  target_sources(${onnxruntime_providers_cuda_target} PRIVATE $<TARGET_OBJECTS:${target}>)
endforeach()
miniort_provider_settings(${onnxruntime_providers_cuda_target})

if(MINIORT_HOST_ONLY)
  set(units ${onnxruntime_providers_cuda_srcs} ${onnxruntime_providers_cuda_flash_srcs}
      ${onnxruntime_providers_cuda_llm_srcs})
  list(FILTER units INCLUDE REGEX "\\.cu$")
  set_source_files_properties(${units} PROPERTIES LANGUAGE CXX)
else()
  set_target_properties(${onnxruntime_providers_cuda_target} PROPERTIES LINKER_LANGUAGE CUDA)
  if(MINIORT_RDC AND NOT MINIORT_STATIC_PROVIDER)
    set_target_properties(${onnxruntime_providers_cuda_target} PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS ON)
  endif()
endif()
