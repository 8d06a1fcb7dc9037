"""A generated checkout of ONNX Runtime's real size: many small units, thousands of headers, one provider."""

from __future__ import annotations

from pathlib import Path

FMHA = "onnxruntime/contrib_ops/cuda/bert/cutlass_fmha"
WATCHED = ("kernel_forward", "fmha_launch_template", "memory_efficient_attention")
FAMILIES = ("fmha_sm50", "fmha_sm70", "fmha_sm75", "fmha_sm80")

_LISTS = """cmake_minimum_required(VERSION 3.20)
project(onnxruntime CXX)
option(onnxruntime_USE_CUDA "" ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
get_filename_component(ROOT "${PROJECT_SOURCE_DIR}/.." ABSOLUTE)
file(GLOB UNITS "${ROOT}/onnxruntime/*.cc" "${ROOT}/@FMHA@/*.cu")
set_source_files_properties(${UNITS} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++;-O0")
add_library(onnxruntime_providers_cuda MODULE ${UNITS})
set_target_properties(onnxruntime_providers_cuda PROPERTIES POSITION_INDEPENDENT_CODE ON)
foreach(NUMBER RANGE 9)
  list(APPEND FOLDERS "${ROOT}/include/part${NUMBER}")
endforeach()
target_include_directories(onnxruntime_providers_cuda PRIVATE "${ROOT}/onnxruntime" "${ROOT}" ${FOLDERS})
file(WRITE "${PROJECT_BINARY_DIR}/test.cc" "int main() { return 0; }")
add_executable(onnxruntime_provider_test "${PROJECT_BINARY_DIR}/test.cc")
add_dependencies(onnxruntime_provider_test onnxruntime_providers_cuda)
"""


def generate(root: Path, units: int = 700, headers: int = 3_000, each: int = 330) -> None:
    """Write the checkout to `root`: every unit sees `each` of the headers, fourteen see a watched one."""
    def write(name: str, text: str) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("tools/ci_build/build.py", "")
    write("cmake/CMakeLists.txt", _LISTS.replace("@FMHA@", FMHA))
    for name in WATCHED:
        write(f"{FMHA}/{name}.h", f"#pragma once\n#define {name}_revision 1\n")
    write(f"{FMHA}/fmha_launch_template.h",
          '#pragma once\n#include "kernel_forward.h"\n#include "memory_efficient_attention.h"\n')
    for number in range(headers):
        write(f"include/part{number % 10}/h{number}.h", f"#pragma once\nextern int h{number};\n" * 3)
    groups = max(1, headers // each)
    for group in range(groups):
        names = [f'#include "h{(group * each + at) % headers}.h"\n' for at in range(each)]
        write(f"include/part0/group{group}.h", "#pragma once\n" + "".join(names))
    for name in FAMILIES:
        write(f"{FMHA}/{name}.cu", f'#include "group0.h"\n#include "fmha_launch_template.h"\nint {name}() '
                                   "{ return kernel_forward_revision; }\n")
    for number in range(units - len(FAMILIES)):
        watched = f'#include "{FMHA}/memory_efficient_attention.h"\n' if number < 10 else ""
        write(f"onnxruntime/unit{number}.cc",
              f'#include "group{number % groups}.h"\n{watched}int unit{number}() {{ return {number}; }}\n')
