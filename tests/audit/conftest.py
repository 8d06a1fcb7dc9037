"""A small checkout of ONNX Runtime's shape, built for real, and what the audit says of it."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tasks.auditing import audit_checkout
from tasks.report.audit_table import as_document
from tasks.session import Session

FOLDER = "onnxruntime/contrib_ops/cuda/bert/cutlass_fmha"
PROVIDER = "onnxruntime_providers_cuda"
CMAKELISTS = """\
cmake_minimum_required(VERSION 3.25)
project(onnxruntime LANGUAGES CXX)
set(onnxruntime_USE_CUDA ON CACHE BOOL "")
cmake_path(SET root NORMALIZE "${PROJECT_SOURCE_DIR}/..")
set(fmha "${root}/FOLDER")
set(units ${fmha}/fmha_sm50.cu ${fmha}/fmha_sm80.cu)
set_source_files_properties(${units} PROPERTIES LANGUAGE CXX)
if(USER_ONLY)
  string(REPLACE "-MD" "-MMD" CMAKE_DEPFILE_FLAGS_CXX "${CMAKE_DEPFILE_FLAGS_CXX}")
endif()
if(NO_DEPFILE)
  set(CMAKE_DEPFILE_FLAGS_CXX "")
endif()
include_directories(${folder_kind} "${root}/shadow" "${root}/onnxruntime")
if(OBJECTS)
  add_library(provider_obj OBJECT ${units})
  set_target_properties(provider_obj PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set(units $<TARGET_OBJECTS:provider_obj>)
endif()
add_library(onnxruntime_providers_cuda MODULE ${units})
add_executable(onnxruntime_provider_test main.cc)
add_executable(python_module main.cc)
add_custom_command(TARGET python_module POST_BUILD COMMAND ${CMAKE_COMMAND} -E copy
                   $<TARGET_FILE:onnxruntime_providers_cuda> "${PROJECT_BINARY_DIR}/capi/")
add_dependencies(python_module onnxruntime_providers_cuda)
if(TEST_DEPENDS)
  add_dependencies(onnxruntime_provider_test onnxruntime_providers_cuda)
endif()
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/capi")
""".replace("FOLDER", FOLDER)

_copies = itertools.count()


@dataclass
class Project:
    """One checkout with one build directory."""

    root: Path
    build_dir: Path
    generator: str
    environ: dict[str, str]

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    @property
    def header(self) -> Path:
        return self.folder / "kernel_forward.h"

    @property
    def is_make(self) -> bool:
        return self.generator == "Unix Makefiles"

    def run(self, *words: str, check: bool = True) -> bool:
        done = subprocess.run(words, cwd=self.build_dir, env=self.environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.returncode == 0

    def configure(self, *defines: str) -> Project:
        self.build_dir.mkdir(parents=True, exist_ok=True)
        self.run("cmake", "-S", str(self.root / "cmake"), "-B", str(self.build_dir), "-G", self.generator,
                 "-DCMAKE_BUILD_TYPE=Release", *(f"-D{define}" for define in defines))
        return self

    def build(self, target: str = PROVIDER, check: bool = True) -> Project:
        self.run("cmake", "--build", str(self.build_dir), "--target", target, check=check)
        return self

    def edit(self, revision: int, header: Path | None = None) -> None:
        (header or self.header).write_text(f"#define REVISION {revision}\n")

    def revision(self, provider: Path | None = None, unit: str = "fmha_sm80") -> int:
        """What the linked code says; from a copy, since a library is opened once a path."""
        copy = self.root / f"opened-{next(_copies)}.so"
        shutil.copy(provider or self.build_dir / f"lib{PROVIDER}.so", copy)
        return int(getattr(ctypes.CDLL(str(copy)), unit)())

    def objects(self) -> list[Path]:
        return sorted(self.build_dir.glob("CMakeFiles/*.dir/**/fmha_sm*.o"))

    def record_files(self, *names: str) -> list[Path]:
        return [path for name in names for path in self.build_dir.glob(f"CMakeFiles/*.dir/{name}")]

    def session(self, **options: str) -> Session:
        return Session(self.root, self.root, self.environ,
                       {"ort_root": str(self.root), "build_dir": str(self.build_dir), **options})

    def audit(self, **options: str) -> dict[str, Any]:
        return as_document(audit_checkout(self.session(**options)))

    def cell(self, document: dict[str, Any] | None = None, unit: str = "fmha_sm80",
             header: str = "kernel_forward.h") -> dict[str, Any]:
        document = document or self.audit()
        rows = {row["name"]: row for row in document["units"]}
        return next(cell for cell in rows[unit]["cells"] if cell["header"].endswith("/" + header))


@pytest.fixture(params=["Unix Makefiles", "Ninja"], ids=["make", "ninja"])
def generator(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def write_checkout(root: Path) -> None:
    """The sources: kernel_forward.h below fmha_launch_template.h below two units."""
    folder = root / FOLDER
    for made in (folder, root / "tools" / "ci_build", root / "cmake", root / "shadow"):
        made.mkdir(parents=True)
    (root / "tools" / "ci_build" / "build.py").touch()
    (root / "cmake" / "CMakeLists.txt").write_text(CMAKELISTS)
    (root / "cmake" / "main.cc").write_text("int main() {}\n")
    (folder / "kernel_forward.h").write_text("#define REVISION 1\n")
    (folder / "fmha_launch_template.h").write_text(
        '#include <contrib_ops/cuda/bert/cutlass_fmha/kernel_forward.h>\n')
    for name in ("fmha_sm50", "fmha_sm80"):
        (folder / f"{name}.cu").write_text(
            f'#include "fmha_launch_template.h"\nextern "C" int {name}() {{ return REVISION; }}\n')


@pytest.fixture
def project(tmp_path: Path, generator: str) -> Project:
    """Sources written, nothing configured."""
    root = tmp_path / "ort"
    write_checkout(root)
    environ = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return Project(root, root / "build" / "Linux" / "Release", generator, environ)


@pytest.fixture
def built(project: Project) -> Callable[..., Project]:
    """Configure with these definitions and build the provider."""
    return lambda *defines: project.configure(*defines).build()


@pytest.fixture
def write_receipts() -> Callable[[Project], None]:
    """Receipts for the objects as they are now, as a guarded build writes them."""
    from tasks.evidence.receipts import UnitReceipt
    from tasks.evidence.snapshot import Observer

    def write(project: Project) -> None:
        session = project.session()
        now = Observer()
        for unit in session.survey().units.values():
            inputs = {path: (now.identity(path), now.digest(path)) for path in unit.facts.inputs}
            session.store.save_unit(UnitReceipt(
                unit.name, unit.facts.source, unit.facts.object, session.store.home, now.identity(unit.facts.object),
                now.digest(unit.facts.object), inputs, unit.facts.recipe, 1000.0))

    return write


Built = Callable[..., Project]
# What exists for one generator alone: ninja takes a depfile over right after the compile.
MAKE = pytest.mark.parametrize("generator", ["Unix Makefiles"])
NINJA = pytest.mark.parametrize("generator", ["Ninja"])


def agrees(project: Project, document: dict, edit: Callable[[], object], stale: bool) -> None:
    """The audit's cells, then the edit and the build: both say `stale`."""
    cell = project.cell(document)
    edit()
    project.build(check=False)
    held = project.revision()
    assert (held != 2) == stale, f"the build holds revision {held}"
    assert cell["recompiles"] == (not stale), cell
    assert cell["state"] != ("tracked" if stale else "not tracked"), cell
    assert cell["confirmed"] is not False, cell
    for row in document["units"]:
        assert {c["state"] for c in row["cells"] if c["header"] == cell["header"]} == {cell["state"]}


def kinds(document: dict, where: str = "causes") -> set[str]:
    return {found["kind"] for found in document[where]}
