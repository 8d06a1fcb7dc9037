// Device memory, the GPU that is used, and the text of CUDA's errors.

#include "core/providers/cuda/cuda_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace onnxruntime {
namespace cuda {

Status CudaStatus(cudaError_t error, const char* expression, const char* file, int line) {
  Status status = {};
  const char* base = strrchr(file, '/');
  snprintf(status.message, sizeof(status.message), "CUDA failure %d: %s ; GPU=0 ; file=%s ; line=%d ; expr=%s",
           static_cast<int>(error), cudaGetErrorString(error), base != nullptr ? base + 1 : file, line, expression);
  return status;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

Status DeviceBuffer::Allocate(size_t bytes) {
  CUDA_RETURN_IF_ERROR(cudaMalloc(&data_, bytes > 0 ? bytes : 1));
  return Status{};
}

Status DeviceBuffer::Upload(const void* source, size_t bytes) {
  if (source == nullptr) return Status{};
  ORT_RETURN_IF_ERROR(Allocate(bytes));
  CUDA_RETURN_IF_ERROR(cudaMemcpy(data_, source, bytes, cudaMemcpyHostToDevice));
  return Status{};
}

Status DeviceBuffer::Download(void* target, size_t bytes) const {
  CUDA_RETURN_IF_ERROR(cudaMemcpy(target, data_, bytes, cudaMemcpyDeviceToHost));
  return Status{};
}

Status ComputeCapability(int* compute_capability) {
  // Plays a machine whose driver or GPU cannot be used.
  if (const char* failure = getenv("MINIORT_CUDA_FAILURE")) {
    CUDA_RETURN_IF_ERROR(static_cast<cudaError_t>(atoi(failure)));
  }
  int count = 0;
  CUDA_RETURN_IF_ERROR(cudaGetDeviceCount(&count));
  int major = 0;
  int minor = 0;
  CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  *compute_capability = major * 10 + minor;
  return Status{};
}

bool IsSwitchedOn(const char* variable) {
  const char* value = getenv(variable);
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}

}  // namespace cuda
}  // namespace onnxruntime
