"""Whether a linked file holds the device code of objects. Proves device code only; knows no receipt.

A host-only edit leaves the containers as they are, and an object without device code proves nothing:
there the link receipt decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from tasks.binary.code import holds_code
from tasks.binary.devicelink import LinkedCode, LinkFinding, judge_links
from tasks.binary.fatbin import Container
from tasks.binary.fingerprint import container_digest
from tasks.binary.image import RELOCATABLE_CODE, DeviceImage
from tasks.binary.source import Source

__all__ = ["Containment", "code_copies", "contains"]

Status = Literal["contained", "missing", "ambiguous", "none"]


@dataclass(frozen=True)
class Containment:
    """What the linked file says of one object, and why, in one line.

    ``contained``: all its containers lie there, verbatim and registered, and its relocatable code is
    what the device link used. ``missing``: disproved. ``ambiguous``: nothing disproves it, but it
    cannot be told. ``none``: the object has no device code.
    """

    status: Status
    evidence: str


_Run = tuple[Container, ...]


def _runs(image: DeviceImage) -> list[_Run]:
    """The containers that lie one behind the other in one section: a linker keeps such a run together."""
    runs: list[list[Container]] = []
    for container in image.containers:
        last = runs[-1][-1] if runs else None
        if last is not None and last.section == container.section and last.offset + last.size == container.offset:
            runs[-1].append(container)
        else:
            runs.append([container])
    return [tuple(run) for run in runs]


class _Linked:
    """A linked file's containers by section and size, compared byte by byte."""

    def __init__(self, image: DeviceImage, source: Source) -> None:
        self._image = image
        self._source = source
        self._by_size: dict[tuple[str, int], list[int]] = defaultdict(list)
        for i, container in enumerate(image.containers):
            self._by_size[container.section, container.size].append(i)

    def places(self, run: _Run, source: Source) -> list[int]:
        """Offsets in the linked file where the run lies verbatim."""
        found = []
        for i in self._by_size[run[0].section, run[0].size]:
            there = self._image.containers[i:i + len(run)]
            size = run[-1].offset + run[-1].size - run[0].offset
            if there[-1].offset + there[-1].size - there[0].offset == size and all(
                    a == b for a, b in zip(source.blocks(run[0].offset, size),
                                           self._source.blocks(there[0].offset, size), strict=True)):
                found.append(there[0].offset)
        return found

    def registered(self, run: _Run, place: int) -> bool:
        """Whether every container of the run at `place` is named by a wrapper, as far as that can be told."""
        known = self._image.registered
        shift = place - run[0].offset
        return known is None or all(container.offset + shift in known for container in run)


def _judge_run(run: _Run, places: Sequence[int], rivals: int, linked: _Linked, name: str) -> Containment:
    archs = ", ".join(sorted({arch for container in run for arch in container.archs})) or "no architecture"
    if not places:
        return Containment("missing", f"{name} does not hold this object's device code ({archs})")
    registered = [place for place in places if linked.registered(run, place)]
    if not registered:
        return Containment("missing", f"{name} holds this object's device code ({archs}), but registers it nowhere")
    if len(registered) < rivals:
        return Containment("ambiguous", f"{rivals} objects have identical device code, "
                                        f"{name} holds {len(registered)} of it: which one cannot be told")
    same = "" if rivals == 1 else f"; {rivals} objects have identical device code, all are there"
    return Containment("contained", f"device code for {archs} lies in {name} at offset {registered[0]:#x}{same}")


def contains(provider: DeviceImage, objects: Mapping[str, DeviceImage]) -> dict[str, Containment]:
    """Per object (by its name) whether `provider`, a linked file or static library, holds its device code.

    Objects with identical containers need as many copies. Relocatable device code is also held
    against the code that the device link made of it. Raises :class:`BadFatbin` where a file is
    malformed or was replaced meanwhile.
    """
    result: dict[str, Containment] = {}
    with ExitStack() as stack:
        linked_source = stack.enter_context(provider.open())
        linked = _Linked(provider, linked_source)
        code = LinkedCode(provider, linked_source)
        links: dict[str, LinkFinding] = {}
        found: dict[str, list[tuple[_Run, list[int]]]] = {}
        rivals: dict[tuple[int, ...], int] = defaultdict(int)
        for name, image in objects.items():
            with image.open() as source:
                found[name] = [(run, linked.places(run, source)) for run in _runs(image)]
                relocatable = [c for c in image.containers if c.section == RELOCATABLE_CODE]
                if relocatable and all(places for _, places in found[name]):
                    links[name] = code.examine(source, relocatable)
            # Identical runs have the same places; a static library may hold one object twice.
            for places, group in groupby(sorted(found[name], key=lambda item: item[1]), key=lambda item: item[1]):
                rivals[tuple(places)] += len(list(group))
    linked_code = judge_links(links, provider.path.name)
    for name in objects:
        judged = [_judge_run(run, places, rivals[tuple(places)], linked, provider.path.name)
                  for run, places in found[name]]
        if name in linked_code:
            judged.append(Containment(*linked_code[name]))
        result[name] = _worst(judged)
    return result


def _worst(judged: Sequence[Containment]) -> Containment:
    for status in ("missing", "ambiguous"):
        for part in judged:
            if part.status == status:
                return part
    if not judged:
        return Containment("none", "the object has no device code")
    return Containment("contained", "; ".join(part.evidence for part in judged))


def code_copies(image: DeviceImage, wanted: Collection[tuple[int, str]]) -> Counter[tuple[int, str]]:
    """How often the file holds each of these containers, (size in bytes, SHA-256), that have any code.

    Those without are the same for every unit and tell nothing. Raises :class:`BadFatbin`.
    """
    sizes = {size for size, _ in wanted}
    with image.open() as source:
        found = [(pair, c) for c in image.containers if c.size in sizes
                 and (pair := (c.size, container_digest(source, c))) in wanted]
        return Counter(pair for pair, c in found if holds_code(source, c))
