"""Whether the device link (nvlink) of a provider was made from an object's relocatable code.

Measured with nvlink 13.0 (sm_75 to sm_120a, -G, -lineinfo): a linked function's code is the object's,
byte for byte, but for the 16-byte instructions that relocations name; variables keep name and content.
Link-time optimisation generates the code anew: there nothing can be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.binary.cubin import Cubin, Datum, Function, Reference, read_cubin
from tasks.binary.fatbin import Container, Entry, payload
from tasks.binary.image import DeviceImage
from tasks.binary.names import demangle
from tasks.binary.source import Source, memory_source

__all__ = ["LinkFinding", "LinkedCode", "judge_links"]

Status = Literal["contained", "missing", "ambiguous"]


@dataclass(frozen=True)
class LinkFinding:
    """What a device link says of one object.

    `matched` are the (architecture, symbol) that were found unchanged and that other objects may hold as
    well; `faults` are those that were not found so, with the reason: `status` and `evidence` count where
    there are none.
    """

    status: Status
    evidence: str
    matched: frozenset[tuple[str, str]] = frozenset()
    faults: tuple[tuple[str, str, str], ...] = ()


def judge_links(findings: Mapping[str, LinkFinding], name: str) -> dict[str, tuple[Status, str]]:
    """(status, evidence) per object.

    Of a template's instances in several objects the link takes one: it is enough that it is the one
    of any object.
    """
    matched = {key for finding in findings.values() for key in finding.matched}
    result: dict[str, tuple[Status, str]] = {}
    for key, finding in findings.items():
        # A string literal's name (`$str`) is no one's own, so it is never weak.
        faults = [(arch, text) for arch, symbol, text in finding.faults if (arch, symbol) not in matched]
        if faults:
            arch, text = faults[0]
            more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
            result[key] = "missing", f"the device link in {name} is not of this object: {text} ({arch}){more}"
        else:
            result[key] = finding.status, finding.evidence
    return result


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
            and _masked(datum.content, datum.references, _POINTER)
            == _masked(linked.content, datum.references, _POINTER)
            and _same_targets(datum.references, linked.references))


class LinkedCode:
    """The cubins that device links wrote into a provider, read when first asked for."""

    def __init__(self, provider: DeviceImage, source: Source) -> None:
        self._source = source
        self._name = provider.path.name
        self._containers = provider.device_linked
        self._cubins: dict[str, list[Cubin]] = {}

    def _of(self, arch: str) -> list[Cubin]:
        if arch not in self._cubins:
            self._cubins[arch] = [cubin for container in self._containers
                                  for cubin in _cubins(self._source, container.entries, arch)]
        return self._cubins[arch]

    def examine(self, source: Source, containers: Sequence[Container]) -> LinkFinding:
        """Hold every function and variable of an object's relocatable containers against what was linked."""
        entries = [entry for container in containers for entry in container.entries]
        archs = sorted({entry.arch for entry in entries if entry.kind == "elf"})
        unlike = f"the code in {self._name} cannot be held against the object's"
        if any(entry.kind == "lto" for entry in entries):
            return LinkFinding("ambiguous", f"link-time optimisation: {unlike}")
        if not archs:
            return LinkFinding("ambiguous", f"no machine code, only PTX: {unlike}")
        matched: set[tuple[str, str]] = set()
        faults: list[tuple[str, str, str]] = []
        for arch in archs:
            linked = self._of(arch)
            if not linked:
                return LinkFinding("missing", f"no device link in {self._name} has code for {arch}")
            for cubin in _cubins(source, entries, arch):
                for part, fault in _compare(cubin, linked):
                    if fault:
                        faults.append((arch, part.name, fault))
                    elif part.weak:
                        matched.add((arch, part.name))
        return LinkFinding("contained", f"its device link holds this object's code for {', '.join(archs)}",
                           frozenset(matched), tuple(faults))


def _cubins(source: Source, entries: Sequence[Entry], arch: str) -> Iterator[Cubin]:
    for entry in entries:
        if entry.kind == "elf" and entry.arch == arch:
            yield read_cubin(memory_source(source.path, payload(source, entry), f"cubin for {arch}"))


def _compare(cubin: Cubin, linked: Sequence[Cubin]) -> Iterator[tuple[Function | Datum, str]]:
    """(function or variable, what contradicts that it was linked, or nothing)."""
    functions: dict[str, list[Function]] = defaultdict(list)
    data: dict[str, list[Datum]] = defaultdict(list)
    for other in linked:
        for function in other.functions:
            functions[function.name].append(function)
        for datum in other.data:
            data[datum.name].append(datum)
    for function in cubin.functions:
        there = functions[function.name]
        if any(_same_function(function, other) for other in there):
            yield function, ""
        elif there:
            yield function, f"{demangle(function.name)} has other code"
        elif function.entry:
            # The link drops device functions that nothing calls, never a kernel.
            yield function, f"kernel {demangle(function.name)} is missing"
    for datum in cubin.data:
        if any(_same_datum(datum, other) for other in data[datum.name]):
            yield datum, ""
        elif data[datum.name]:
            yield datum, f"variable {demangle(datum.name)} has another content"
