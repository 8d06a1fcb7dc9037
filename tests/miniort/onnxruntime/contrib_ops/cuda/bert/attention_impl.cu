// Adds the bias to the queries on the device and runs the kernel that was chosen.

#include "contrib_ops/cuda/bert/attention_impl.h"

#include <cutlass/fast_math.h>
#include <cutlass/half.h>

#include "contrib_ops/cuda/bert/flash_attention/flash_api.h"
#include "core/providers/cuda/llm/unfused_attention.h"
#if USE_MEMORY_EFFICIENT_ATTENTION
#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"
#endif

namespace onnxruntime {
namespace contrib {
namespace cuda {

using onnxruntime::cuda::DeviceAttention;
using onnxruntime::cuda::DeviceBuffer;

constexpr int kBiasThreads = 128;

template <typename Element>
__global__ void AddBiasKernel(const Element* query, const Element* bias, Element* output, int64_t count, int heads,
                              int sequence, int head_size) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t head = i / (static_cast<int64_t>(sequence) * head_size) % heads;
  const Element added = bias[head * head_size + i % head_size];
  output[i] = cutlass::from_float<Element>(cutlass::to_float(query[i]) + cutlass::to_float(added));
}

template <typename Element>
static Status AddBias(const DeviceAttention& attention, DeviceBuffer& biased) {
  const AttentionArguments& a = *attention.arguments;
  const int64_t count = static_cast<int64_t>(a.batch_size) * a.num_heads * a.sequence_length * a.head_size;
  ORT_RETURN_IF_ERROR(biased.Allocate(static_cast<size_t>(count) * sizeof(Element)));
  MINIORT_LAUNCH(AddBiasKernel<Element>, dim3(cutlass::ceil_div(static_cast<int>(count), kBiasThreads)),
                 dim3(kBiasThreads), attention.stream, static_cast<const Element*>(attention.query),
                 static_cast<const Element*>(attention.bias), biased.As<Element>(), count, a.num_heads,
                 a.sequence_length, a.head_size);
  CUDA_RETURN_IF_ERROR(cudaGetLastError());
  return Status{};
}

static Status RunKernel(const DeviceAttention& attention, SdpaKernel kernel) {
#if USE_FLASH_ATTENTION
  if (kernel == SdpaKernel::kFlash) return flash::mha_fwd(attention);
#endif
#if USE_MEMORY_EFFICIENT_ATTENTION
  if (kernel == SdpaKernel::kEfficient) return run_memory_efficient_attention(make_parameters(attention));
#endif
  (void)kernel;
  return onnxruntime::cuda::UnfusedAttention(attention);
}

Status QkvToContext(const DeviceAttention& attention, SdpaKernel kernel) {
  if (attention.bias == nullptr) return RunKernel(attention, kernel);
  DeviceBuffer biased;
  ORT_RETURN_IF_ERROR(attention.arguments->is_half ? AddBias<cutlass::half_t>(attention, biased)
                                                   : AddBias<float>(attention, biased));
  DeviceAttention with_bias = attention;
  with_bias.query = biased.As<void>();
  ORT_RETURN_IF_ERROR(RunKernel(with_bias, kernel));
  CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());  // the biased queries are freed here
  return Status{};
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
