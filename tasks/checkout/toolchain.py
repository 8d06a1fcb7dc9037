"""The compilers of a build directory and the folders of headers that they bring along, as CMake found them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from tasks.checkout.cmake_cache import compiler_facts
from tasks.checkout.compile_line import CompileLine

__all__ = ["Toolchain", "host_compiler"]


class Toolchain:
    """What CMake found out about the compilers of `build_dir`."""

    def __init__(self, build_dir: Path) -> None:
        self._build_dir = build_dir

    @cached_property
    def _known(self) -> dict[str, dict[str, str]]:
        return {language: compiler_facts(self._build_dir, language) for language in ("CUDA", "CXX")}

    @cached_property
    def compilers(self) -> dict[str, Path]:
        """Compilers by role (``CUDA``, ``CXX``, ``host``) as CMake found them, existing files only."""
        cuda, cxx = self._known["CUDA"], self._known["CXX"]
        named = {
            "CUDA": cuda.get("CMAKE_CUDA_COMPILER", ""),
            "host": cuda.get("CMAKE_CUDA_HOST_COMPILER", "") or cuda.get("CMAKE_CUDA_HOST_LINK_LAUNCHER", ""),
            "CXX": cxx.get("CMAKE_CXX_COMPILER", ""),
        }
        return {role: Path(name) for role, name in named.items() if name and Path(name).is_file()}

    @cached_property
    def system_folders(self) -> tuple[str, ...]:
        """Header folders of the system and the toolkit (real paths): they count through the compilers."""
        cuda, cxx = self._known["CUDA"], self._known["CXX"]
        lists = (cuda.get("CMAKE_CUDA_IMPLICIT_INCLUDE_DIRECTORIES", ""),
                 cuda.get("CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES", ""),
                 cxx.get("CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES", ""))
        folders = {os.path.realpath(folder) for listed in lists for folder in listed.split(";") if folder}
        return tuple(sorted(folders | {"/usr/include"}))


def host_compiler(line: CompileLine, environ: Mapping[str, str]) -> str | None:
    """Path of the host compiler that nvcc takes; None where it finds none, and for what nvcc does not compile.

    As `nvcc --dryrun` shows it (13.0): of the folder that the compile names its `gcc`; a name without a
    slash that is no folder, and `gcc` where it names nothing, is looked for in nvcc's own folder, then on `PATH`.
    """
    if line.language != "CUDA":
        return None
    name = line.ccbin or "gcc"
    path = os.path.join(line.workdir, name)
    if line.ccbin and os.path.isdir(path):
        path = os.path.join(path, "gcc")
    elif "/" not in name:
        own = os.path.dirname(os.path.join(line.workdir, line.compiler))
        path = shutil.which(name, path=os.pathsep.join((own, environ.get("PATH", "")))) or ""
    return path if os.path.isfile(path) else None
