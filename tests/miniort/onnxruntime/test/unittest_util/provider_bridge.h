// Opens the CUDA provider for the test process, once, when a test first asks for it.
#pragma once

#include <string>

#include "core/providers/shared/provider_api.h"

namespace onnxruntime {
namespace test {

// The provider, or null where it cannot be opened; then the reason is on stderr and the CPU is all there is.
const ProviderApi* TryGetCudaProvider();

// Why no test can run on a GPU here (`CUDA failure 100: ...`); empty where one can. Needs an opened provider.
std::string CudaFailure(const ProviderApi& provider, int* compute_capability);

// ORT_UNIT_TEST_MAIN_LOG_LEVEL, or kWarning.
int LogLevel();

void Log(int severity, const char* file, int line, const char* function, const char* message);

}  // namespace test
}  // namespace onnxruntime
