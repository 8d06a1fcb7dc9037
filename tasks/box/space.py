"""Free bytes and inodes on every file system that a build writes, before it writes. statvfs only: quick."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.box.quota import quota_left
from tasks.errors import UserError

__all__ = ["FileSystem", "Need", "estimate", "file_systems", "full_places", "human", "require_space"]

BUILD, TEMPORARY, CHECKOUT, GIT, HOME = "build directory", "TMPDIR", "checkout", ".git", "HOME's caches"

# Floors, in bytes and inodes: what the smallest build was seen to need, and what git needs for a lock and a new index.
_FLOORS = {BUILD: (16 << 20, 64), TEMPORARY: (16 << 20, 64), CHECKOUT: (1 << 20, 8), GIT: (16 << 20, 8),
           HOME: (16 << 20, 16)}
# nvcc keeps the preprocessed text, PTX and cubins of every architecture while it compiles: several times the object.
_TEMPORARY_FACTOR = 4


@dataclass(frozen=True)
class Need:
    """What a build writes to one place."""

    role: str
    folder: Path
    bytes: int
    inodes: int


@dataclass(frozen=True)
class FileSystem:
    """One file system with the places on it. `free_inodes` is None where it has no fixed number of them."""

    device: int
    needs: tuple[Need, ...]
    free: int
    free_inodes: int | None
    size: int
    read_only: bool
    by_quota: bool


def human(size: float) -> str:
    """A size as 12.3 GB; units are powers of 1000, as `min_free_gb` counts."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit in ("B", "kB") or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def _existing(folder: Path) -> Path | None:
    """The folder itself, or the nearest one above it that is there."""
    return next((place for place in (folder, *folder.parents) if place.is_dir()), None)


def _git_folders(ort_root: Path) -> list[Path]:
    """`.git`, or what it points to in a worktree, and the repository that the worktree belongs to."""
    git = ort_root / ".git"
    try:
        if git.is_file():
            git = ort_root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        common = git / "commondir"
        shared = [git / common.read_text(encoding="utf-8").strip()] if common.is_file() else []
    except (OSError, UnicodeDecodeError):
        return []
    return [folder for folder in (git, *shared) if folder.is_dir()]


def _caches(environ: Mapping[str, str]) -> Iterable[Path]:
    """Where compiler caches write."""
    home = environ.get("HOME")
    if environ.get("CCACHE_DIR"):
        yield Path(environ["CCACHE_DIR"])
    if environ.get("XDG_CACHE_HOME") or home:
        yield Path(environ.get("XDG_CACHE_HOME") or f"{home}/.cache")


def _temporary(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("TMPDIR") or "/tmp")


def _places(build_dir: Path, ort_root: Path, environ: Mapping[str, str]) -> Iterable[tuple[str, Path]]:
    yield BUILD, build_dir
    yield TEMPORARY, _temporary(environ)
    yield CHECKOUT, ort_root
    for folder in _git_folders(ort_root):
        yield GIT, folder
    for folder in _caches(environ):
        yield HOME, folder


def estimate(objects: Iterable[Path], linked: Iterable[Path], jobs: int = 1) -> dict[str, int]:
    """Expected bytes by role, from the sizes of the objects to be remade and of the files linked from them.

    The build directory needs each of them once more (the old one stays until the new one is whole), the temporary
    folder what as many compilers as there are jobs keep at once.
    """
    sizes = sorted((_size(path) for path in objects), reverse=True)
    return {BUILD: sum(sizes) + sum(map(_size, linked)), TEMPORARY: _TEMPORARY_FACTOR * sum(sizes[:jobs])}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def file_systems(build_dir: Path, ort_root: Path, environ: Mapping[str, str], expected_bytes: Mapping[str, int] | int,
                 min_free_gb: float | None = None, caches: bool = True) -> list[FileSystem]:
    """Every file system that the build writes, with what it needs there and what is free.

    Without `caches` the compilers run without a launcher that keeps their objects in the user's home.
    """
    expected = {BUILD: expected_bytes} if isinstance(expected_bytes, int) else expected_bytes
    by_device: dict[int, list[Need]] = {}
    for role, folder in _places(build_dir, ort_root, environ):
        place = _existing(folder)
        if place is None or (role == HOME and not caches):
            continue
        floor, inodes = _FLOORS[role]
        size = max(floor, expected.get(role, 0))
        if role == BUILD and min_free_gb is not None:
            size = round(min_free_gb * 1e9)
        by_device.setdefault(place.stat().st_dev, []).append(Need(role, place, size, inodes))
    return [_measure(device, needs) for device, needs in by_device.items()]


def _measure(device: int, needs: list[Need]) -> FileSystem:
    place = str(needs[0].folder)
    state = os.statvfs(place)
    free, inodes = state.f_bavail * state.f_frsize, state.f_favail if state.f_files else None
    allowed, allowed_inodes = quota_left(place)
    by_quota = False
    if allowed is not None and allowed < free:
        free, by_quota = allowed, True
    if allowed_inodes is not None and (inodes is None or allowed_inodes < inodes):
        inodes, by_quota = allowed_inodes, True
    return FileSystem(device, tuple(needs), free, inodes, state.f_blocks * state.f_frsize,
                      bool(state.f_flag & os.ST_RDONLY), by_quota)


def _missing(system: FileSystem) -> str | None:
    """What is not there, in one line; None where there is enough."""
    needs = [need for need in system.needs if not (system.read_only and need.role in (CHECKOUT, GIT, HOME))]
    size, inodes = sum(need.bytes for need in needs), sum(need.inodes for need in needs)
    quota = " by your quota" if system.by_quota else ""
    if not needs:
        return None  # a checkout that cannot be written is not written
    # They are on one file system: one path tells which.
    names = f"{', '.join(dict.fromkeys(need.role for need in needs))} ({needs[0].folder})"
    if system.read_only:
        return f"{names}: mounted read-only"
    if system.free < size:
        return f"{names}: {human(system.free)} free{quota}, about {human(size)} needed"
    if system.free_inodes is not None and system.free_inodes < inodes:
        return f"{names}: {system.free_inodes} inodes (files) free{quota}, about {inodes} needed"
    return None


def full_places(build_dir: Path, ort_root: Path, environ: Mapping[str, str]) -> list[str]:
    """Where a build that ran out of space now finds less than the least that one needs; one line each."""
    return [told for system in file_systems(build_dir, ort_root, environ, 0) if (told := _missing(system)) is not None]


def require_space(build_dir: Path, ort_root: Path, environ: Mapping[str, str], expected_bytes: Mapping[str, int] | int,
                  min_free_gb: float | None, caches: bool = True) -> None:
    """Refuse a build that would not find room. Call it before anything is touched.

    `expected_bytes` is :func:`estimate`'s, or one number for the build directory; `min_free_gb` (10^9 bytes) takes the
    place of the build directory's. Raises :class:`UserError` that tells what is missing where.
    """
    short = [(system, told) for system in file_systems(build_dir, ort_root, environ, expected_bytes, min_free_gb,
                                                         caches)
             if (told := _missing(system)) is not None]
    if not short:
        return
    roles = {need.role for system, _ in short for need in system.needs}
    mend = "see what fills it: doit disk"
    if BUILD in roles and min_free_gb is not None:
        mend += f", or ask for less: min_free_gb (now {min_free_gb:g})"
    elif TEMPORARY in roles:
        mend += "; for compilers: TMPDIR=/path/with/room"
    raise UserError("Nothing was built: no room. " + "; ".join(told for _, told in short) + ".", mend)
