// One tag a generation; a kernel is compiled for a tag and then for every architecture of the build.
#pragma once

namespace cutlass {
namespace arch {

struct Sm50 {
  static constexpr int kMinComputeCapability = 50;
};
struct Sm70 {
  static constexpr int kMinComputeCapability = 70;
};
struct Sm75 {
  static constexpr int kMinComputeCapability = 75;
};
struct Sm80 {
  static constexpr int kMinComputeCapability = 80;
};

}  // namespace arch
}  // namespace cutlass
