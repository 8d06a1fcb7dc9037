"""Whether the device link (nvlink) of a provider was made from an object's relocatable code.

Measured with nvlink 13.0 (sm_75 to sm_120a, -G, -lineinfo): a linked function's code is the object's,
byte for byte, but for the 16-byte instructions that relocations name; variables keep name and content.
Link-time optimisation generates the code anew: there nothing can be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal

from tasks.binary.cubin import Cubin, Datum, Function, Reference, read_cubin
from tasks.binary.fatbin import Container, Entry, payload
from tasks.binary.image import DEVICE_LINKED, WHOLE_CODE, DeviceImage
from tasks.binary.names import demangle
from tasks.binary.source import Source, memory_source

__all__ = ["LinkedCode"]

Finding = tuple[Literal["contained", "missing", "ambiguous"], str]

_INSTRUCTION = 16  # bytes, since sm_70
_POINTER = 8


def _masked(content: bytes, references: Sequence[Reference], width: int) -> bytes:
    """The bytes with everything that a relocation writes set to zero."""
    if not references:
        return content
    raw = bytearray(content)
    for reference in references:
        start = reference.offset - reference.offset % width
        if 0 <= start < len(raw):
            raw[start:start + width] = bytes(min(width, len(raw) - start))
    return bytes(raw)


def _same_targets(old: Sequence[Reference], linked: Sequence[Reference]) -> bool:
    """Whether the references that the link kept name what the object's do. Those it resolved are gone from it."""
    wanted: dict[int, set[str]] = defaultdict(set)
    for reference in old:
        wanted[reference.offset].add(reference.symbol)
    return all(reference.symbol in wanted[reference.offset] for reference in linked if reference.offset in wanted)


def _same_function(function: Function, linked: Function) -> bool:
    return (len(function.code) == len(linked.code)
            and _masked(function.code, function.references, _INSTRUCTION)
            == _masked(linked.code, function.references, _INSTRUCTION)
            and _same_targets(function.references, linked.references))


def _same_datum(datum: Datum, linked: Datum) -> bool:
    return (datum.section == linked.section and len(datum.content) == len(linked.content)
            and _masked(datum.content, datum.references, _POINTER) == _masked(linked.content, datum.references, _POINTER)
            and _same_targets(datum.references, linked.references))


class LinkedCode:
    """The cubins that device links wrote into a provider, read when first asked for."""

    def __init__(self, provider: DeviceImage, source: Source) -> None:
        self._source = source
        self._name = provider.path.name
        registered = provider.registered
        self._containers = [c for c in provider.containers if c.section == WHOLE_CODE
                            and (registered is None or registered.get(c.offset) == DEVICE_LINKED)]
        self._cubins: dict[str, list[Cubin]] = {}

    def _of(self, arch: str) -> list[Cubin]:
        if arch not in self._cubins:
            self._cubins[arch] = [cubin for container in self._containers
                                  for cubin in _cubins(self._source, container.entries, arch)]
        return self._cubins[arch]

    def made_from(self, source: Source, containers: Sequence[Container]) -> Finding:
        """Whether every function and variable of an object's relocatable containers is what was linked."""
        entries = [entry for container in containers for entry in container.entries]
        archs = sorted({entry.arch for entry in entries if entry.kind == "elf"})
        if any(entry.kind == "lto" for entry in entries):
            return "ambiguous", f"link-time optimisation: the code in {self._name} cannot be held against the object's"
        if not archs:
            return "ambiguous", f"only PTX: the code in {self._name} cannot be held against the object's"
        compared = 0
        for arch in archs:
            linked = self._of(arch)
            if not linked:
                return "missing", f"the device link in {self._name} has no code for {arch}"
            for cubin in _cubins(source, entries, arch):
                fault, count = _fault(cubin, linked)
                if fault:
                    return "missing", f"the device link in {self._name} is not of this object: {fault} ({arch})"
                compared += count
        return "contained", f"the device link holds its {compared} functions for {', '.join(archs)}"


def _cubins(source: Source, entries: Sequence[Entry], arch: str) -> Iterator[Cubin]:
    for entry in entries:
        if entry.kind == "elf" and entry.arch == arch:
            yield read_cubin(memory_source(source.path, payload(source, entry), f"cubin for {arch}"))


def _fault(cubin: Cubin, linked: Sequence[Cubin]) -> tuple[str, int]:
    """What contradicts that `cubin` was linked into one of `linked`, or nothing; and the functions compared."""
    functions: dict[str, list[Function]] = defaultdict(list)
    data: dict[str, list[Datum]] = defaultdict(list)
    for other in linked:
        for function in other.functions:
            functions[function.name].append(function)
        for datum in other.data:
            data[datum.name].append(datum)
    compared = 0
    for function in cubin.functions:
        there = functions[function.name]
        # The link drops device functions that nothing calls, never a kernel.
        if not there and function.entry:
            return f"kernel {demangle(function.name)} is missing", compared
        if there and not any(_same_function(function, other) for other in there):
            return f"{demangle(function.name)} has other code", compared
        compared += len(there) > 0
    for datum in cubin.data:
        if data[datum.name] and not any(_same_datum(datum, other) for other in data[datum.name]):
            return f"variable {demangle(datum.name)} has another content", compared
    return "", compared
