// Reads the switches of the environment. Reaches no watched header: whether MEA fits is asked by its callers.

#include "contrib_ops/cuda/bert/attention_kernel_options.h"

#include <stdio.h>

#include "contrib_ops/cuda/bert/flash_attention/flash_api.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

using onnxruntime::cuda::IsSwitchedOn;

SdpaKernel ChooseKernel(const onnxruntime::cuda::DeviceAttention& attention, bool efficient_is_usable) {
#if USE_FLASH_ATTENTION
  if (!IsSwitchedOn("ORT_DISABLE_FLASH_ATTENTION") && flash::is_supported(attention)) return SdpaKernel::kFlash;
#else
  (void)attention;
#endif
  if (efficient_is_usable && !IsSwitchedOn("ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION")) return SdpaKernel::kEfficient;
  return SdpaKernel::kMath;
}

void PrintDebugInfo(const char* operator_name, const onnxruntime::cuda::DeviceAttention& attention, SdpaKernel kernel) {
  if (!IsSwitchedOn("ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO")) return;
  const char* name = kernel == SdpaKernel::kFlash       ? "FLASH_ATTENTION"
                     : kernel == SdpaKernel::kEfficient ? "EFFICIENT_ATTENTION"
                                                        : "MATH";
  const char* node = attention.arguments->node_name;
  const bool named = node != nullptr && *node != '\0';
  printf("\x1B[36mOperator=%s%s%s DataType=%s SdpaKernel=%s\x1B[0m\n", operator_name, named ? " Node=" : "",
         named ? node : "", attention.arguments->is_half ? "fp16" : "fp32", name);
  fflush(stdout);
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
