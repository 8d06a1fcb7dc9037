// One attention problem with its inputs, and its answer in double precision on the CPU.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "core/providers/shared/provider_api.h"

namespace onnxruntime {
namespace test {

struct AttentionShape {
  int32_t batch_size;
  int32_t num_heads;
  int32_t kv_num_heads;
  int32_t sequence_length;
  int32_t kv_sequence_length;
  int32_t head_size;
  bool is_causal;
  std::vector<int32_t> nonpad_kv_seqlen;  // empty: every key counts
};

// Numbers from -2 to 2, the same at every run; fp16 problems hold what fp16 can hold.
class AttentionProblem {
 public:
  AttentionProblem(AttentionOp op, const AttentionShape& shape, bool is_half, bool with_bias = false);

  // The operator's arguments; the output is this object's own.
  const AttentionArguments& Arguments() const { return arguments_; }

  // What the CPU provider computes.
  void RunOnCpu();

  // The largest difference of the output from the reference, relative to 1 or the reference, whichever is larger.
  // NaN counts as infinite.
  double Error() const;

  double Tolerance() const { return is_half_ ? 4e-3 : 1e-4; }

 private:
  std::vector<double> Reference() const;

  AttentionShape shape_;
  bool is_half_;
  std::vector<float> query_, key_, value_, bias_;
  std::vector<uint8_t> query_bytes_, key_bytes_, value_bytes_, bias_bytes_, output_;
  AttentionArguments arguments_;
};

}  // namespace test
}  // namespace onnxruntime
