// IEEE 754 binary16, without the toolkit's own header: that one costs more compile time than a whole unit.
#pragma once

#include <stdint.h>

#include "cutlass/cutlass.h"

namespace cutlass {

struct half_t {
  uint16_t storage;
};

namespace detail {

union FloatBits {
  float value;
  uint32_t bits;
};

inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t fraction = half & 0x3FFu;
  FloatBits out;
  if (exponent == 0) {  // zero and subnormal: fraction * 2^-24
    out.value = static_cast<float>(fraction) * 5.9604644775390625e-8f;
    out.bits |= sign;
  } else if (exponent == 31) {
    out.bits = sign | 0x7F800000u | (fraction << 13);
  } else {
    out.bits = sign | ((exponent + 112) << 23) | (fraction << 13);
  }
  return out.value;
}

// Rounds to nearest, ties to even.
inline uint16_t float_to_half(float value) {
  FloatBits in;
  in.value = value;
  const uint16_t sign = static_cast<uint16_t>((in.bits >> 16) & 0x8000u);
  const uint32_t magnitude = in.bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;   // NaN
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // rounds to infinity
  if (magnitude < 0x38800000u) {                        // subnormal: let the float adder round at 2^-24
    FloatBits shifted;
    shifted.bits = magnitude;
    shifted.value += 0.5f;
    return sign | static_cast<uint16_t>(shifted.bits - 0x3F000000u);
  }
  return sign | static_cast<uint16_t>((magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13);
}

}  // namespace detail

CUTLASS_HOST_DEVICE float to_float(float value) { return value; }

CUTLASS_HOST_DEVICE float to_float(half_t value) {
#if defined(__CUDA_ARCH__)
  float out;
  asm("cvt.f32.f16 %0, %1;" : "=f"(out) : "h"(value.storage));
  return out;
#else
  return detail::half_to_float(value.storage);
#endif
}

template <typename Element>
CUTLASS_HOST_DEVICE Element from_float(float value);

template <>
CUTLASS_HOST_DEVICE float from_float<float>(float value) {
  return value;
}

template <>
CUTLASS_HOST_DEVICE half_t from_float<half_t>(float value) {
  half_t out;
#if defined(__CUDA_ARCH__)
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.storage) : "f"(value));
#else
  out.storage = detail::float_to_half(value);
#endif
  return out;
}

}  // namespace cutlass
