// Tells from the opened provider which revision of each watched header every unit was compiled with.
#pragma once

#include <string>

#include "core/providers/shared/provider_api.h"

namespace onnxruntime {
namespace test {

// One line a unit, sorted: `<unit> <header>=<revision> ...`. A unit is named by its stem where no other has it, else
// by the shortest trailing path, with extension, that no other of that stem has.
std::string UnitRevisions(const ProviderApi& provider);

}  // namespace test
}  // namespace onnxruntime
