// Lets a test go wrong on demand, for tests of whatever judges this process. Each variable names one test,
// Suite.Test, or is unset:
//   MINIORT_TEST_CRASH         the process dies in it
//   MINIORT_TEST_HANG          it never ends
//   MINIORT_TEST_FAIL          it fails
//   MINIORT_TEST_RETURN_EARLY  it returns before it asked for any execution provider, and passes
//   MINIORT_TEST_UNFUSED       memory efficient attention is switched off in it
// and for the whole process:
//   MINIORT_CRASH_AT_EXIT=1    it dies after the last result was reported
// The provider reads MINIORT_CUDA_FAILURE=<number>: the GPU cannot be used, for that reason of CUDA's;
// and in MINIORT_HOST_ONLY builds MINIORT_SIMULATED_GPU=<compute capability>: see core/providers/cuda/host_runtime.h.
#pragma once

namespace onnxruntime {
namespace test {

// Whether `variable` names this test.
bool IsSimulated(const char* variable, const char* suite, const char* name);

// Crashes or hangs, where that is asked of this test.
void SimulateAccidents(const char* suite, const char* name);

void ArmCrashAtExit();

}  // namespace test
}  // namespace onnxruntime
