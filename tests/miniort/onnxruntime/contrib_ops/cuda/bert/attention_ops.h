// The contrib domain's attention operators.
#pragma once

#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace contrib {
namespace cuda {

using onnxruntime::cuda::DeviceAttention;

Status Attention(const DeviceAttention& attention);
Status MultiHeadAttention(const DeviceAttention& attention);
Status GroupQueryAttention(const DeviceAttention& attention);

}  // namespace cuda
}  // namespace contrib
}  // namespace onnxruntime
