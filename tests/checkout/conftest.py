from __future__ import annotations

import pytest

from tests.checkout.projects import Project

GENERATORS = ["Unix Makefiles", "Ninja"]

# Names that need escapes somewhere between CMake, make, ninja, the shell and the compiler.
WEIRD_LISTS = r"""
cmake_minimum_required(VERSION 3.20)
project(weird LANGUAGES CXX)
set(src "${PROJECT_SOURCE_DIR}/../src")
add_library(part OBJECT "${src}/sub d/part one.cc" "${src}/sub$d/dollar.cc")
add_library(archive STATIC "${src}/archived.cc")
add_library(other SHARED "${src}/other.cc")
add_subdirectory("${src}/inner dir" "inner dir")
add_library(onnxruntime_providers_cuda MODULE "${src}/first.cc" "${src}/name.so.cc" $<TARGET_OBJECTS:part>
            $<TARGET_OBJECTS:inner>)
target_link_libraries(onnxruntime_providers_cuda PRIVATE archive other)
target_include_directories(onnxruntime_providers_cuda PRIVATE "${src}/in c$x" "${src}/ha\#sh" "${src}/co:lon"
                           "${src}/per%cent" "${src}/br[a]cket" "${src}/quo'te")
target_include_directories(onnxruntime_providers_cuda SYSTEM PRIVATE "${src}/sys tem")
target_compile_definitions(onnxruntime_providers_cuda PRIVATE "HEADER=\"he ader.h\"" "DOLLAR=a\\$b" "SEMI=\;")
target_compile_options(onnxruntime_providers_cuda PRIVATE "SHELL:-include \"${src}/for ced.h\"")
add_executable(onnxruntime_provider_test "${src}/test.cc")
add_executable(onnxruntime_test_all "${src}/test.cc")
"""
WEIRD_SOURCES = {
    "src/first.cc": "#include HEADER\n#include <hash.h>\n#include <colon.h>\n#include <percent.h>\n"
                    "#include <bracket.h>\n#include <quote.h>\n#include <system.h>\n",
    "src/in c$x/he ader.h": "", "src/ha#sh/hash.h": "", "src/co:lon/colon.h": "", "src/per%cent/percent.h": "",
    "src/br[a]cket/bracket.h": "", "src/quo'te/quote.h": "", "src/sys tem/system.h": "", "src/for ced.h": "",
    "src/sub d/part one.cc": "", "src/sub$d/dollar.cc": "", "src/archived.cc": "int archived;\n",
    "src/other.cc": "", "src/name.so.cc": "", "src/test.cc": "int main() {}\n",
    "src/inner dir/inner.cc": '#include "inner.h"\n', "src/inner dir/inner.h": "",
    "src/inner dir/CMakeLists.txt": "add_library(inner OBJECT inner.cc)\n",
}


@pytest.fixture(scope="session")
def weird_projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Project]:
    return {generator: Project(tmp_path_factory.mktemp("we ird $d'q%p @x") / "ort", generator, WEIRD_LISTS,
                               WEIRD_SOURCES).configure().build() for generator in GENERATORS}


@pytest.fixture(params=GENERATORS)
def weird(request: pytest.FixtureRequest, weird_projects: dict[str, Project]) -> Project:
    """A project full of names that need escapes, built with each generator."""
    return weird_projects[request.param]
