// The ONNX domain's Attention.
#pragma once

#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace cuda {

Status Attention(const DeviceAttention& attention);

}  // namespace cuda
}  // namespace onnxruntime
