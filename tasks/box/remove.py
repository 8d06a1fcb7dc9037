"""The only code that removes a build folder: aside first, then checked once more, then deleted by descriptor.

Every step is taken from an open directory, never by a path that could mean something else by then. Up to
the first deleted file everything can be undone, and is.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from contextlib import ExitStack
from pathlib import Path

from tasks.box.folders import Found, cache_doubt
from tasks.box.judge import Folder
from tasks.box.mounts import below, read_mounts
from tasks.box.survey import Box, See, place_doubts
from tasks.box.tally import ASIDE_PREFIX
from tasks.box.walk import walk
from tasks.checkout.cmake_cache import read_cache

__all__ = ["KeptError", "remove"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CACHE = "CMakeCache.txt"
_MOUNT = re.compile(r"^mnt_id:\s*(\d+)$", re.M)


class KeptError(Exception):
    """Why a folder was not removed. The text says where it is now, if not where it was."""


def _mount_number(descriptor: int) -> int:
    """The mount that an open file was reached through; bind mounts of one file system differ here, not in st_dev."""
    found = _MOUNT.search(Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii"))
    if found is None:
        raise KeptError("the kernel does not tell on which mount it lies")
    return int(found[1])


def _enter(name: str, parent: int, mount: int) -> int:
    """Open a directory of `parent`: no link, no other mount."""
    opened = os.open(name, _DIRECTORY, dir_fd=parent)
    try:
        if _mount_number(opened) != mount:
            raise KeptError(f"{name} is a mount point")
    except BaseException:
        os.close(opened)
        raise
    return opened


class _Way:
    """Open directories from the checkout down to a folder's parent."""

    def __init__(self, ort_root: Path, folder: Path, stack: ExitStack) -> None:
        first = os.open(ort_root, _DIRECTORY)
        stack.callback(os.close, first)
        self.mount = _mount_number(first)
        self._steps: list[tuple[int, str]] = []
        for name in folder.relative_to(ort_root).parts[:-1]:
            above = self.parent if self._steps else first
            opened = _enter(name, above, self.mount)
            stack.callback(os.close, opened)
            self._steps.append((opened, name))
        self._above = [first, *(opened for opened, _ in self._steps)]

    @property
    def parent(self) -> int:
        return self._steps[-1][0]

    def forget_holders(self) -> None:
        """Remove emptied holders of an earlier cleaning, from the inside out; anything that is not empty stays."""
        for above, (_, name) in reversed(list(zip(self._above, self._steps, strict=False))):
            if not name.startswith(ASIDE_PREFIX):
                return
            try:
                os.rmdir(name, dir_fd=above)
            except OSError:
                return


def remove(folder: Folder, box: Box, see: See) -> None:
    """Remove a folder that was judged stale and regenerable; :class:`KeptError` with the reason where it stays."""
    user, path, name = os.geteuid(), folder.path, folder.path.name
    with ExitStack() as stack:
        try:
            _still_unused(path, box, see)
            way = _Way(box.ort_root, path, stack)
            _check(os.stat(name, dir_fd=way.parent, follow_symlinks=False), folder, user)
            holder_name = ASIDE_PREFIX + secrets.token_hex(4)
            os.mkdir(holder_name, 0o700, dir_fd=way.parent)
        except OSError as error:
            raise KeptError(f"it cannot be moved aside: {error.strerror}") from None
        aside = path.parent / holder_name / name
        moved = False
        try:
            holder = _enter(holder_name, way.parent, way.mount)
            stack.callback(os.close, holder)
            os.rename(name, name, src_dir_fd=way.parent, dst_dir_fd=holder)
            moved = True
            opened = _enter(name, holder, way.mount)
            stack.callback(os.close, opened)
            _check(os.fstat(opened), folder, user)
            _still_stale(aside, folder, box, see)
        except BaseException as error:
            where = _undo(name, way.parent, holder_name, holder if moved else None, aside)
            if isinstance(error, OSError):
                raise KeptError(f"it cannot be moved aside: {error.strerror}{where}") from None
            if isinstance(error, KeptError):
                raise KeptError(f"{error}{where}") from None
            raise
        _delete(name, opened, holder, _Guard(os.fstat(opened).st_dev, way.mount, user), aside)
        os.rmdir(holder_name, dir_fd=way.parent)
        way.forget_holders()


