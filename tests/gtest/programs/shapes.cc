// Every shape of name that gtest prints: plain, parameterised, typed, disabled; and log lines between them.
#include <gtest/gtest.h>

#include <string>

static bool noise = [] { puts("Info: loading. Done."); puts("Running."); fputs("no end of line ", stdout); return true; }();

TEST(AttentionTest, Attention_Causal_MEA_FP16_CUDA) {}
TEST(AttentionTest, Attention_Causal_FP32_CUDA) {}
TEST(AttentionTest, DISABLED_Attention_Slow_MEA) {}
TEST(DISABLED_OldTest, One) {}
class Sizes : public testing::TestWithParam<std::string> {};
TEST_P(Sizes, Works) {}
INSTANTIATE_TEST_SUITE_P(All, Sizes, testing::Values("a", "x\ny.  # z", "DISABLED_"));
template <class T> class Typed : public testing::Test {};
using Types = testing::Types<int, float>;
TYPED_TEST_SUITE(Typed, Types);
TYPED_TEST(Typed, Holds) {}
struct BrokenSetUp : testing::Test { static void SetUpTestSuite() { if (getenv("FAKE_BREAK")) FAIL() << "no fixture"; } };
TEST_F(BrokenSetUp, One) {}
