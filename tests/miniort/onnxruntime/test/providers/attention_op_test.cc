// The ONNX domain's Attention: memory efficient, flash and unfused on CUDA, and the CPU.

#include "gtest/gtest.h"
#include "test/providers/reference_attention.h"
#include "test/unittest_util/provider_bridge.h"
#include "test/unittest_util/scoped_environment.h"
#include "test/unittest_util/simulate.h"

#if USE_MEMORY_EFFICIENT_ATTENTION
#define SKIP_IF_MEA_NOT_COMPILED
#else
#define SKIP_IF_MEA_NOT_COMPILED GTEST_SKIP() << "Memory efficient attention is not compiled in"
#endif

namespace onnxruntime {
namespace test {

namespace {

constexpr const char* kNoFlash = "ORT_DISABLE_FLASH_ATTENTION";
constexpr const char* kNoMea = "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION";

// With fewer keys than queries, causal masks leave the first queries without any key.
const AttentionShape kNegOffset = {2, 2, 2, 24, 20, 32, true, {9, 20}};
const AttentionShape kCausal = {1, 3, 3, 37, 37, 32, true, {}};
const AttentionShape kLongKeys = {1, 2, 2, 5, 300, 24, false, {}};

void RunOn(AttentionProblem& problem, const ProviderApi* cuda) {
  if (cuda == nullptr) {
    problem.RunOnCpu();
  } else {
    const Status status = cuda->attention(problem.Arguments());
    ASSERT_TRUE(status.IsOK()) << status.message;
  }
  EXPECT_LE(problem.Error(), problem.Tolerance());
}

// Opens the provider, then skips without a usable GPU. Where the provider cannot be opened the CPU answers.
void RunCuda(const AttentionShape& shape, bool is_half, const char* switched_off = "") {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  SimulateAccidents(test.test_suite_name(), test.name());
  if (IsSimulated("MINIORT_TEST_RETURN_EARLY", test.test_suite_name(), test.name())) return;
  if (IsSimulated("MINIORT_TEST_FAIL", test.test_suite_name(), test.name())) FAIL() << "failed on demand";
  const ProviderApi* cuda = TryGetCudaProvider();
  if (cuda != nullptr) {
    int compute_capability = 0;
    const std::string failure = CudaFailure(*cuda, &compute_capability);
    if (!failure.empty()) GTEST_SKIP() << "CUDA execution provider is not usable: " << failure;
    if (is_half && compute_capability < 53) GTEST_SKIP() << "fp16 needs compute capability 5.3";
  }
  const ScopedEnvironmentVariable off(switched_off, "1");
  const bool unfused = IsSimulated("MINIORT_TEST_UNFUSED", test.test_suite_name(), test.name());
  const ScopedEnvironmentVariable mea_off(unfused ? kNoMea : "", "1");
  AttentionProblem problem(AttentionOp::kOnnxAttention, shape, is_half);
  RunOn(problem, cuda);
}

void RunCpu(const AttentionShape& shape) {
  AttentionProblem problem(AttentionOp::kOnnxAttention, shape, false);
  RunOn(problem, nullptr);
}

}  // namespace

TEST(AttentionTest, Attention_Causal_NonPadKVSeqLen_MEA_NegOffset_ForceFlashDisabled_FP16_CUDA) {
  SKIP_IF_MEA_NOT_COMPILED;
  RunCuda(kNegOffset, true, kNoFlash);
}

TEST(AttentionTest, Attention_Causal_NonPadKVSeqLen_MEA_NegOffset_FP32_CUDA) {
  SKIP_IF_MEA_NOT_COMPILED;
  RunCuda(kNegOffset, false);
}

TEST(AttentionTest, Attention_Causal_MEA_ForceFlashDisabled_FP16_CUDA) {
  SKIP_IF_MEA_NOT_COMPILED;
  RunCuda(kCausal, true, kNoFlash);
}

TEST(AttentionTest, Attention_LongKV_MEA_FP32_CUDA) {
  SKIP_IF_MEA_NOT_COMPILED;
  RunCuda(kLongKeys, false);
}

TEST(AttentionTest, Attention_Causal_NonPadKVSeqLen_FlashStructuralEmptyRows_Zero_FP16_CUDA) {
  RunCuda(kNegOffset, true);
}

TEST(AttentionTest, Attention_LongKV_Flash_FP16_CUDA) { RunCuda(kLongKeys, true); }

TEST(AttentionTest, Attention_Causal_NonPadKVSeqLen_Unfused_NegOffset_FP32_CUDA) {
  RunCuda(kNegOffset, false, kNoMea);
}

TEST(AttentionTest, Attention_Causal_Unfused_LargeHead_FP32_CUDA) {
  AttentionShape large_head = kCausal;
  large_head.head_size = 48;  // more than flash or MEA take
  RunCuda(large_head, false);
}

TEST(AttentionTest, Attention_Causal_NonPadKVSeqLen_NegOffset_CPU) { RunCpu(kNegOffset); }

TEST(AttentionTest, Attention_Causal_CPU) { RunCpu(kCausal); }

TEST(ActivationOpTest, Relu_CUDA) {
  const ProviderApi* cuda = TryGetCudaProvider();
  int compute_capability = 0;
  if (cuda == nullptr || !CudaFailure(*cuda, &compute_capability).empty()) return;  // no provider to loop over
  std::vector<float> output(300);
  std::vector<float> input(300);
  for (int i = 0; i < 300; ++i) input[i] = static_cast<float>(i % 7 - 3);
  const Status status = cuda->relu(input.data(), output.data(), 300);
  ASSERT_TRUE(status.IsOK()) << status.message;
  for (int i = 0; i < 300; ++i) ASSERT_EQ(output[i], input[i] > 0.0f ? input[i] : 0.0f);
}

}  // namespace test
}  // namespace onnxruntime