def _check(found: os.stat_result, folder: Folder, user: int) -> None:
    if not stat.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino) != folder.identity:
        raise KeptError("another file or folder stands in its place now")
    if found.st_uid != user:
        raise KeptError("it belongs to another user now")


def _still_unused(path: Path, box: Box, see: See) -> None:
    processes = see()
    reasons = [*place_doubts(path, box.ort_root, read_mounts()), *map(str, processes.holders(str(path))),
               *processes.doubts(str(path))]
    if reasons:
        raise KeptError(reasons[0])


def _still_stale(aside: Path, folder: Folder, box: Box, see: See) -> None:
    """Everything once more, now that nobody comes upon the folder by its name."""
    try:
        cache = read_cache(aside / _CACHE)
    except OSError:
        raise KeptError(f"its {_CACHE} is gone") from None
    if doubt := cache_doubt(Found(aside, "build", cache), box.ort_root):
        raise KeptError(doubt)
    tally = walk({"": str(aside)}, os.geteuid())[""]
    # An absolute link to a place in the folder itself leads out, now that the folder was moved.
    for kind, doubt in tally.doubts.items():
        if kind != "link":
            raise KeptError(doubt)
    if tally.sums != folder.tally.sums:
        raise KeptError("something in it has changed since it was looked at")
    if points := below(str(aside), read_mounts()):
        raise KeptError(f"{points[0]} is mounted in it")
    processes = see()
    if reasons := [*map(str, processes.holders(str(aside))), *processes.doubts(str(aside))]:
        raise KeptError(reasons[0])


def _undo(name: str, parent: int, holder_name: str, holder: int | None, aside: Path) -> str:
    """Put the folder back; where that cannot be, the text says where it is."""
    try:
        if holder is not None:
            try:
                os.stat(name, dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                os.rename(name, name, src_dir_fd=holder, dst_dir_fd=parent)
            else:
                return f"; something new has its name, so it is kept as {aside}"
        os.rmdir(holder_name, dir_fd=parent)
    except OSError as error:
        return f"; it is kept as {aside} ({error.strerror})"
    return ""


class _Guard:
    """What every file on the way must be like: of this device, mount and user."""

    def __init__(self, device: int, mount: int, user: int) -> None:
        self.device, self.mount, self.user = device, mount, user

    def require(self, found: os.stat_result, name: str) -> None:
        if found.st_dev != self.device or found.st_uid != self.user:
            raise KeptError(f"{name} belongs to another user or file system")


def _delete(name: str, opened: int, holder: int, guard: _Guard, aside: Path) -> None:
    try:
        # The cache goes last: what is left of a cleaning that was cut short is still known for what it is.
        _empty(opened, guard, last=_CACHE)
        os.rmdir(name, dir_fd=holder)
    except OSError as error:
        raise KeptError(f"partly removed, the rest is {aside}: {error.filename or name}: {error.strerror}") from None
    except KeptError as error:
        raise KeptError(f"partly removed, the rest is {aside}: {error}") from None


def _empty(directory: int, guard: _Guard, last: str | None = None) -> None:
    """Remove everything in an open directory; links are removed, never followed."""
    mode = os.fstat(directory).st_mode
    if mode & 0o300 != 0o300:
        os.fchmod(directory, stat.S_IMODE(mode) | 0o300)
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    for name, status in sorted(found, key=lambda one: one[0] == last):
        guard.require(status, name)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=directory)
            continue
        inner = _enter(name, directory, guard.mount)
        try:
            guard.require(os.fstat(inner), name)
            _empty(inner, guard)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=directory)
