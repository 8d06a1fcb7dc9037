// Attention in three kernels with the whole score matrix in memory: the path that every shape can take.
#pragma once

#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace cuda {

Status UnfusedAttention(const DeviceAttention& attention);

}  // namespace cuda
}  // namespace onnxruntime
