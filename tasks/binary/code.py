"""Digests of device code by architecture: the same for two compiles of equal code. Judges nothing.

Left out is what differs between two compiles of the same source: debug sections
with mtimes and paths, hashes of paths and module ids in names, symbol indices, tool notes.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tasks.binary.cubin import Cubin, Function, Reference, read_cubin
from tasks.binary.elf import ALLOC
from tasks.binary.fatbin import Container, Entry, payload
from tasks.binary.image import DeviceImage
from tasks.binary.names import stable, stable_bytes
from tasks.binary.ptx import read_ptx
from tasks.binary.source import Source, memory_source

__all__ = ["ArchCode", "code_by_arch", "digest", "holds_code"]

_PTX_HEAD = (b".version", b".target", b".address_size")


@dataclass(frozen=True)
class ArchCode:
    """One architecture's digests: kernels and device functions by mangled name, and all data together."""

    kernels: Mapping[str, str]
    functions: Mapping[str, str]
    data: str


@dataclass
class _Parts:
    kernels: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    functions: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    data: list[str] = field(default_factory=list)

    def add(self, name: str, entry: bool, text: str) -> None:
        (self.kernels if entry else self.functions)[stable(name)].append(text)


def digest(parts: Iterable[object]) -> str:
    """A digest (128 bits, hexadecimal) of byte strings, text and numbers, each delimited."""
    total = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else repr(part).encode("utf-8", "surrogateescape")
        total.update(b"%d:" % len(raw))
        total.update(raw)
    return total.hexdigest()[:32]


def _named(references: Iterable[Reference]) -> list[tuple[int, int, str, int]]:
    return [(r.offset, r.type, stable(r.symbol), r.addend) for r in references]


def _function(function: Function) -> str:
    attached = [part for name, size, content in function.attached for part in (name, size, content)]
    return digest([function.code, _named(function.references), function.registers, function.stack, function.info,
                   *attached])


def _add_cubin(parts: _Parts, cubin: Cubin) -> None:
    for function in cubin.functions:
        parts.add(function.name, function.entry, _function(function))
    sections = [[stable(name), flags, size, stable_bytes(content), _named(references)]
                for name, flags, size, content, references in cubin.sections]
    variables = [(stable(name), stable(section), value, size) for name, section, value, size in cubin.variables]
    parts.data.append(digest([sections, sorted(variables)]))


def _cubin(source: Source, entry: Entry, raw: bytes) -> Cubin:
    return read_cubin(memory_source(source.path, raw, f"cubin for {entry.arch}"))


def _add(parts: _Parts, source: Source, entry: Entry) -> None:
    raw = payload(source, entry)
    if entry.kind == "elf":
        _add_cubin(parts, _cubin(source, entry, raw))
    elif entry.kind == "ptx":
        functions, rest = read_ptx(raw)
        for function in functions:
            parts.add(function.name, function.entry, digest([function.text]))
        parts.data.append(digest([rest]))
    else:
        parts.data.append(digest([raw]))


def code_by_arch(image: DeviceImage) -> dict[str, ArchCode]:
    """Digests of everything in the image by architecture. Raises :class:`BadFatbin`."""
    found: dict[str, _Parts] = defaultdict(_Parts)
    with image.open() as source:
        for container in image.containers:
            for entry in container.entries:
                _add(found[entry.arch], source, entry)
    return {arch: ArchCode({name: _one(texts) for name, texts in sorted(parts.kernels.items())},
                           {name: _one(texts) for name, texts in sorted(parts.functions.items())},
                           _one(parts.data))
            for arch, parts in sorted(found.items())}


def holds_code(source: Source, container: Container) -> bool:
    """Whether a GPU can run or read anything of the container. Raises :class:`BadFatbin`.

    nvcc writes one without for every unit that has no kernel, function or variable, the same for all of them.
    """
    return any(_holds_code(source, entry) for entry in container.entries)


def _holds_code(source: Source, entry: Entry) -> bool:
    raw = payload(source, entry)
    if entry.kind == "elf":
        cubin = _cubin(source, entry, raw)
        # Shared memory that newer architectures reserve lies in a section without bytes.
        return bool(cubin.functions or cubin.variables or cubin.data) or any(
            flags & ALLOC and content for _, flags, _, content, _ in cubin.sections)
    if entry.kind == "ptx":
        functions, rest = read_ptx(raw)
        return bool(functions) or not all(line.startswith(_PTX_HEAD) for line in rest.splitlines())
    return True


def _one(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else digest(sorted(texts))
