// Only the device passes for sm_90 and newer see this file.
#pragma once

#include "cutlass/cutlass.h"

namespace cutlass {
namespace arch {

CUTLASS_DEVICE void tile_barrier() { asm volatile("barrier.cta.sync 0;" ::: "memory"); }

}  // namespace arch
}  // namespace cutlass
