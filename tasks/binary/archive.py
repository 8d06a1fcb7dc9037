"""Members of a static library (`ar`, GNU and BSD long names, thin archives). Knows nothing of their content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tasks.binary.source import BadFatbin, Source

__all__ = ["is_archive", "members"]

_MAGIC = b"!<arch>\n"
_THIN = b"!<thin>\n"
_HEADER = 60


def is_archive(source: Source) -> bool:
    """Whether it starts like a static library."""
    return source.size >= 8 and source.read(0, 8) in (_MAGIC, _THIN)


def _number(source: Source, field: bytes, offset: int) -> int:
    text = field.strip()
    if not text.isdigit():
        raise source.bad("archive header without a size", offset)
    return int(text)


def members(source: Source) -> Iterator[Source]:
    """The object members, in their order. Raises :class:`BadFatbin`; a thin archive names no bytes of its own."""
    if source.read(0, 8) == _THIN:
        raise BadFatbin(Path(source.path), "is a thin archive: look at its objects instead")
    offset = 8
    while offset < source.size:
        head = source.read(offset, _HEADER)
        if head[58:] != b"`\n":
            raise source.bad("bad archive header", offset)
        size = _number(source, head[48:58], offset)
        name = head[:16].rstrip().decode("ascii", "backslashreplace")
        start, length = offset + _HEADER, size
        if name.startswith("#1/"):
            skipped = _number(source, head[3:16], offset)
            start, length = start + skipped, length - skipped
        if name not in ("/", "//", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED"):
            yield source.part(start, length, f"member {name}")
        offset += _HEADER + size + size % 2
