// Scores, softmax, weighted sum: one kernel each. Reaches no watched header.

#include "core/providers/cuda/llm/unfused_attention.h"

#include <cutlass/fast_math.h>
#include <cutlass/half.h>

namespace onnxruntime {
namespace cuda {

constexpr int kThreadsPerBlock = 64;

// One row of the score matrix is one query of one head of one batch.
struct UnfusedShape {
  int32_t rows;
  int32_t heads;
  int32_t queries;
  int32_t keys;
  int32_t head_size;
  bool causal;
  const int32_t* kv_lengths;
};

// How many keys, from the first on, the query of `row` may look at.
CUTLASS_HOST_DEVICE int VisibleKeys(const UnfusedShape& shape, int row) {
  const int batch = row / (shape.heads * shape.queries);
  const int keys = shape.kv_lengths != nullptr ? shape.kv_lengths[batch] : shape.keys;
  const int query = row % shape.queries;
  return shape.causal ? cutlass::fast_min(keys, query + 1 + keys - shape.queries) : keys;
}

template <typename Element>
__global__ void ScoreKernel(UnfusedShape shape, const Element* query, const Element* key, float* scores) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.rows) return;
  const float scale = 1.0f / cutlass::fast_sqrt(static_cast<float>(shape.head_size));
  const Element* q = query + static_cast<int64_t>(row) * shape.head_size;
  const Element* k = key + static_cast<int64_t>(row / shape.queries) * shape.keys * shape.head_size;
  float* out = scores + static_cast<int64_t>(row) * shape.keys;
  for (int j = 0; j < shape.keys; ++j, k += shape.head_size) {
    float sum = 0.0f;
    for (int d = 0; d < shape.head_size; ++d) sum += cutlass::to_float(q[d]) * cutlass::to_float(k[d]);
    out[j] = sum * scale;
  }
}

__global__ void SoftmaxKernel(UnfusedShape shape, float* scores) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.rows) return;
  float* s = scores + static_cast<int64_t>(row) * shape.keys;
  const int visible = VisibleKeys(shape, row);
  float top = cutlass::kMinusInfinity;
  for (int j = 0; j < visible; ++j) top = cutlass::fast_max(top, s[j]);
  float sum = 0.0f;
  for (int j = 0; j < visible; ++j) sum += s[j] = cutlass::fast_exp(s[j] - top);
  for (int j = 0; j < shape.keys; ++j) s[j] = j < visible ? s[j] / sum : 0.0f;
}

template <typename Element>
__global__ void WeightedSumKernel(UnfusedShape shape, const float* weights, const Element* value, Element* output) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= shape.rows) return;
  const Element* v = value + static_cast<int64_t>(row / shape.queries) * shape.keys * shape.head_size;
  const float* w = weights + static_cast<int64_t>(row) * shape.keys;
  for (int d = 0; d < shape.head_size; ++d) {
    float sum = 0.0f;
    for (int j = 0; j < shape.keys; ++j) sum += w[j] * cutlass::to_float(v[j * shape.head_size + d]);
    output[static_cast<int64_t>(row) * shape.head_size + d] = cutlass::from_float<Element>(sum);
  }
}

template <typename Element>
static Status Run(const DeviceAttention& attention, const UnfusedShape& shape) {
  DeviceBuffer scores;
  ORT_RETURN_IF_ERROR(scores.Allocate(sizeof(float) * static_cast<size_t>(shape.rows) * shape.keys));
  const dim3 grid(cutlass::ceil_div(shape.rows, kThreadsPerBlock));
  const dim3 block(kThreadsPerBlock);
  MINIORT_LAUNCH(ScoreKernel<Element>, grid, block, attention.stream, shape,
                 static_cast<const Element*>(attention.query), static_cast<const Element*>(attention.key),
                 scores.As<float>());
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  MINIORT_LAUNCH(SoftmaxKernel, grid, block, attention.stream, shape, scores.As<float>());
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  MINIORT_LAUNCH(WeightedSumKernel<Element>, grid, block, attention.stream, shape, scores.As<float>(),
                 static_cast<const Element*>(attention.value), static_cast<Element*>(attention.output));
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  return Status{};
}

Status UnfusedAttention(const DeviceAttention& attention) {
  const AttentionArguments& a = *attention.arguments;
  const UnfusedShape shape = {a.batch_size * a.num_heads * a.sequence_length,
                              a.num_heads,
                              a.sequence_length,
                              a.kv_sequence_length,
                              a.head_size,
                              a.is_causal,
                              attention.nonpad_kv_seqlen};
  return a.is_half ? Run<cutlass::half_t>(attention, shape) : Run<float>(attention, shape);
}

}  // namespace cuda
}  // namespace onnxruntime
