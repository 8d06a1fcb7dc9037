"""Fat binaries and ELF files made byte by byte, so that a test shows what is wrong with one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import zstandard

ALLOC = 0x2
LZ4, ZSTD, ACCELERATED, FAMILY = 0x2000, 0x8000, 0x100000, 0x200000


def entry(payload: bytes = b"\x7fELF....", kind: int = 2, sm: int = 80, flags: int = 0x11, *, name: bytes = b"",
          stored: int = 0, unpacked: int = 0, header: int | None = None, size: int | None = None,
          name_at: int = 64) -> bytes:
    """One entry; the keywords overwrite what a fat binary would say of itself."""
    padded = payload + bytes(-len(payload) % 8)
    named = name + bytes(-len(name) % 8)
    head = struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64 + len(named) if header is None else header,
                       len(padded) if size is None else size, stored, 0, 0x10008, sm, name_at if name else 0,
                       len(name), flags, 0, unpacked)
    return head + named + padded


def packed(payload: bytes, kind: int = 1, sm: int = 90, flags: int = 0x11) -> bytes:
    """An entry with a zstd payload."""
    frame = zstandard.ZstdCompressor().compress(payload)
    return entry(frame, kind, sm, flags | ZSTD, stored=len(frame), unpacked=len(payload))


def container(*entries: bytes, magic: int = 0xBA55ED50, version: int = 1, header: int = 16,
              size: int | None = None) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", magic, version, header, len(body) if size is None else size) + body


def wrapper(address: int, version: int = 1, magic: int = 0x466243B1) -> bytes:
    return struct.pack("<IIQQ", magic, version, address, 0)


@dataclass(frozen=True)
class Part:
    """A section. Its address is its offset in the file where `address` says nothing else."""

    name: str
    data: bytes
    kind: int = 1
    flags: int = ALLOC
    alignment: int = 8
    link: int = 0
    info: int = 0


def elf(parts: Sequence[Part], kind: int = 1, machine: int = 62) -> bytes:
    """A 64-bit little-endian ELF file (`kind` 1: object, 3: shared library) with these sections after the null one."""
    names = b"\0"
    rows = [bytes(64)]
    body = bytearray(64)
    for part in [*parts, Part(".shstrtab", b"", 3, 0, 1)]:
        body += bytes(-len(body) % max(part.alignment, 1))
        data = part.data
        if part.name == ".shstrtab":
            data = names + b".shstrtab\0"
        at = len(body)
        rows.append(struct.pack("<IIQQQQIIQQ", len(names), part.kind, part.flags, at if part.flags & ALLOC else 0, at,
                                len(data), part.link, part.info, part.alignment, 0))
        names += part.name.encode() + b"\0"
        body += data
    body += bytes(-len(body) % 8)
    table = len(body)
    body[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", kind, machine, 1, 0, 0, table, 0, 64, 0, 0, 64,
                            len(rows), len(rows) - 1)
    return bytes(body) + b"".join(rows)


def object_with(*containers: bytes, section: str = ".nv_fatbin", alignment: int = 8) -> bytes:
    """An object whose device section holds these bytes."""
    return elf([Part(".text", b"\x90" * 16), Part(section, b"".join(containers), alignment=alignment)])


def offset_of(image: bytes, piece: bytes) -> int:
    """Where `piece` lies in `image`, for wrappers: an allocated section's address is its offset here."""
    return image.index(piece)


def library_with(*containers: bytes, registered: Sequence[int] | None = None) -> bytes:
    """A shared library with these containers; wrappers name those whose numbers are `registered` (all by default)."""
    def build(addresses: Sequence[int]) -> bytes:
        return elf([Part(".nv_fatbin", b"".join(containers)),
                    Part(".nvFatBinSegment", b"".join(wrapper(address) for address in addresses))], kind=3)

    numbers = range(len(containers)) if registered is None else registered
    start = offset_of(build([0] * len(list(numbers))), b"".join(containers)) if containers else 0
    offsets = [start + sum(len(c) for c in containers[:number]) for number in range(len(containers))]
    return build([offsets[number] for number in numbers])
