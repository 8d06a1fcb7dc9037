// What the test process and the CUDA provider know of each other. Plain structs: the provider is opened at run time.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace onnxruntime {

// Severities of ORT_UNIT_TEST_MAIN_LOG_LEVEL.
enum LogSeverity : int { kVerbose = 0, kInfo = 1, kWarning = 2, kError = 3, kFatal = 4 };

struct HostApi {
  int log_level;  // lines below it are not wanted
  void (*log)(int severity, const char* file, int line, const char* function, const char* message);
};

// The result of a call into the provider: empty where all went well.
struct Status {
  char message[240];
  bool IsOK() const { return message[0] == '\0'; }
};

enum class AttentionOp : int { kOnnxAttention, kContribAttention, kMultiHeadAttention, kGroupQueryAttention };

// One attention over [batch, heads, sequence, head_size]; every pointer is the host's.
struct AttentionArguments {
  AttentionOp op;
  const char* node_name;
  bool is_half;  // fp16, else fp32
  int32_t batch_size;
  int32_t num_heads;
  int32_t kv_num_heads;  // fewer than num_heads for grouped queries only
  int32_t sequence_length;
  int32_t kv_sequence_length;
  int32_t head_size;
  bool is_causal;
  const int32_t* nonpad_kv_seqlen;  // [batch], or null: every key counts
  const void* query;
  const void* key;
  const void* value;
  const void* bias;  // [heads, head_size], added to each query (the contrib Attention only), or null
  void* output;
};

struct ProviderApi {
  // Records of core/providers/cuda/unit_record.h.
  const char* const* units_begin;
  const char* const* units_end;
  // Compute capability of the GPU, 90 for 9.0.
  Status (*device)(int* compute_capability);
  Status (*attention)(const AttentionArguments& arguments);
  Status (*relu)(const float* input, float* output, int64_t count);
};

}  // namespace onnxruntime

extern "C" const onnxruntime::ProviderApi* GetProvider(const onnxruntime::HostApi* host);
