"""Looks at every build folder of a checkout: finds, walks, asks who uses it, judges. Changes nothing, runs nothing."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks.box.folders import Found, cache_doubt, find_folders
from tasks.box.judge import STALE, Folder, judge
from tasks.box.mounts import Mount, below, is_below, mount_of, read_mounts
from tasks.box.processes import Processes, see_processes
from tasks.box.tally import Tally
from tasks.box.walk import Walk
from tasks.checkout.cmake_cache import read_cache

__all__ = ["Box", "See", "owner_name", "place_doubts", "survey"]

See = Callable[[], Processes]


@dataclass(frozen=True)
class Box:
    """The folders of a checkout, largest first, as they were judged at `now` (Unix seconds)."""

    ort_root: Path
    configured: Path | None
    stale_after_days: float
    folders: tuple[Folder, ...]
    now: float
    started_in: Path | None = None

    @property
    def stale(self) -> tuple[Folder, ...]:
        """What may be cleaned."""
        return tuple(folder for folder in self.folders if folder.verdict == STALE)

    @property
    def gain(self) -> int:
        """Bytes that can be won."""
        return sum(folder.tally.gain for folder in self.stale)


def owner_name(user: int) -> str:
    """The user's name, or the number of one that has none."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def place_doubts(path: Path, ort_root: Path, mounts: tuple[Mount, ...]) -> list[str]:
    """Why `path` is not, for certain, a real directory in the build root, on the checkout's own local file system."""
    root = ort_root / "build"
    if path == root or not is_below(str(path), str(root)):
        return [f"it does not lie in the build root {root}"]
    doubts = []
    for part in (path, *path.parents):
        if part == ort_root:
            break
        if part.is_symlink():
            doubts.append(f"{part} is a link")
    home, here = mount_of(str(ort_root), mounts), mount_of(str(path), mounts)
    if home is None or here is None:
        doubts.append("what is mounted there is not known")
    elif here.number != home.number:
        doubts.append(f"it is on another mount than the checkout: {here.point}")
    elif not here.local:
        doubts.append(f"its file system ({here.kind}) may be in use on other machines")
    doubts += [f"{point} is mounted in it" for point in below(str(path), mounts)]
    return doubts


def _nested_doubt(tally: Tally, ort_root: Path, configured: Path | None, path: Path) -> str | None:
    """Whether another build folder lies in this one."""
    if configured is not None and is_below(os.path.realpath(configured), os.path.realpath(path)):
        return "the configured build directory lies in it"
    for cache in tally.caches:
        folder = Path(cache).parent
        if not _of_another_project(folder, ort_root):
            return f"another build folder of this checkout lies in it: {folder}"
    return None


def _of_another_project(folder: Path, ort_root: Path) -> bool:
    """Whether a nested cache is that of another project, as third-party builds have."""
    try:
        home = read_cache(folder / "CMakeCache.txt").get("CMAKE_HOME_DIRECTORY")
    except OSError:
        return False
    return os.path.realpath(home) != os.path.realpath(ort_root / "cmake")


def survey(ort_root: Path, configured: Path | None, stale_after_days: float, *, now: float | None = None,
           see: See = see_processes, started_in: Path | None = None,
           progress: Callable[[Tally], None] | None = None) -> Box:
    """Judge every folder. `ort_root` is a real path; `configured` is never stale; `started_in` counts as in use."""
    now = time.time() if now is None else now
    user = os.geteuid()
    mounts = read_mounts()
    found = find_folders(ort_root, configured)
    with Walk({str(one.path): str(one.path) for one in found if one.kind != "link"}, user, progress) as walking:
        # Meanwhile. Who comes later is found by the look before a removal.
        processes = see().without(walking.processes)
        tallies = walking.tallies()
    folders = []
    for one in found:
        tally = tallies.get(str(one.path), Tally())
        folders.append(_folder(one, tally, Box(ort_root, configured, stale_after_days, (), now, started_in), user,
                               mounts, processes))
    folders.sort(key=lambda folder: (-folder.tally.bytes, str(folder.path)))
    return Box(ort_root, configured, stale_after_days, tuple(folders), now, started_in)


def _folder(one: Found, tally: Tally, box: Box, user: int, mounts: tuple[Mount, ...], processes: Processes) -> Folder:
    path, real = one.path, os.path.realpath(one.path)
    shape = place_doubts(path, box.ort_root, mounts)
    try:
        status = os.lstat(path)
    except OSError as error:
        return Folder(path, one.kind, None, "?", "", "", tally, None, (), "unclear", (f"{error.strerror}",))
    mine = status.st_uid == user
    if not mine:
        shape.append(f"it belongs to {owner_name(status.st_uid)}")
    doubt = cache_doubt(one, box.ort_root)
    shape += [doubt] if doubt else []
    nested = _nested_doubt(tally, box.ort_root, box.configured, path)
    shape += [nested] if nested else []
    unknowns = processes.doubts(real)
    if box.started_in is not None and is_below(os.path.realpath(box.started_in), real):
        unknowns.append("doit was started in it")
    # Who uses what a link points to says nothing about the link.
    holders = [] if one.kind == "link" else processes.holders(real)
    age = box.now - tally.newest if tally.newest else None
    verdict, reasons = judge(
        tally, age, box.stale_after_days, mine=mine, holders=holders, shape=shape,
        unknowns=unknowns, configured=box.configured is not None and real == os.path.realpath(box.configured),
        other_age_s=box.now - tally.other if tally.other else None)
    cache = one.cache
    return Folder(path, one.kind, (status.st_dev, status.st_ino), owner_name(status.st_uid),
                  (cache.get("CMAKE_BUILD_TYPE") or path.name) if cache else "", cache.generator if cache else "",
                  tally, age, tuple(holders), verdict, reasons)
