"""The device code of one file: its fat binary containers and which of them are registered with the runtime."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tasks.binary.archive import is_archive, members
from tasks.binary.elf import NOBITS, RELOCATABLE, Elf, Section, read_elf
from tasks.binary.fatbin import Container, walk
from tasks.binary.source import BadFatbin, Source, open_source
from tasks.checkout.reading import Stamp

__all__ = ["RELOCATABLE_CODE", "WHOLE_CODE", "DeviceImage", "device_image"]

WHOLE_CODE = ".nv_fatbin"  # whole programs and what a device link makes
RELOCATABLE_CODE = "__nv_relfatbin"  # -dc, -rdc=true: input of the device link
_DEVICE_LINKED = 2  # version of the wrapper of a container that a device link made
_WRAPPERS = ".nvFatBinSegment"
_WRAPPER = struct.Struct("<IIQQ")
_WRAPPER_MAGIC = 0x466243B1
_RELATIVE = (8, 1027)  # R_X86_64_RELATIVE, R_AARCH64_RELATIVE


@dataclass(frozen=True)
class DeviceImage:
    """What `path` held when it was read: an object, a static library, a shared library or an executable.

    `registered` maps the offset of each container that a wrapper in `.nvFatBinSegment` names to that
    wrapper's version; None where that is not decided yet (objects) or cannot be told.
    """

    path: Path
    stamp: Stamp
    containers: tuple[Container, ...]
    registered: Mapping[int, int] | None

    @cached_property
    def archs(self) -> tuple[str, ...]:
        """All architectures in it, sorted: ``compute_90``, ``sm_80``, ``sm_90a``."""
        return tuple(sorted({arch for container in self.containers for arch in container.archs}))

    @property
    def device_linked(self) -> tuple[Container, ...]:
        """Containers that a device link made; where wrappers cannot be read, all that it can have made."""
        if self.registered is None:
            return tuple(c for c in self.containers if c.section == WHOLE_CODE)
        return tuple(c for c in self.containers if self.registered.get(c.offset) == _DEVICE_LINKED)

    @contextmanager
    def open(self) -> Iterator[Source]:
        """Open the file again for its bytes. Raises :class:`BadFatbin` where it is another file by now."""
        with open_source(self.path) as (source, stamp):
            if stamp != self.stamp:
                raise BadFatbin(self.path, "was replaced while it was examined")
            yield source


def _wrapper_targets(elf: Elf, section: Section) -> dict[int, int]:
    """Address that each wrapper points to, with its version. A dynamic relocation may hold it instead of the bytes."""
    found: dict[int, tuple[int, int]] = {}
    if section.size % _WRAPPER.size:
        raise elf.source.bad(f"{_WRAPPERS} of an odd size", section.offset)
    for i, (magic, version, address, _) in enumerate(_WRAPPER.iter_unpack(elf.data(section))):
        if magic != _WRAPPER_MAGIC:
            raise elf.source.bad(f"bad magic {magic:#x} in {_WRAPPERS}", section.offset + i * _WRAPPER.size)
        found[section.address + i * _WRAPPER.size + 8] = (address, version)
    low, high = section.address, section.address + section.size
    for table in elf.named(".rela.dyn"):
        for block in elf.source.blocks(table.offset, table.size - table.size % 24, 24 << 16):
            words = memoryview(block).cast("Q")
            places: list[int] = words[0::3].tolist()
            for i, place in enumerate(places):
                if low <= place < high and place in found and words[3 * i + 1] & 0xFFFFFFFF in _RELATIVE:
                    found[place] = (words[3 * i + 2], found[place][1])
    return dict(found.values())


def _registered(elf: Elf, sections: list[Section]) -> dict[int, int] | None:
    """Offsets of the registered containers with their wrappers' versions."""
    if elf.type == RELOCATABLE:
        return None
    offsets: dict[int, int] = {}
    for wrappers in elf.named(_WRAPPERS):
        for address, version in _wrapper_targets(elf, wrappers).items():
            for section in sections:
                if section.address <= address < section.address + section.size:
                    offsets[address - section.address + section.offset] = version
    # Where not one points into the sections, this linker writes them in a way that is not understood here.
    return offsets or None


def _read(source: Source) -> tuple[list[Container], dict[int, int] | None]:
    if is_archive(source):
        found = [container for member in members(source) for container in _shifted(member)]
        return found, None
    elf = read_elf(source)
    sections = [s for s in elf.sections if s.name in (WHOLE_CODE, RELOCATABLE_CODE) and s.type != NOBITS]
    containers = [c for s in sections for c in walk(source, s.name, s.offset, s.size, s.alignment)]
    return containers, _registered(elf, sections)


def _shifted(member: Source) -> Iterator[Container]:
    """A member's containers with offsets of the whole file."""
    for container in _read(member)[0]:
        entries = tuple(replace(e, offset=e.offset + member.base) for e in container.entries)
        yield replace(container, offset=container.offset + member.base, entries=entries)


def device_image(path: Path) -> DeviceImage:
    """Read the containers of an object, static library, shared library or executable.

    No device code is no error: `containers` is empty then. Raises :class:`BadFatbin` for a missing,
    truncated or malformed file.
    """
    with open_source(path) as (source, stamp):
        containers, registered = _read(source)
    return DeviceImage(path, stamp, tuple(containers), registered)
