// The provider's entry: copies arguments to the GPU, calls the operator, copies the result back.

#include "core/providers/cuda/cuda_common.h"

#include "contrib_ops/cuda/bert/attention_ops.h"
#include "core/providers/cuda/activation/activations_impl.h"
#include "core/providers/cuda/llm/attention.h"

// The linker's names for the ends of the section.
extern const char* const __start_miniort_units[] __attribute__((visibility("hidden")));
extern const char* const __stop_miniort_units[] __attribute__((visibility("hidden")));

namespace onnxruntime {
namespace cuda {

static HostApi host_api;

const HostApi& Host() { return host_api; }

static Status Device(int* compute_capability) { return ComputeCapability(compute_capability); }

static Status RunOperator(AttentionOp op, const DeviceAttention& attention) {
  switch (op) {
    case AttentionOp::kContribAttention: return contrib::cuda::Attention(attention);
    case AttentionOp::kMultiHeadAttention: return contrib::cuda::MultiHeadAttention(attention);
    case AttentionOp::kGroupQueryAttention: return contrib::cuda::GroupQueryAttention(attention);
    default: return Attention(attention);
  }
}

static Status RunAttention(const AttentionArguments& arguments) {
  DeviceAttention attention = {};
  ORT_RETURN_IF_ERROR(ComputeCapability(&attention.sm));
  const size_t element = arguments.is_half ? 2 : 4;
  const size_t per_head = static_cast<size_t>(arguments.head_size) * element;
  const size_t queries = static_cast<size_t>(arguments.batch_size) * arguments.num_heads * arguments.sequence_length;
  const size_t keys =
      static_cast<size_t>(arguments.batch_size) * arguments.kv_num_heads * arguments.kv_sequence_length;
  DeviceBuffer query, key, value, bias, lengths, output;
  ORT_RETURN_IF_ERROR(query.Upload(arguments.query, queries * per_head));
  ORT_RETURN_IF_ERROR(key.Upload(arguments.key, keys * per_head));
  ORT_RETURN_IF_ERROR(value.Upload(arguments.value, keys * per_head));
  ORT_RETURN_IF_ERROR(bias.Upload(arguments.bias, static_cast<size_t>(arguments.num_heads) * per_head));
  ORT_RETURN_IF_ERROR(lengths.Upload(arguments.nonpad_kv_seqlen, arguments.batch_size * sizeof(int32_t)));
  ORT_RETURN_IF_ERROR(output.Allocate(queries * per_head));

  attention.arguments = &arguments;
  attention.query = query.As<void>();
  attention.key = key.As<void>();
  attention.value = value.As<void>();
  attention.bias = bias.As<void>();
  attention.nonpad_kv_seqlen = lengths.As<int32_t>();
  attention.output = output.As<void>();
  attention.stream = nullptr;
  ORT_RETURN_IF_ERROR(RunOperator(arguments.op, attention));
  CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  return output.Download(arguments.output, queries * per_head);
}

static Status RunRelu(const float* input, float* output, int64_t count) {
  DeviceBuffer data;
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  ORT_RETURN_IF_ERROR(data.Upload(input, bytes));
  ORT_RETURN_IF_ERROR(Relu(data.As<float>(), count, nullptr));
  CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  return data.Download(output, bytes);
}

}  // namespace cuda
}  // namespace onnxruntime

extern "C" __attribute__((visibility("default"))) const onnxruntime::ProviderApi* GetProvider(
    const onnxruntime::HostApi* host) {
  onnxruntime::cuda::host_api = *host;
  static const onnxruntime::ProviderApi api = {
      __start_miniort_units,           __stop_miniort_units,        onnxruntime::cuda::Device,
      onnxruntime::cuda::RunAttention, onnxruntime::cuda::RunRelu,
  };
  return &api;
}
