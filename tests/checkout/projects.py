"""Small CMake projects of ONNX Runtime's shape, configured and built for real, with every compile written down."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.checkout.compile_line import COMPILER_VARIABLES
from tasks.checkout.locate import Location, locate
from tasks.checkout.model import Checkout, Unit, read_checkout

# The words of every compile, each ended by a zero byte, one file a compile: they run at the same time.
_LAUNCHER = """#!/bin/sh
printf '%s\\0' "$PWD" "$@" > "${0%/*}/compiles/$$"
exec "$@"
"""


@dataclass(frozen=True)
class Compile:
    """One compile as it really ran."""

    workdir: str
    words: tuple[str, ...]


class Project:
    """A checkout in `root` with CMake's source directory in `root/cmake`, and one build directory."""

    def __init__(self, root: Path, generator: str, lists: str, sources: dict[str, str],
                 config: str = "Release") -> None:
        self.root = root
        self.generator = generator
        self.build_dir = root / "build" / "Linux" / config
        files = {"tools/ci_build/build.py": "", "cmake/CMakeLists.txt": lists, "launcher": _LAUNCHER, **sources}
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (root / "launcher").chmod(0o755)

    def _run(self, words: Sequence[str]) -> None:
        environ = {name: value for name, value in os.environ.items()
                   if name not in COMPILER_VARIABLES and not name.endswith("FLAGS")}
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def configure(self, *options: str) -> Project:
        launcher = self.root / "launcher"
        self._run(["cmake", "-G", self.generator, "-S", str(self.root / "cmake"), "-B", str(self.build_dir),
                   "-DCMAKE_BUILD_TYPE=Release", "-Donnxruntime_USE_CUDA=ON",
                   f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CUDA_COMPILER_LAUNCHER={launcher}", *options])
        return self

    def build(self) -> Project:
        (self.root / "compiles").mkdir()
        self._run(["cmake", "--build", str(self.build_dir), "--parallel", "2"])
        return self

    @property
    def compiles(self) -> dict[str, Compile]:
        """What really ran, by the absolute path of the object."""
        found = {}
        for record in (self.root / "compiles").iterdir():
            workdir, *words = record.read_text().split("\0")[:-1]
            if "-c" in words:
                found[os.path.join(workdir, words[words.index("-o") + 1])] = Compile(workdir, tuple(words))
        return found

    @property
    def location(self) -> Location:
        return locate(self.root, self.build_dir, self.root)

    def checkout(self, link_mode: str = "auto", test: str = "onnxruntime_provider_test") -> Checkout:
        return read_checkout(self.location, link_mode, test)

    def units(self, **options: str) -> dict[str, Unit]:
        return {unit.name: unit for unit in self.checkout(**options).units}

    def copy(self, folder: Path) -> Path:
        """A copy of the build directory."""
        shutil.copytree(self.build_dir, folder, symlinks=True)
        return folder
