// IEEE 754 binary16 by plain arithmetic: the tests' own, so that they share no code with what they judge.
#pragma once

#include <math.h>
#include <stdint.h>

namespace onnxruntime {
namespace test {

inline float HalfToFloat(uint16_t half) {
  const int exponent = (half >> 10) & 0x1F;
  const int fraction = half & 0x3FF;
  float magnitude;
  if (exponent == 31)
    magnitude = fraction == 0 ? INFINITY : NAN;
  else if (exponent == 0)
    magnitude = ldexpf(static_cast<float>(fraction), -24);
  else
    magnitude = ldexpf(static_cast<float>(fraction + 1024), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even.
inline uint16_t FloatToHalf(float value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return sign | 0x7E00;
  const float magnitude = fabsf(value);
  if (magnitude >= 65520.0f) return sign | 0x7C00;
  int exponent = magnitude < 6.103515625e-5f ? -14 : ilogbf(magnitude);
  float fraction = nearbyintf(ldexpf(magnitude, 10 - exponent));
  if (fraction >= 2048.0f) {
    fraction /= 2.0f;
    ++exponent;
  }
  const int bits = static_cast<int>(fraction);
  return sign | static_cast<uint16_t>(bits < 1024 ? bits : ((exponent + 15) << 10) + bits - 1024);
}

}  // namespace test
}  // namespace onnxruntime
