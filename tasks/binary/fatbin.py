"""Fat binaries: containers, their entries and payloads. Knows ELF no further than that a section holds them.

There is no public description; the layout was measured with nvcc 13.0 against
cuobjdump 13: a container is u32 0xBA55ED50, u16 version, u16 header size, u64 size; an entry u16 kind,
u16 version, u32 header size, u64 padded payload size, u32 compressed size, ..., u32 SM at +28,
u32 name offset, u32 name length, u64 flags at +40, ..., u64 uncompressed size at +56.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tasks.binary.source import BadFatbin, Source

__all__ = ["BadFatbin", "Container", "Entry", "Kind", "payload", "walk"]

Kind = Literal["ptx", "elf", "lto", "other"]

_MAGIC = 0xBA55ED50
_CONTAINER = struct.Struct("<IHHQ")
_ENTRY = struct.Struct("<HHIQIIIIIIQQQ")
_KINDS: dict[int, Kind] = {1: "ptx", 2: "elf", 8: "lto"}
_PREFIX: dict[Kind, str] = {"ptx": "compute", "elf": "sm", "lto": "lto", "other": "other"}
_LZ4, _ZSTD, _ACCELERATED, _FAMILY = 0x2000, 0x8000, 0x100000, 0x200000
_LONGEST = 1 << 30  # bytes of one decompressed payload; the largest of the published provider has 39 MB


@dataclass(frozen=True)
class Entry:
    """One payload of a container: PTX text, a cubin (ELF) or intermediate code (LTO).

    `offset` is its payload's place in the file, `size` the padded payload, `stored` the payload without
    padding where it is compressed, `unpacked` its size decompressed (0 where it is not). All in bytes.
    """

    kind: Kind
    arch: str
    name: str
    flags: int
    offset: int
    size: int
    stored: int
    unpacked: int

    @property
    def compression(self) -> Literal["none", "lz4", "zstd"]:
        """How the payload is compressed."""
        return "zstd" if self.flags & _ZSTD else "lz4" if self.flags & _LZ4 else "none"


@dataclass(frozen=True)
class Container:
    """One fat binary: `offset` in the file and `size`, header included, in bytes."""

    section: str
    offset: int
    size: int
    entries: tuple[Entry, ...]

    @cached_property
    def archs(self) -> tuple[str, ...]:
        """Its architectures: ``sm_80`` for cubins, ``compute_90`` for PTX, ``lto_90`` for LTO."""
        return tuple(sorted({entry.arch for entry in self.entries}))


def _arch(kind: Kind, sm: int, flags: int) -> str:
    suffix = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
    return f"{_PREFIX[kind]}_{sm}{suffix}"


def _entry(source: Source, at: int, end: int) -> tuple[Entry, int]:
    """The entry at `at` and the offset after it."""
    if end - at < _ENTRY.size:
        raise source.bad("fat binary entry cut short by its container", at)
    (number, _, header, size, stored, _, _, sm, name_at, name_size, flags, _, unpacked) = _ENTRY.unpack(
        source.read(at, _ENTRY.size))
    if header < _ENTRY.size or header % 8 or size % 8 or header + size > end - at:
        raise source.bad("fat binary entry runs over its container", at)
    if name_size and (name_at < _ENTRY.size or name_at + name_size > header):
        raise source.bad("fat binary entry's name lies outside its header", at)
    if stored > size or not 0 < sm < 10000:
        raise source.bad("fat binary entry with an impossible size or architecture", at)
    kind = _KINDS.get(number, "other")
    if kind in ("ptx", "elf"):
        packed = flags & (_LZ4 | _ZSTD)
        if packed == _LZ4 | _ZSTD or bool(packed) != bool(stored) or bool(packed) != bool(unpacked):
            raise source.bad("fat binary entry's sizes contradict its flags", at)
    name = source.read(at + name_at, name_size).split(b"\0")[0].decode("utf-8", "backslashreplace") if name_size else ""
    return Entry(kind, _arch(kind, sm, flags), name, flags, at + header, size, stored, unpacked), at + header + size


def walk(source: Source, section: str, offset: int, size: int, alignment: int) -> Iterator[Container]:
    """The containers of a section's bytes: they fill it but for zeros that align them. Raises :class:`BadFatbin`.

    Every step goes forward by at least one header, so time and memory are bounded by the section.
    """
    at, end = offset, offset + size
    while at < end:
        if end - at < _CONTAINER.size:
            raise source.bad(f"bytes left over in {section}", at)
        magic, version, header, length = _CONTAINER.unpack(source.read(at, _CONTAINER.size))
        if magic == 0 and 8 < alignment <= 4096 and (gap := -(at - offset) % alignment) and gap < end - at \
                and not any(source.read(at, gap)):
            at += gap
            continue
        if magic != _MAGIC or version != 1 or header != _CONTAINER.size:
            raise source.bad(f"no fat binary in {section}: magic {magic:#x}, version {version}", at)
        if length % 8 or length > end - at - header:
            raise source.bad(f"fat binary runs over the end of {section}", at)
        entries: list[Entry] = []
        here, stop = at + header, at + header + length
        while here < stop:
            entry, here = _entry(source, here, stop)
            entries.append(entry)
        yield Container(section, at, header + length, tuple(entries))
        at = stop


def payload(source: Source, entry: Entry) -> bytes:
    """The entry's PTX text or cubin, decompressed; LTO code as it is stored. Raises :class:`BadFatbin`."""
    if entry.kind not in ("ptx", "elf") or entry.compression == "none":
        return source.read(entry.offset, entry.size)
    # The highest ratio that LZ4 can encode is 255.
    limit = min(_LONGEST, 255 * entry.stored + 64 if entry.compression == "lz4" else _LONGEST)
    if entry.unpacked > limit:
        raise source.bad(f"payload claims {entry.unpacked} bytes decompressed", entry.offset)
    packed = source.read(entry.offset, entry.stored)
    try:
        data = _unzstd(packed, entry.unpacked) if entry.compression == "zstd" else _unlz4(packed, entry.unpacked)
    except (ValueError, MemoryError) as error:
        raise source.bad(f"payload does not decompress ({error})", entry.offset) from None
    if len(data) != entry.unpacked:
        raise source.bad("payload decompresses to another size than its header says", entry.offset)
    return data


def _unzstd(packed: bytes, size: int) -> bytes:
    import zstandard

    try:
        claimed = zstandard.get_frame_parameters(packed).content_size
        if claimed not in (size, zstandard.CONTENTSIZE_UNKNOWN):
            raise ValueError(f"frame of {claimed} bytes")
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None


def _unlz4(packed: bytes, size: int) -> bytes:
    import lz4.block  # type: ignore[import-untyped]

    try:
        return bytes(lz4.block.decompress(packed, uncompressed_size=size))
    except lz4.block.LZ4BlockError as error:
        raise ValueError(str(error)) from None
