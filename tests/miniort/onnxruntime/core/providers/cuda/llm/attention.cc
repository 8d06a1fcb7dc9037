// The ONNX domain's Attention: picks flash, memory efficient or unfused, and says which before it launches.

#include "core/providers/cuda/llm/attention.h"

#include <stdio.h>

#include "contrib_ops/cuda/bert/flash_attention/flash_api.h"
#include "core/providers/cuda/llm/unfused_attention.h"
#if USE_MEMORY_EFFICIENT_ATTENTION
#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"
#endif

namespace onnxruntime {
namespace cuda {

// `what` ends where the shape in parentheses begins.
static void LogPath(const char* what, const AttentionArguments& arguments, int line) {
  if (Host().log_level > kVerbose) return;
  char text[200];
  snprintf(text, sizeof(text), "%s (batch=%d, heads=%d, q_seq=%d, kv_seq=%d, head_size=%d, %s)", what,
           arguments.batch_size, arguments.num_heads, arguments.sequence_length, arguments.kv_sequence_length,
           arguments.head_size, arguments.is_half ? "fp16" : "fp32");
  Host().log(kVerbose, "attention.cc", line, "ComputeInternal", text);
}

static bool FlashIsUsable(const DeviceAttention& attention) {
#if USE_FLASH_ATTENTION
  return !IsSwitchedOn("ORT_DISABLE_FLASH_ATTENTION") && flash::is_supported(attention);
#else
  (void)attention;
  return false;
#endif
}

static bool MemoryEfficientIsUsable(const DeviceAttention& attention) {
#if USE_MEMORY_EFFICIENT_ATTENTION
  const AttentionArguments& arguments = *attention.arguments;
  return !IsSwitchedOn("ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION") &&
         contrib::cuda::has_memory_efficient_attention(attention.sm, arguments.is_half, arguments.head_size);
#else
  (void)attention;
  return false;
#endif
}

Status Attention(const DeviceAttention& attention) {
  const AttentionArguments& arguments = *attention.arguments;
#if USE_FLASH_ATTENTION
  if (FlashIsUsable(attention)) {
    LogPath("ONNX Attention: using Flash Attention", arguments, __LINE__);
    return flash::mha_fwd(attention);
  }
#endif
#if USE_MEMORY_EFFICIENT_ATTENTION
  if (MemoryEfficientIsUsable(attention)) {
    LogPath("ONNX Attention: using Memory Efficient Attention", arguments, __LINE__);
    return contrib::cuda::run_memory_efficient_attention(contrib::cuda::make_parameters(attention));
  }
#endif
  (void)FlashIsUsable;
  (void)MemoryEfficientIsUsable;
  LogPath("Attention: using unified unfused path", arguments, __LINE__);
  return UnfusedAttention(attention);
}

}  // namespace cuda
}  // namespace onnxruntime
