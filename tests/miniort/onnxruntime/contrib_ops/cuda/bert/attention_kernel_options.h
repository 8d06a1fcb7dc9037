// Which kernel an operator of the contrib domain runs, and the line that tells it.
#pragma once

#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

enum class SdpaKernel { kFlash, kEfficient, kMath };

// Flash first, then memory efficient, as far as compiled in, fit for the shape and not switched off.
SdpaKernel ChooseKernel(const onnxruntime::cuda::DeviceAttention& attention, bool efficient_is_usable);

// With ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO=1: one line on stdout.
void PrintDebugInfo(const char* operator_name, const onnxruntime::cuda::DeviceAttention& attention, SdpaKernel kernel);

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
