"""Finds the checkout and its build directory, and says in one line why a folder is not the one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.cmake_cache import CMakeCache, read_cache
from tasks.errors import UserError

__all__ = ["Location", "locate", "require_trust"]

_MARKS = ("tools/ci_build/build.py", "cmake/CMakeLists.txt")

# `build/Linux/Release` is two levels down; a level more leaves room for own layouts.
_SEARCH_DEPTH = 4


class Location(NamedTuple):
    """A checkout and the one build directory that is judged. Both paths are real paths."""

    ort_root: Path
    build_dir: Path
    cache: CMakeCache

    @property
    def copied_from(self) -> Path | None:
        """The folder in which CMake made this build directory, where that is another one than this."""
        if not self.cache.get("CMAKE_CACHEFILE_DIR"):
            return None
        made_in = self.cache.made_in
        return None if os.path.realpath(made_in) == str(self.build_dir) else made_in


def _is_checkout(folder: Path) -> bool:
    return all((folder / mark).is_file() for mark in _MARKS)


def _find_root(given: Path | None, start: Path) -> Path:
    if given is not None:
        if not _is_checkout(given):
            missing = next(mark for mark in _MARKS if not (given / mark).is_file())
            raise UserError(f"ort_root: {given} is not an ONNX Runtime checkout: {missing} is missing.",
                            "set ort_root in fmha.toml, or: doit TASK ort_root=/path/to/onnxruntime")
        return given
    for folder in (start, *start.parents):
        if _is_checkout(folder):
            return folder
    raise UserError(f"No ONNX Runtime checkout at or above {start}.",
                    "set ort_root in fmha.toml, or: doit TASK ort_root=/path/to/onnxruntime")


def _caches_below(folder: Path, depth: int = _SEARCH_DEPTH) -> Iterator[Path]:
    """`CMakeCache.txt` files; a build directory is not searched for others (`_deps/*-subbuild` has its own)."""
    cache = folder / "CMakeCache.txt"
    if cache.is_file():
        yield cache
        return
    if depth == 0:
        return
    try:
        folders = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    for inner in folders:
        yield from _caches_below(Path(inner), depth - 1)


def _objection(cache: CMakeCache, ort_root: Path) -> tuple[str, str] | None:
    """Why this build directory cannot be judged for `ort_root`, with its mend; None where it can."""
    here = cache.path.parent
    if os.path.realpath(cache.home) != os.path.realpath(ort_root / "cmake"):
        return (f"{here} was configured for another checkout: its cache names {cache.get('CMAKE_HOME_DIRECTORY')!r}"
                " (a build made inside a container looks like this too).",
                f"doit TASK build_dir=/path/to/a/build/of/{ort_root.name}, or configure {ort_root} again")
    if not cache.truth("onnxruntime_USE_CUDA"):
        return (f"{here} was configured without CUDA (onnxruntime_USE_CUDA is not ON).",
                f"{ort_root}/build.sh --use_cuda --update --build_dir {here.parent} ...")
    return None


def _find_build_dir(given: Path | None, ort_root: Path) -> CMakeCache:
    if given is not None:
        try:
            cache = read_cache(given / "CMakeCache.txt")
        except OSError:
            raise UserError(f"build_dir: {given} is not a CMake build directory: no readable CMakeCache.txt.",
                            "doit TASK build_dir=/path/to/build/Linux/Release") from None
        if objection := _objection(cache, ort_root):
            raise UserError(*objection)
        return cache
    fitting: dict[str, CMakeCache] = {}
    objections: list[tuple[str, str]] = []
    for path in _caches_below(ort_root / "build"):
        try:
            cache = read_cache(path)
        except OSError:
            continue
        if objection := _objection(cache, ort_root):
            objections.append(objection)
        else:
            # A link such as `build/latest` names one a second time.
            fitting.setdefault(os.path.realpath(path), cache)
    if len(fitting) == 1:
        return next(iter(fitting.values()))
    if fitting:
        folders = [str(cache.path.parent) for cache in fitting.values()]
        raise UserError(f"Several build directories under {ort_root / 'build'}: {', '.join(folders)}.",
                        shlex.join(["doit", "TASK", f"build_dir={folders[0]}"]))
    if objections:
        raise UserError(*objections[0])
    raise UserError(f"No CMake build directory under {ort_root / 'build'}.",
                    f"{ort_root}/build.sh --config Release --use_cuda --update --build ..., or build_dir=/elsewhere")


def locate(ort_root: Path | None, build_dir: Path | None, start: Path) -> Location:
    """The checkout and its build directory; :class:`UserError` where they cannot be told for certain."""
    root = Path(os.path.realpath(_find_root(ort_root, start)))
    cache = _find_build_dir(build_dir, root)
    folder = Path(os.path.realpath(cache.path.parent))
    if not cache.truth("onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION", default=True):
        raise UserError(f"{folder} was configured with onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION=OFF:"
                        " its units are compiled empty, so no header edit can reach them.",
                        f"{root}/build.sh --update --build_dir {folder.parent} --config {folder.name}"
                        " --cmake_extra_defines onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION=ON")
    return Location(root, folder, cache)


def require_trust(location: Location) -> None:
    """Refuse to run programs that a build directory names, unless it belongs to the user or to root."""
    owner = location.build_dir.stat().st_uid
    if owner not in (0, os.getuid()):
        raise UserError(f"{location.build_dir} belongs to user {owner}: the compilers, make program and tests that it"
                        " names are not run for you.", "use a build directory of your own: build_dir=/path")
    if (made_in := location.copied_from) is not None:
        raise UserError(f"{location.build_dir} was copied or moved: CMake made it in {made_in}, and building here would"
                        " write there.", f"cmake -S {location.ort_root / 'cmake'} -B /a/new/build/directory")
