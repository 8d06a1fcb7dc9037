// Only the command line brings this in (-include), as the plugin builds of newer trees do.
#pragma once

#include "core/providers/cuda/plugin/plugin_version.h"

namespace onnxruntime {
namespace cuda {

constexpr int kProviderIsPlugin = ORT_PLUGIN_API_VERSION;

}  // namespace cuda
}  // namespace onnxruntime
