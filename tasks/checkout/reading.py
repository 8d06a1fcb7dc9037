"""Reads the files of a build directory, and notes which, so that what they said can be kept until one changes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

__all__ = ["Notes", "Stamp", "noting", "present", "read_text", "stamp_from", "stamp_of"]

# A write within a tick of the kernel's coarse clock leaves a stamp as it was: 1 to 10 ms on Linux.
_TICK_NS = 20_000_000


class Stamp(NamedTuple):
    """What the kernel says of a file or folder; a content (or listing) that changed has another one."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    def trusted(self, looked_ns: int) -> bool:
        """Whether it is older than a clock tick before a look began: then a later write shows in it."""
        return self.ctime_ns < looked_ns - _TICK_NS

    def kept(self, looked_ns: int) -> Stamp:
        """The stamp to keep of a look: one that no file can have, where a later write may not show in it."""
        return self if self.trusted(looked_ns) else self._replace(ctime_ns=-1)


def stamp_from(found: os.stat_result) -> Stamp:
    """The stamp in what `stat` answered."""
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def stamp_of(path: str | os.PathLike[str]) -> Stamp | None:
    """The stamp now, links followed; None where there is nothing."""
    try:
        return stamp_from(os.stat(path))
    except (OSError, ValueError):
        return None


class Notes:
    """Every file and folder that was read or asked for, with its stamp from before; None for one that was missing."""

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self.stamps: dict[str, Stamp | None] = {}

    def add(self, path: str) -> None:
        """Note `path`, unless it is noted already."""
        if path not in self.stamps:
            self.stamps[path] = stamp_of(path)


_open: list[Notes] = []


@contextmanager
def noting(notes: Notes | None = None) -> Iterator[Notes]:
    """Note what is read meanwhile, in `notes` of before where they are given."""
    notes = notes or Notes()
    _open.append(notes)
    try:
        yield notes
    finally:
        _open.remove(notes)


def present(path: str | os.PathLike[str]) -> str:
    """`path` as text, noted: what is read next depends on whether and how it is there."""
    text = os.fspath(path)
    for notes in _open:
        notes.add(text)
    return text


def read_text(path: str | os.PathLike[str]) -> str:
    """A text file of any encoding. Raises :class:`OSError` where it cannot be read."""
    return Path(present(path)).read_text(encoding="utf-8", errors="surrogateescape")
