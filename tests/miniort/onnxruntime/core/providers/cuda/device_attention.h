// One attention whose tensors are on the device.
#pragma once

#include "core/providers/cuda/cuda_common.h"

namespace onnxruntime {
namespace cuda {

struct DeviceAttention {
  const AttentionArguments* arguments;  // shapes and flags; its pointers are the host's
  int sm;
  const void* query;
  const void* key;
  const void* value;
  const void* bias;
  const int32_t* nonpad_kv_seqlen;
  void* output;
  cudaStream_t stream;
};

}  // namespace cuda
}  // namespace onnxruntime
