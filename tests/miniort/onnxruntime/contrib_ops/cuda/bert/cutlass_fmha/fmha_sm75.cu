// Memory efficient attention for compute capability 7.5.

#include "core/providers/cuda/cuda_common.h"

#if USE_MEMORY_EFFICIENT_ATTENTION

#include "contrib_ops/cuda/bert/cutlass_fmha/fmha_launch_template.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

Status run_memory_efficient_attention_sm75(const MemoryEfficientAttentionParams& params) {
  return DispatchElement<cutlass::arch::Sm75, 8>(params);
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime

#endif
