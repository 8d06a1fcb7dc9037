// The flash path: fp16 on compute capability 8.0 and newer.
#pragma once

#include "core/providers/cuda/device_attention.h"

namespace onnxruntime {
namespace flash {

bool is_supported(const cuda::DeviceAttention& attention);

Status mha_fwd(const cuda::DeviceAttention& attention);

}  // namespace flash
}  // namespace onnxruntime
