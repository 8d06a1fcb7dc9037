#include "test/unittest_util/provider_bridge.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace onnxruntime {
namespace test {

int LogLevel() {
  static const int level = [] {
    const char* value = getenv("ORT_UNIT_TEST_MAIN_LOG_LEVEL");
    return value != nullptr && *value != '\0' ? atoi(value) : static_cast<int>(kWarning);
  }();
  return level;
}

void Log(int severity, const char* file, int line, const char* function, const char* message) {
  if (severity < LogLevel()) return;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  tm local;
  localtime_r(&now.tv_sec, &local);
  char stamp[32];
  strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
  fprintf(stderr, "%s.%09ld [%c:onnxruntime:Default, %s:%d %s] %s\n", stamp, now.tv_nsec, "VIWEF"[severity], file,
          line, function, message);
}

#if MINIORT_STATIC_PROVIDER

static const ProviderApi* OpenProvider(const HostApi* host) { return GetProvider(host); }

#else

// The folder of the running executable, as the loader names it: what the program was started as.
static std::string RuntimePath() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&LogLevel), &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string name = info.dli_fname;
  return name.substr(0, name.rfind('/') + 1);
}

static const ProviderApi* OpenProvider(const HostApi* host) {
  const std::string path = RuntimePath() + "libonnxruntime_providers_cuda.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = library != nullptr ? dlsym(library, "GetProvider") : nullptr;
  if (entry == nullptr) {
    const char* error = dlerror();
    const std::string message = "Failed to load library " + path + " with error: " + (error != nullptr ? error : "?") +
                                ". The CUDA execution provider is not available, the CPU runs instead.";
    Log(kError, "provider_bridge.cc", __LINE__, "TryGetProviderInfo_CUDA", message.c_str());
    return nullptr;
  }
  return reinterpret_cast<decltype(&GetProvider)>(entry)(host);
}

#endif

const ProviderApi* TryGetCudaProvider() {
  static const HostApi host = {LogLevel(), Log};
  static const ProviderApi* const provider = OpenProvider(&host);
  return provider;
}

std::string CudaFailure(const ProviderApi& provider, int* compute_capability) {
  return provider.device(compute_capability).message;
}

}  // namespace test
}  // namespace onnxruntime
