// A unit with device code that reaches no watched header.

#include "core/providers/cuda/activation/activations_impl.h"

namespace onnxruntime {
namespace cuda {

constexpr int kThreadsPerBlock = 128;

__global__ void ReluKernel(float* data, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count && data[i] < 0.0f) data[i] = 0.0f;
}

Status Relu(float* data, int64_t count, cudaStream_t stream) {
  const unsigned blocks = static_cast<unsigned>((count + kThreadsPerBlock - 1) / kThreadsPerBlock);
  MINIORT_LAUNCH(ReluKernel, dim3(blocks), dim3(kThreadsPerBlock), stream, data, count);
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return Status{};
}

}  // namespace cuda
}  // namespace onnxruntime
