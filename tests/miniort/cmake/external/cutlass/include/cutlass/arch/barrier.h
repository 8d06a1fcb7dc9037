// Waits for the block's other threads between loading a tile and reading it.
#pragma once

#include "cutlass/cutlass.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#include "cutlass/arch/barrier_sm90.h"
#else

namespace cutlass {
namespace arch {

CUTLASS_DEVICE void tile_barrier() {
#if defined(__CUDA_ARCH__)
  __syncthreads();
#endif
}

}  // namespace arch
}  // namespace cutlass

#endif
