// What Attention and MultiHeadAttention share: the bias, then the kernel that was chosen.
#pragma once

#include "contrib_ops/cuda/bert/attention_kernel_options.h"
#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

Status QkvToContext(const onnxruntime::cuda::DeviceAttention& attention, SdpaKernel kernel);

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
