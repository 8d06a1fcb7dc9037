"""Bounded reading: bytes of a file, of a member in it, or of a decompressed payload. Knows no format.

Files are read with ``pread``, not through a memory map: a provider that is truncated in place while it
is read (``cp`` over it) would end the process with SIGBUS.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tasks.checkout.reading import Stamp, stamp_from
from tasks.errors import UserError

__all__ = ["BadFatbin", "Source", "memory_source", "open_source"]

_BLOCK = 1 << 20


class BadFatbin(UserError):  # noqa: N818 - the name says what was read
    """A file that cannot be read as what it should be: missing, cut short, overwritten, malformed.

    `offset` is the place in the file (or in the decompressed cubin that the cause names), in bytes.
    """

    def __init__(self, path: Path, what: str, offset: int | None = None) -> None:
        where = "" if offset is None else f" at offset {offset:#x}"
        super().__init__(f"{path}: {what}{where}", "build it again: doit rebuild_fmha")
        self.path = path
        self.offset = offset


class Source:
    """`size` bytes that start at `base` of something that can be read at an offset."""

    def __init__(self, path: Path, read: Callable[[int, int], bytes], size: int, base: int = 0,
                 label: str = "") -> None:
        self.path = path
        self.size = size
        self.base = base
        self.label = label
        self._read = read

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes, or :class:`BadFatbin` where they are not there: never allocates more than there are."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.bad(f"cut short: {size} bytes wanted, {max(self.size - offset, 0)} are there", offset)
        try:
            data = self._read(self.base + offset, size)
        except OSError as error:
            raise self.bad(f"cannot be read: {error.strerror}", offset) from None
        if len(data) != size:
            raise self.bad("became shorter while it was read", offset)
        return data

    def blocks(self, offset: int, size: int, block: int = _BLOCK) -> Iterator[bytes]:
        """The same bytes in pieces of at most `block` bytes."""
        for start in range(offset, offset + size, block):
            yield self.read(start, min(block, offset + size - start))

    def part(self, offset: int, size: int, label: str) -> Source:
        """A source of its own for a part of this one; the whole part must be there."""
        if offset < 0 or size < 0 or offset + size > self.size:
            raise self.bad(f"cut short: {label} of {size} bytes runs over the end", offset)
        return Source(self.path, self._read, size, self.base + offset, f"{self.label}{label}: ")

    def bad(self, what: str, offset: int | None = None) -> BadFatbin:
        """The error for a fault at `offset` of this source."""
        return BadFatbin(self.path, f"{self.label}{what}", None if offset is None else self.base + offset)


def memory_source(path: Path, data: bytes, label: str) -> Source:
    """A source over `data`, which came out of `path`; `label` names it in errors."""
    return Source(path, lambda offset, size: data[offset:offset + size], len(data), 0, f"{label}: ")


@contextmanager
def open_source(path: Path) -> Iterator[tuple[Source, Stamp]]:
    """Open a regular file for reading, with its stamp at that moment. Raises :class:`BadFatbin`."""
    try:
        # A FIFO in the file's place must not hang us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise BadFatbin(path, f"cannot be read: {error.strerror}") from None
    try:
        stat = os.fstat(descriptor)
        stamp = stamp_from(stat)
        if stat.st_mode & 0o170000 != 0o100000:
            raise BadFatbin(path, "is not a regular file")
        yield Source(path, lambda offset, size: os.pread(descriptor, size, offset), stat.st_size), stamp
    finally:
        os.close(descriptor)
