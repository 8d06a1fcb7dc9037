#include "test/providers/reference_attention.h"

#include <math.h>
#include <string.h>

#include "test/unittest_util/float16.h"

namespace onnxruntime {
namespace test {

namespace {

std::vector<float> Numbers(size_t count, uint32_t seed, bool is_half) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525u + 1013904223u;
    number = static_cast<float>(seed >> 8) / static_cast<float>(1u << 22) - 2.0f;
    if (is_half) number = HalfToFloat(FloatToHalf(number));
  }
  return numbers;
}

std::vector<uint8_t> Bytes(const std::vector<float>& numbers, bool is_half) {
  std::vector<uint8_t> bytes(numbers.size() * (is_half ? 2 : 4));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint16_t half = FloatToHalf(numbers[i]);
    if (is_half)
      memcpy(&bytes[2 * i], &half, 2);
    else
      memcpy(&bytes[4 * i], &numbers[i], 4);
  }
  return bytes;
}

}  // namespace

AttentionProblem::AttentionProblem(AttentionOp op, const AttentionShape& shape, bool is_half, bool with_bias)
    : shape_(shape), is_half_(is_half), arguments_() {
  const size_t queries = static_cast<size_t>(shape.batch_size) * shape.num_heads * shape.sequence_length;
  const size_t keys = static_cast<size_t>(shape.batch_size) * shape.kv_num_heads * shape.kv_sequence_length;
  query_ = Numbers(queries * shape.head_size, 1, is_half);
  key_ = Numbers(keys * shape.head_size, 2, is_half);
  value_ = Numbers(keys * shape.head_size, 3, is_half);
  if (with_bias) bias_ = Numbers(static_cast<size_t>(shape.num_heads) * shape.head_size, 4, is_half);
  query_bytes_ = Bytes(query_, is_half);
  key_bytes_ = Bytes(key_, is_half);
  value_bytes_ = Bytes(value_, is_half);
  bias_bytes_ = Bytes(bias_, is_half);
  output_.assign(query_bytes_.size(), 0xFF);  // NaN in both types: what nobody wrote is wrong

  arguments_.op = op;
  arguments_.node_name = "node1";
  arguments_.is_half = is_half;
  arguments_.batch_size = shape.batch_size;
  arguments_.num_heads = shape.num_heads;
  arguments_.kv_num_heads = shape.kv_num_heads;
  arguments_.sequence_length = shape.sequence_length;
  arguments_.kv_sequence_length = shape.kv_sequence_length;
  arguments_.head_size = shape.head_size;
  arguments_.is_causal = shape.is_causal;
  arguments_.nonpad_kv_seqlen = shape_.nonpad_kv_seqlen.empty() ? nullptr : shape_.nonpad_kv_seqlen.data();
  arguments_.query = query_bytes_.data();
  arguments_.key = key_bytes_.data();
  arguments_.value = value_bytes_.data();
  arguments_.bias = with_bias ? bias_bytes_.data() : nullptr;
  arguments_.output = output_.data();
}

std::vector<double> AttentionProblem::Reference() const {
  const AttentionShape& s = shape_;
  std::vector<double> output(query_.size(), 0.0);
  std::vector<double> weights(s.kv_sequence_length);
  for (int32_t row = 0; row < s.batch_size * s.num_heads * s.sequence_length; ++row) {
    const int32_t batch = row / (s.num_heads * s.sequence_length);
    const int32_t head = row / s.sequence_length % s.num_heads;
    const int32_t kv_head = batch * s.kv_num_heads + head / (s.num_heads / s.kv_num_heads);
    const int32_t keys = s.nonpad_kv_seqlen.empty() ? s.kv_sequence_length : s.nonpad_kv_seqlen[batch];
    const int32_t causal = row % s.sequence_length + 1 + keys - s.sequence_length;
    const int32_t visible = s.is_causal && causal < keys ? causal : keys;
    double top = -INFINITY;
    for (int32_t j = 0; j < visible; ++j) {
      double score = 0.0;
      for (int32_t d = 0; d < s.head_size; ++d) {
        double q = query_[row * s.head_size + d];
        if (!bias_.empty()) q += bias_[head * s.head_size + d];
        score += q * key_[(kv_head * s.kv_sequence_length + j) * s.head_size + d];
      }
      weights[j] = score / sqrt(static_cast<double>(s.head_size));
      top = fmax(top, weights[j]);
    }
    double sum = 0.0;
    for (int32_t j = 0; j < visible; ++j) sum += weights[j] = exp(weights[j] - top);
    for (int32_t j = 0; j < visible; ++j)
      for (int32_t d = 0; d < s.head_size; ++d)
        output[row * s.head_size + d] +=
            weights[j] / sum * value_[(kv_head * s.kv_sequence_length + j) * s.head_size + d];
  }
  return output;
}

void AttentionProblem::RunOnCpu() {
  const std::vector<double> answer = Reference();
  output_ = Bytes(std::vector<float>(answer.begin(), answer.end()), is_half_);
}

double AttentionProblem::Error() const {
  const std::vector<double> reference = Reference();
  double worst = 0.0;
  for (size_t i = 0; i < reference.size(); ++i) {
    float actual;
    if (is_half_) {
      uint16_t half;
      memcpy(&half, &output_[2 * i], 2);
      actual = HalfToFloat(half);
    } else {
      memcpy(&actual, &output_[4 * i], 4);
    }
    const double error = fabs(actual - reference[i]) / fmax(1.0, fabs(reference[i]));
    worst = fmax(worst, isnan(error) ? INFINITY : error);
  }
  return worst;
}

}  // namespace test
}  // namespace onnxruntime
