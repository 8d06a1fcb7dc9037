"""The build graph as the generator wrote it: statements with an output, inputs and a command.

One small interface for Makefiles and Ninja, so that nothing else asks which generator it was.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Protocol

from tasks.checkout.cmake_cache import CMakeCache
from tasks.errors import UserError

__all__ = ["BuildGraph", "Statement", "read_graph"]


class Statement(NamedTuple):
    """One build statement. Paths are absolute; `command` is empty where nothing is run.

    `command` holds the words with response files not yet expanded; `workdir` is where it runs;
    `target` is the CMake target that the statement belongs to.
    """

    output: str
    inputs: tuple[str, ...]
    command: tuple[str, ...]
    workdir: str
    target: str

    @property
    def compiles(self) -> bool:
        """Whether this statement compiles one source file into one object."""
        return "-c" in self.command and self.output.endswith((".o", ".obj"))


class BuildGraph(Protocol):
    """What a build directory would build, asked from its own files."""

    def outputs_named(self, *names: str) -> list[str]:
        """Absolute paths of linked outputs whose file name is among `names`, outermost first."""

    def statement(self, output: str) -> Statement | None:
        """The statement that makes `output`; None for a source file or an unknown path."""

    def rule(self, output: str) -> Statement | None:
        """The statement that makes any file, such as a header of a custom command; slower than :meth:`statement`."""

    def configuring(self) -> Statement | None:
        """The statement that runs CMake again: its output is written anew by each run, its inputs are what CMake read.

        None where the build files do not hold it.
        """


def absolute(build_dir: Path, path: str) -> str:
    """`path` as the build files mean it: relative to the build directory, without `.` and `..` parts."""
    return os.path.normpath(os.path.join(build_dir, path))


def read_graph(build_dir: Path, cache: CMakeCache) -> BuildGraph:
    """The reader for this build directory's generator; :class:`UserError` for one that is not supported."""
    if cache.generator == "Unix Makefiles":
        from tasks.checkout.makefiles import MakefileGraph

        return MakefileGraph(build_dir, cache.made_in)
    if cache.generator in ("Ninja", "Ninja Multi-Config"):
        from tasks.checkout.ninja import NinjaGraph

        # With several configurations in one directory the build type says nothing: build.sh names the folder so.
        several = cache.generator == "Ninja Multi-Config"
        if several and not (build_dir / f"build-{build_dir.name}.ninja").is_file():
            raise UserError(f"{build_dir} holds several configurations (Ninja Multi-Config), and is named after none.",
                            f"configure one that is named after its configuration: {build_dir.parent}/Release")
        return NinjaGraph(build_dir, build_dir.name if several else cache.get("CMAKE_BUILD_TYPE"))
    raise UserError(f"{build_dir} uses the generator {cache.generator!r}; known are Unix Makefiles and Ninja.",
                    "configure again with --cmake_generator Ninja")
