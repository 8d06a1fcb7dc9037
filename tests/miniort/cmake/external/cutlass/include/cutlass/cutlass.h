// Marks functions for host and device, so that every unit reads the same in both compilers.
#pragma once

#if defined(__CUDACC__)
#define CUTLASS_HOST_DEVICE __forceinline__ __device__ __host__
#define CUTLASS_DEVICE __forceinline__ __device__
#define CUTLASS_UNROLL _Pragma("unroll")
#else
#define CUTLASS_HOST_DEVICE inline
#define CUTLASS_DEVICE inline
#define CUTLASS_UNROLL
#endif
