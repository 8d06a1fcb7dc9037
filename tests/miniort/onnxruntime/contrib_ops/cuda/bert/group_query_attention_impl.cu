// GroupQueryAttention: repeats each head of keys and values for its group of queries, then runs the kernel.

#include "contrib_ops/cuda/bert/attention_ops.h"

#include <cutlass/fast_math.h>

#include "contrib_ops/cuda/bert/attention_kernel_options.h"
#include "contrib_ops/cuda/bert/flash_attention/flash_api.h"
#include "core/providers/cuda/llm/unfused_attention.h"
#if USE_MEMORY_EFFICIENT_ATTENTION
#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"
#endif

namespace onnxruntime {
namespace contrib {
namespace cuda {

using onnxruntime::cuda::DeviceBuffer;

constexpr int kUngroupThreads = 128;

// Works on 16-bit words, so that one kernel serves fp16 and fp32.
__global__ void UngroupKernel(const uint16_t* grouped, uint16_t* output, int64_t count, int64_t words_per_head,
                              int heads, int kv_heads) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int64_t batch_head = i / words_per_head;
  const int64_t batch = batch_head / heads;
  const int64_t kv_head = batch_head % heads / (heads / kv_heads);
  output[i] = grouped[(batch * kv_heads + kv_head) * words_per_head + i % words_per_head];
}

static Status Ungroup(const AttentionArguments& a, const void* grouped, DeviceBuffer& output, cudaStream_t stream) {
  const int64_t words_per_head = static_cast<int64_t>(a.kv_sequence_length) * a.head_size * (a.is_half ? 1 : 2);
  const int64_t count = words_per_head * a.batch_size * a.num_heads;
  ORT_RETURN_IF_ERROR(output.Allocate(static_cast<size_t>(count) * sizeof(uint16_t)));
  MINIORT_LAUNCH(UngroupKernel, dim3(cutlass::ceil_div(static_cast<int>(count), kUngroupThreads)),
                 dim3(kUngroupThreads), stream, static_cast<const uint16_t*>(grouped), output.As<uint16_t>(), count,
                 words_per_head, a.num_heads, a.kv_num_heads);
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

Status GroupQueryAttention(const DeviceAttention& attention) {
  const AttentionArguments& a = *attention.arguments;
  bool efficient_is_usable = false;
#if USE_MEMORY_EFFICIENT_ATTENTION
  efficient_is_usable = has_memory_efficient_attention(attention.sm, a.is_half, a.head_size);
#endif
  const SdpaKernel kernel = ChooseKernel(attention, efficient_is_usable);
  PrintDebugInfo("GroupQueryAttention", attention, kernel);
  DeviceBuffer key, value;
  ORT_RETURN_IF_ERROR(Ungroup(a, attention.key, key, attention.stream));
  ORT_RETURN_IF_ERROR(Ungroup(a, attention.value, value, attention.stream));
  DeviceAttention ungrouped = attention;
  ungrouped.key = key.As<void>();
  ungrouped.value = value.As<void>();
  ORT_RETURN_IF_ERROR(RunKernel(ungrouped, kernel));
  CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());  // keys and values are freed here
  return Status{};
}

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
