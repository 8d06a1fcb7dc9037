"""Finds the build folders of a checkout: what lies in its build root, and build folders beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.box.tally import ASIDE_PREFIX
from tasks.checkout.cmake_cache import CMakeCache, read_cache

__all__ = ["Found", "cache_doubt", "find_folders"]

CACHE = "CMakeCache.txt"

# `build/Linux/Release` is two levels down; holders of folders on their way out add one.
_DEPTH = 4


@dataclass(frozen=True)
class Found:
    """A folder that takes space. `kind`: ``build`` (it has a CMakeCache.txt), ``link`` or ``other``."""

    path: Path
    kind: str
    cache: CMakeCache | None = None


def _cache(folder: Path) -> CMakeCache | None:
    """The folder's own cache; None where it has none that can be read, or a link in its place."""
    try:
        return None if (folder / CACHE).is_symlink() else read_cache(folder / CACHE)
    except OSError:
        return None


def _look(folder: Path, depth: int) -> list[Found]:
    """Build folders below; a folder that leads to none stands for itself."""
    if os.path.lexists(folder / CACHE):
        return [Found(folder, "build", _cache(folder))]
    found, any_build = [], False
    for inner in _children(folder):
        if inner.is_symlink():
            found.append(Found(inner, "link"))
        elif depth > 0:
            below = _look(inner, depth - 1)
            any_build = any_build or any(one.kind == "build" for one in below)
            found += below
        else:
            found.append(Found(inner, "other"))
    return found if any_build else [Found(folder, "other")]


def _children(folder: Path) -> Iterator[Path]:
    """Directories and links to directories, sorted."""
    try:
        names = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir())
    except OSError:
        return
    yield from map(Path, names)


def find_folders(ort_root: Path, configured: Path | None) -> list[Found]:
    """All of them, each once. `ort_root` is a real path; `configured` may lie anywhere.

    In the build root (`ort_root/build`) every folder counts. Beside it and beside a configured build directory that
    lies elsewhere, only folders whose cache names this checkout do.
    """
    root = ort_root / "build"
    found = []
    if root.is_symlink() or os.path.lexists(root / CACHE):
        found.append(Found(root, "link") if root.is_symlink() else Found(root, "build", _cache(root)))
    else:
        for child in _children(root):
            found += [Found(child, "link")] if child.is_symlink() else _look(child, _DEPTH)
    beside = [child for child in _children(ort_root) if child != root and _named_like_a_build(child.name)]
    if configured is not None:
        beside += [configured, *_children(configured.parent)]
    for place in beside:
        if not place.is_symlink():
            found += [one for one in _look(place, 2) if one.cache is not None and _names(one.cache, ort_root)]
    known: dict[str, Found] = {}
    for one in found:
        known.setdefault(str(one.path) if one.kind == "link" else os.path.realpath(one.path), one)
    return list(known.values())


def _named_like_a_build(name: str) -> bool:
    return "build" in name.lower() or name.lower().startswith("out")


def _names(cache: CMakeCache, ort_root: Path) -> bool:
    """Whether the cache says that it is of this checkout."""
    home = cache.get("CMAKE_HOME_DIRECTORY")
    return bool(home) and os.path.realpath(home) == os.path.realpath(ort_root / "cmake")


def cache_doubt(found: Found, ort_root: Path) -> str | None:
    """Why the folder is not, for certain, one that CMake made here for this checkout."""
    if found.kind == "link":
        return f"a link, to {os.path.realpath(found.path)}"
    if found.kind == "other":
        return f"it has no {CACHE}: what made it is not known"
    if found.cache is None:
        return f"its {CACHE} cannot be read, or is a link"
    if not _names(found.cache, ort_root):
        return f"its {CACHE} names another checkout: {found.cache.get('CMAKE_HOME_DIRECTORY') or 'none'}"
    made_in = found.cache.made_in
    path = found.path
    while path.parent.name.startswith(ASIDE_PREFIX):
        # On its way out, or left over from a cleaning that was cut short: it was made one level up.
        path = path.parent.parent / path.name
    if os.path.realpath(made_in) != os.path.realpath(path):
        return f"it was copied or moved here: CMake made it in {made_in}"
    return None
