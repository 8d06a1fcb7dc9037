// Launches the forward kernel of one generation: host code only, the device code is kernel_forward.h's.
#pragma once

#include "contrib_ops/cuda/bert/cutlass_fmha/kernel_forward.h"
#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"

#define MINIORT_FMHA_LAUNCH_TEMPLATE_REVISION 1
MINIORT_WATCHED_HEADER(fmha_launch_template, MINIORT_FMHA_LAUNCH_TEMPLATE_REVISION)

namespace onnxruntime {
namespace contrib {
namespace cuda {

constexpr int kQueriesPerBlock = 32;

template <typename Element, typename ArchTag, int kKeysPerTile>
Status LaunchCutlassFmha(const MemoryEfficientAttentionParams& params) {
  using Attention = AttentionKernel<Element, ArchTag, kKeysPerTile, kEfficientAttentionMaxHeadSize>;
  const typename Attention::Params p = {static_cast<const Element*>(params.query),
                                        static_cast<const Element*>(params.key),
                                        static_cast<const Element*>(params.value),
                                        static_cast<Element*>(params.output),
                                        params.seqlen_k_ptr,
                                        params.num_heads,
                                        params.sequence_length,
                                        params.kv_sequence_length,
                                        params.head_size,
                                        params.causal};
  const dim3 grid(cutlass::ceil_div(params.sequence_length, kQueriesPerBlock), params.batch_size * params.num_heads);
  const dim3 block(kQueriesPerBlock);
  MINIORT_LAUNCH(attention_kernel_batched<Attention>, grid, block, params.stream, p);
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return Status{};
}

template <typename ArchTag, int kKeysPerTile>
Status DispatchElement(const MemoryEfficientAttentionParams& params) {
  return params.is_half ? LaunchCutlassFmha<cutlass::half_t, ArchTag, kKeysPerTile>(params)
                        : LaunchCutlassFmha<float, ArchTag, kKeysPerTile>(params);
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
