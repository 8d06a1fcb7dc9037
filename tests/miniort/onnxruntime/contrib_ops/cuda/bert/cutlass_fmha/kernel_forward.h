// The forward kernel: softmax(Q K^T * scale) V, tile by tile over the keys, without the score matrix in memory.
#pragma once

#include <stdint.h>

#include <cutlass/arch/arch.h>
#include <cutlass/arch/barrier.h>
#include <cutlass/fast_math.h>
#include <cutlass/half.h>

#include "core/providers/cuda/unit_record.h"

#define MINIORT_KERNEL_FORWARD_REVISION 1
MINIORT_WATCHED_HEADER(kernel_forward, MINIORT_KERNEL_FORWARD_REVISION)

// Scores are multiplied by this over the square root of the head size: another number is another result.
constexpr float kScoreScaleNumerator = 1.0f;

template <typename Element_, typename ArchTag_, int kKeysPerTile_, int kMaxHeadSize_>
struct AttentionKernel {
  using Element = Element_;
  using ArchTag = ArchTag_;
  static constexpr int kKeysPerTile = kKeysPerTile_;
  static constexpr int kMaxHeadSize = kMaxHeadSize_;
  static constexpr int kTileElements = kKeysPerTile * kMaxHeadSize;

  struct Params {
    const Element* query_ptr;  // [batch * heads, num_queries, head_dim]
    const Element* key_ptr;    // [batch * heads, num_keys, head_dim]
    const Element* value_ptr;
    Element* output_ptr;
    const int32_t* seqlen_k_ptr;  // [batch], or null: num_keys
    int32_t num_heads;
    int32_t num_queries;
    int32_t num_keys;
    int32_t head_dim;
    bool causal;
  };

  // The tile as the block's threads read it: in shared memory on the device, in place on the host.
  static CUTLASS_DEVICE const Element* load_tile(const Element* tile, Element* shared, int elements) {
#if defined(__CUDA_ARCH__)
    for (int i = threadIdx.x; i < elements; i += blockDim.x) shared[i] = tile[i];
    return shared;
#else
    (void)shared;
    (void)elements;
    return tile;
#endif
  }

  // One thread a query; blockIdx.y is the head of the batch. Threads beyond the last query only load tiles.
  static CUTLASS_DEVICE void attention_kernel(const Params& p, Element* shared_key, Element* shared_value) {
    const int head = static_cast<int>(blockIdx.y);
    const int query = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const bool is_query = query < p.num_queries;
    const int keys = p.seqlen_k_ptr != nullptr ? p.seqlen_k_ptr[head / p.num_heads] : p.num_keys;
    // Causal masks are aligned to the last key: with fewer keys than queries the first queries see none.
    const int visible = p.causal ? cutlass::fast_min(keys, query + 1 + keys - p.num_queries) : keys;
    const float scale = kScoreScaleNumerator / cutlass::fast_sqrt(static_cast<float>(p.head_dim));

    float q[kMaxHeadSize];
    float sums[kMaxHeadSize];
    const int64_t row = (static_cast<int64_t>(head) * p.num_queries + query) * p.head_dim;
    CUTLASS_UNROLL
    for (int d = 0; d < kMaxHeadSize; ++d) {
      q[d] = is_query && d < p.head_dim ? scale * cutlass::to_float(p.query_ptr[row + d]) : 0.0f;
      sums[d] = 0.0f;
    }
    float row_max = cutlass::kMinusInfinity;
    float row_sum = 0.0f;

    for (int start = 0; start < keys; start += kKeysPerTile) {
      const int64_t offset = (static_cast<int64_t>(head) * p.num_keys + start) * p.head_dim;
      const int tile = cutlass::fast_min(kKeysPerTile, keys - start);
      const Element* k = load_tile(p.key_ptr + offset, shared_key, tile * p.head_dim);
      const Element* v = load_tile(p.value_ptr + offset, shared_value, tile * p.head_dim);
      cutlass::arch::tile_barrier();

      float scores[kKeysPerTile];
      float tile_max = row_max;
      for (int j = 0; j < kKeysPerTile; ++j) {
        float score = 0.0f;
        if (start + j < visible) {
          CUTLASS_UNROLL
          for (int d = 0; d < kMaxHeadSize; ++d)
            if (d < p.head_dim) score += q[d] * cutlass::to_float(k[j * p.head_dim + d]);
          tile_max = cutlass::fast_max(tile_max, score);
        }
        scores[j] = score;
      }
      if (start < visible) {
        // What was summed so far was relative to the old maximum.
        const float correction = cutlass::fast_exp(row_max - tile_max);
        row_sum *= correction;
        CUTLASS_UNROLL
        for (int d = 0; d < kMaxHeadSize; ++d) sums[d] *= correction;
        for (int j = 0; j < kKeysPerTile && start + j < visible; ++j) {
          const float weight = cutlass::fast_exp(scores[j] - tile_max);
          row_sum += weight;
          CUTLASS_UNROLL
          for (int d = 0; d < kMaxHeadSize; ++d)
            if (d < p.head_dim) sums[d] += weight * cutlass::to_float(v[j * p.head_dim + d]);
        }
        row_max = tile_max;
      }
      cutlass::arch::tile_barrier();
    }

    if (!is_query) return;
    CUTLASS_UNROLL
    for (int d = 0; d < kMaxHeadSize; ++d)
      if (d < p.head_dim)
        p.output_ptr[row + d] = cutlass::from_float<Element>(row_sum > 0.0f ? sums[d] / row_sum : 0.0f);
  }
};

template <typename AK>
__global__ void attention_kernel_batched(typename AK::Params params) {
  __shared__ typename AK::Element shared_key[AK::kTileElements];
  __shared__ typename AK::Element shared_value[AK::kTileElements];
  AK::attention_kernel(params, shared_key, shared_value);
}
