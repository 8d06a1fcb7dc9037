// Stands in for the CUDA runtime where MINIORT_HOST_ONLY compiles the .cu units as C++: a kernel is a function, a
// launch calls it once a thread. There is no GPU (failure 100), unless MINIORT_SIMULATED_GPU=<compute capability>
// asks for one that is played by the host: for tests of what stands around the kernels, never of the kernels.
#pragma once

#include <stdlib.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

typedef int cudaError_t;
typedef void* cudaStream_t;
enum { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNoDevice = 100 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76 };

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

static dim3 gridDim, blockDim, blockIdx, threadIdx;

#define MINIORT_LAUNCH(kernel, grid, block, stream, ...)                              \
  do {                                                                                \
    (void)(stream);                                                                   \
    gridDim = (grid);                                                                 \
    blockDim = (block);                                                               \
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; ++blockIdx.y)                        \
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)                      \
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) kernel(__VA_ARGS__); \
  } while (false)

static inline int miniort_simulated_gpu() {
  const char* capability = getenv("MINIORT_SIMULATED_GPU");
  return capability != nullptr ? atoi(capability) : 0;
}

static inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = miniort_simulated_gpu() > 0 ? 1 : 0;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

static inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const int capability = miniort_simulated_gpu();
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? capability / 10 : capability % 10;
  return cudaSuccess;
}

static inline cudaError_t cudaMalloc(void** data, size_t bytes) {
  *data = malloc(bytes);
  return *data != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFree(void* data) {
  free(data);
  return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind) {
  memcpy(target, source, bytes);
  return cudaSuccess;
}

static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

static inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case 35: return "CUDA driver version is insufficient for CUDA runtime version";
    case 46: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case 209: return "no kernel image is available for execution on the device";
    default: return "unknown error";
  }
}
