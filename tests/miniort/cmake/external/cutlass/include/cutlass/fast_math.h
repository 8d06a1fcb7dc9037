// The few functions that the kernels take from a maths library; as built-ins, to spare the units <math.h>.
#pragma once

#include "cutlass/cutlass.h"

namespace cutlass {

constexpr float kMinusInfinity = -__builtin_huge_valf();

CUTLASS_HOST_DEVICE float fast_max(float a, float b) { return a > b ? a : b; }

CUTLASS_HOST_DEVICE int fast_min(int a, int b) { return a < b ? a : b; }

CUTLASS_HOST_DEVICE float fast_exp(float x) { return __builtin_expf(x); }

CUTLASS_HOST_DEVICE float fast_sqrt(float x) { return __builtin_sqrtf(x); }

constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

}  // namespace cutlass
