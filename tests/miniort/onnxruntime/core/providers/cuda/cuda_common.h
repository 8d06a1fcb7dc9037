// What every unit of the provider starts from: the CUDA runtime, or its stand-in where the host compiles the units.
#pragma once

#include <stdint.h>

#include "core/providers/cuda/unit_record.h"
#include "core/providers/shared/provider_api.h"
#include "onnxruntime_config.h"

#if MINIORT_HOST_ONLY
#include "core/providers/cuda/host_runtime.h"
#else
#include <cuda_runtime_api.h>
#endif

#if defined(__CUDACC__)
// A kernel's name with commas in it goes through a pointer first.
#define MINIORT_LAUNCH(kernel, grid, block, stream, ...) kernel<<<grid, block, 0, stream>>>(__VA_ARGS__)
#endif

namespace onnxruntime {
namespace cuda {

// The error as `CUDA failure <number>: <text>`, and where it came from.
Status CudaStatus(cudaError_t error, const char* expression, const char* file, int line);

#define CUDA_RETURN_IF_ERROR(expression)                                                               \
  do {                                                                                                 \
    const cudaError_t miniort_error = (expression);                                                    \
    if (miniort_error != cudaSuccess)                                                                  \
      return ::onnxruntime::cuda::CudaStatus(miniort_error, #expression, __FILE__, __LINE__);          \
  } while (false)

#define ORT_RETURN_IF_ERROR(expression)                        \
  do {                                                         \
    const ::onnxruntime::Status miniort_status = (expression); \
    if (!miniort_status.IsOK()) return miniort_status;         \
  } while (false)

// Memory of the device, freed with the object.
class DeviceBuffer {
 public:
  DeviceBuffer() : data_(nullptr) {}
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  Status Allocate(size_t bytes);
  // Allocates and fills; without a source the buffer stays empty.
  Status Upload(const void* source, size_t bytes);
  Status Download(void* target, size_t bytes) const;

  template <typename T>
  T* As() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
};

// The host's logger and this process's GPU.
const HostApi& Host();
Status ComputeCapability(int* compute_capability);

// A switch in the environment: set, and not to 0.
bool IsSwitchedOn(const char* variable);

}  // namespace cuda
}  // namespace onnxruntime
