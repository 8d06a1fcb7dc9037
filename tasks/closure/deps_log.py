"""Reads `.ninja_deps` and `.ninja_log` as they lie there: ninja's own queries repair them in place.

`.ninja_deps` (deps_log.cc): the text ``# ninjadeps\\n``, an int32 version, then records of a uint32
size and that many bytes. A path record holds the path, padded with NULs to four bytes, and the
complement of its number. A record of dependencies (high bit of the size) holds the output's
number, its mtime in ns (64 bits since version 4, 32 before) and the numbers of its inputs.
`.ninja_log` (build_log.cc): lines of start and end in ms of that run, mtime in ns, output, hash.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DepsLog", "LogEntry", "read_build_log", "read_deps_log", "redirected"]

_SIGNATURE = b"# ninjadeps\n"
_MTIME_BYTES = {3: 4, 4: 8}
_LARGEST = (1 << 19) - 1
_IS_DEPS = 0x80000000


@dataclass(frozen=True)
class DepsLog:
    """`paths` by number; `deps` maps an output to (mtime in ns, numbers of its inputs).

    `cut`: records after a damaged one are lost, as they are for ninja. `state` is ``missing`` or
    ``unusable`` (another signature or version: ninja throws it away), else ``read``.
    """

    state: str
    paths: tuple[str, ...]
    deps: Mapping[str, tuple[int, array[int]]]
    cut: bool = False

    def inputs(self, output: str) -> tuple[str, ...] | None:
        """The recorded inputs of `output`; None where ninja has no record of it."""
        known = self.deps.get(output)
        return None if known is None else tuple(self.paths[number] for number in known[1])


def _path_record(body: bytes, number: int) -> str | None:
    """The path of a path record; None where the record is damaged."""
    if len(body) <= 4 or struct.unpack("<I", body[-4:])[0] != number ^ 0xFFFFFFFF:
        return None
    padded = body[:-4]
    path = padded[:-3] + padded[-3:].rstrip(b"\0") if len(padded) > 3 else padded.rstrip(b"\0")
    return os.fsdecode(path)


def read_deps_log(content: bytes | None) -> DepsLog:
    """Read the log's content; None stands for a missing file. Stops where ninja would cut it."""
    if content is None:
        return DepsLog("missing", (), {})
    start = len(_SIGNATURE)
    version = struct.unpack("<i", content[start:start + 4])[0] if len(content) >= start + 4 else 0
    if not content.startswith(_SIGNATURE) or version not in _MTIME_BYTES:
        return DepsLog("unusable", (), {})
    paths: list[str] = []
    deps: dict[str, tuple[int, array[int]]] = {}
    head = 4 + _MTIME_BYTES[version]
    position, end, whole = start + 4, len(content), True
    while position + 4 <= end and whole:
        size = int.from_bytes(content[position:position + 4], "little")
        is_deps, size = bool(size & _IS_DEPS), size & ~_IS_DEPS
        body = content[position + 4:position + 4 + size]
        whole = size == len(body) and 0 < size <= _LARGEST
        if not whole:
            break
        if is_deps:
            whole = size % 4 == 0 and size >= head
            numbers = array("i", body[head:]) if whole else array("i")
            output = int.from_bytes(body[:4], "little")
            whole = whole and max(numbers, default=0) < max(len(paths), 1) and output < len(paths)
            if whole:
                deps[paths[output]] = (int.from_bytes(body[4:head], "little", signed=True), numbers)
        else:
            path = _path_record(body, len(paths))
            whole = path is not None
            if path is not None:
                paths.append(path)
        position += 4 + size if whole else 0
    return DepsLog("read", tuple(paths), deps, position != end)


def redirected(content: bytes, numbers: Mapping[int, str]) -> bytes:
    """A copy of a whole log in which the paths with these numbers are others."""
    start = position = len(_SIGNATURE) + 4
    pieces = [content[:start]]
    number = 0
    while position + 4 <= len(content):
        size = int.from_bytes(content[position:position + 4], "little")
        step = 4 + (size & ~_IS_DEPS)
        record = content[position:position + step]
        if not size & _IS_DEPS:
            if number in numbers:
                path = os.fsencode(numbers[number])
                path += b"\0" * (-len(path) % 4)
                record = struct.pack("<I", len(path) + 4) + path + struct.pack("<I", number ^ 0xFFFFFFFF)
            number += 1
        pieces.append(record)
        position += step
    return b"".join(pieces)


@dataclass(frozen=True)
class LogEntry:
    """One command that ninja ran: how long, and the mtime that it noted for the output, in ns."""

    duration_ns: int
    mtime_ns: int


def read_build_log(path: Path) -> Mapping[str, LogEntry]:
    """The last entry of every output of `.ninja_log`; lines that are not whole are left out."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.split("\n"):
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit() and fields[2].lstrip("-").isdigit():
            found[fields[3]] = LogEntry((int(fields[1]) - int(fields[0])) * 1_000_000, int(fields[2]))
    return found
