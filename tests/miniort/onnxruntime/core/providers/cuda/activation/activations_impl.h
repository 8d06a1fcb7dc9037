// Activations, in place. Nothing here knows attention.
#pragma once

#include "core/providers/cuda/cuda_common.h"

namespace onnxruntime {
namespace cuda {

Status Relu(float* data, int64_t count, cudaStream_t stream);

}  // namespace cuda
}  // namespace onnxruntime
