// The interface of memory efficient attention: all that units outside this folder see of it.
#pragma once

#include "core/providers/cuda/device_attention.h"

#define MINIORT_MEMORY_EFFICIENT_ATTENTION_REVISION 1
MINIORT_WATCHED_HEADER(memory_efficient_attention, MINIORT_MEMORY_EFFICIENT_ATTENTION_REVISION)

namespace onnxruntime {
namespace contrib {
namespace cuda {

constexpr int kEfficientAttentionMaxHeadSize = 32;

struct MemoryEfficientAttentionParams {
  int32_t sm;
  bool is_half;
  bool causal;
  int32_t batch_size;
  int32_t num_heads;
  int32_t sequence_length;
  int32_t kv_sequence_length;
  int32_t head_size;
  const void* query;  // [batch, heads, sequence, head_size], like all four
  const void* key;
  const void* value;
  void* output;
  const int32_t* seqlen_k_ptr;  // [batch] on the device, or null
  cudaStream_t stream;
};

inline MemoryEfficientAttentionParams make_parameters(const onnxruntime::cuda::DeviceAttention& attention) {
  const AttentionArguments& a = *attention.arguments;
  return {attention.sm,  a.is_half,       a.is_causal,     a.batch_size,
          a.num_heads,   a.sequence_length, a.kv_sequence_length, a.head_size,
          attention.query, attention.key, attention.value, attention.output,
          attention.nonpad_kv_seqlen, attention.stream};
}

inline bool has_memory_efficient_attention(int32_t sm, bool is_half, int32_t head_size) {
  return sm >= (is_half ? 53 : 50) && head_size <= kEfficientAttentionMaxHeadSize;
}

// Calls the one of the four below that the GPU's compute capability asks for.
Status run_memory_efficient_attention(const MemoryEfficientAttentionParams& params);

Status run_memory_efficient_attention_sm80(const MemoryEfficientAttentionParams& params);
Status run_memory_efficient_attention_sm75(const MemoryEfficientAttentionParams& params);
Status run_memory_efficient_attention_sm70(const MemoryEfficientAttentionParams& params);
Status run_memory_efficient_attention_sm50(const MemoryEfficientAttentionParams& params);

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
