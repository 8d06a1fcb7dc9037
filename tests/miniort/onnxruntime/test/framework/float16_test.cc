// A framework test: needs no provider.

#include "gtest/gtest.h"
#include "test/unittest_util/float16.h"

namespace onnxruntime {
namespace test {

TEST(MLFloat16Test, EveryFiniteHalfSurvivesTheWayThroughFloat) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    if ((half & 0x7C00) == 0x7C00) continue;
    ASSERT_EQ(FloatToHalf(HalfToFloat(half)), half);
  }
}

TEST(MLFloat16Test, RoundsToNearestEven) {
  EXPECT_EQ(FloatToHalf(1.0f + 1.0f / 2048.0f), 0x3C00);
  EXPECT_EQ(FloatToHalf(1.0f + 3.0f / 2048.0f), 0x3C02);
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7BFF);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7C00);
}

}  // namespace test
}  // namespace onnxruntime
