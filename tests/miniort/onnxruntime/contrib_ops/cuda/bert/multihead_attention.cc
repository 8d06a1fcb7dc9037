// The contrib domain's MultiHeadAttention.

#include "contrib_ops/cuda/bert/attention_impl.h"
#include "contrib_ops/cuda/bert/attention_ops.h"
#if USE_MEMORY_EFFICIENT_ATTENTION
#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"
#endif

namespace onnxruntime {
namespace contrib {
namespace cuda {

Status MultiHeadAttention(const DeviceAttention& attention) {
  bool efficient_is_usable = false;
#if USE_MEMORY_EFFICIENT_ATTENTION
  const AttentionArguments& a = *attention.arguments;
  efficient_is_usable = has_memory_efficient_attention(attention.sm, a.is_half, a.head_size);
#endif
  const SdpaKernel kernel = ChooseKernel(attention, efficient_is_usable);
  PrintDebugInfo("MultiHeadAttention", attention, kernel);
  return QkvToContext(attention, kernel);
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
