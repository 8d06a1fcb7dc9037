// Sends a call to the unit that the GPU's compute capability asks for.

#include "core/providers/cuda/cuda_common.h"

#if USE_MEMORY_EFFICIENT_ATTENTION

#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

Status run_memory_efficient_attention(const MemoryEfficientAttentionParams& params) {
  if (params.sm >= 80) return run_memory_efficient_attention_sm80(params);
  if (params.sm >= 75) return run_memory_efficient_attention_sm75(params);
  if (params.sm >= 70) return run_memory_efficient_attention_sm70(params);
  return run_memory_efficient_attention_sm50(params);
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime

#endif
