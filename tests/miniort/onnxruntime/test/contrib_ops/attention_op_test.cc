// The contrib domain's attention operators. Like ONNX Runtime's operator tests they loop over the execution providers
// that there are: where there is none they return at once, and pass.

#include "gtest/gtest.h"
#include "test/providers/reference_attention.h"
#include "test/unittest_util/provider_bridge.h"
#include "test/unittest_util/scoped_environment.h"
#include "test/unittest_util/simulate.h"

namespace onnxruntime {
namespace test {

namespace {

// The CUDA provider where it can be opened and has a usable GPU.
const ProviderApi* UsableCuda() {
  const ProviderApi* cuda = TryGetCudaProvider();
  int compute_capability = 0;
  return cuda != nullptr && CudaFailure(*cuda, &compute_capability).empty() ? cuda : nullptr;
}

void RunOpTest(AttentionOp op, const AttentionShape& shape, bool is_half, bool with_bias = false,
               const char* switched_off = "") {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  SimulateAccidents(test.test_suite_name(), test.name());
  if (IsSimulated("MINIORT_TEST_RETURN_EARLY", test.test_suite_name(), test.name())) return;
  if (IsSimulated("MINIORT_TEST_FAIL", test.test_suite_name(), test.name())) FAIL() << "failed on demand";
  const ScopedEnvironmentVariable off(switched_off, "1");
  const bool unfused = IsSimulated("MINIORT_TEST_UNFUSED", test.test_suite_name(), test.name());
  const ScopedEnvironmentVariable mea_off(unfused ? "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION" : "", "1");
  if (const ProviderApi* cuda = UsableCuda()) {
    AttentionProblem problem(op, shape, is_half, with_bias);
    const Status status = cuda->attention(problem.Arguments());
    ASSERT_TRUE(status.IsOK()) << status.message;
    EXPECT_LE(problem.Error(), problem.Tolerance());
  }
  if (!is_half) {  // the CPU has no fp16 kernel
    AttentionProblem problem(op, shape, false, with_bias);
    problem.RunOnCpu();
    EXPECT_LE(problem.Error(), problem.Tolerance());
  }
}

const AttentionShape kBatch1 = {1, 2, 2, 8, 8, 16, false, {}};
const AttentionShape kBatch2Causal = {2, 4, 4, 33, 33, 32, true, {}};
const AttentionShape kGrouped = {2, 4, 2, 17, 40, 32, true, {}};

}  // namespace

TEST(ContribOpAttentionTest, AttentionBatch1) { RunOpTest(AttentionOp::kContribAttention, kBatch1, false, true); }

TEST(ContribOpAttentionTest, AttentionBatch1_Float16) {
  RunOpTest(AttentionOp::kContribAttention, kBatch1, true, true);
}

TEST(ContribOpAttentionTest, Causal_EfficientAttention_Float16) {
  RunOpTest(AttentionOp::kContribAttention, kBatch2Causal, true, true, "ORT_DISABLE_FLASH_ATTENTION");
}

TEST(MultiHeadAttentionTest, SelfAttention_Batch2_Causal) {
  RunOpTest(AttentionOp::kMultiHeadAttention, kBatch2Causal, false);
}

TEST(GroupQueryAttentionTest, Grouped_Causal_Float16) {
  RunOpTest(AttentionOp::kGroupQueryAttention, kGrouped, true, false, "ORT_DISABLE_FLASH_ATTENTION");
}

}  // namespace test
}  // namespace onnxruntime
