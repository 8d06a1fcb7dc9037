"""The rules of truth: from facts and receipts to verdicts. Pure but for the files that an Observer looks at.

`fresh`: proved. `stale`: disproved. `unproven`: no receipt for this very object or provider, and
nothing that disproves it. Nothing is fresh because nothing was found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from tasks.evidence.receipts import LinkReceipt, UnitReceipt
from tasks.evidence.snapshot import Observer

__all__ = ["LINK_NAMES", "Link", "UnitFacts", "UnitJudgement", "Verdict", "judge_linked", "judge_unit",
           "link_of_objects", "not_checked", "worst"]

Verdict = Literal["fresh", "unproven", "stale"]
_ORDER: dict[Verdict, int] = {"fresh": 0, "unproven": 1, "stale": 2}

LINK_NAMES = ("header-unit", "unit-object", "object-provider", "provider-process", "process-tests", "tests-kernel",
              "kernel-gpu")


class UnitFacts(NamedTuple):
    """What counts for one unit's object now.

    `inputs` are absolute paths: source, closure, compilers. `recipe` holds what is no file: a digest
    of the compile line, and the environment's part.
    """

    name: str
    source: str
    object: str
    inputs: frozenset[str]
    recipe: Mapping[str, str]


class UnitJudgement(NamedTuple):
    """The verdict on one unit's object and its reason; `changed` lists the inputs that differ from the receipt."""

    name: str
    verdict: Verdict
    reason: str
    changed: tuple[str, ...] = ()


class Link(NamedTuple):
    """One link of the chain: number, name, verdict, evidence lines, and the command that mends it."""

    n: int
    verdict: Verdict
    evidence: tuple[str, ...]
    remedy: str | None = None
    checked: bool = True

    @property
    def name(self) -> str:
        """The link's fixed name."""
        return LINK_NAMES[self.n - 1]

    def with_evidence(self, *lines: str) -> Link:
        """The same link with more evidence lines."""
        return self._replace(evidence=(*self.evidence, *lines))

    def with_remedy(self, command: str) -> Link:
        """The same link with the command that mends it."""
        return self._replace(remedy=command)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of the worst; ``unproven`` where there is none at all."""
    return max(verdicts, key=_ORDER.__getitem__, default="unproven")


def not_checked(n: int, why: str) -> Link:
    """A link that nobody has looked at: unproven, and said as such."""
    return Link(n, "unproven", (why,), checked=False)


def _when(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _unmoved(facts: UnitFacts, receipt: UnitReceipt, observer: Observer) -> bool:
    """Whether all is as the receipt says: the quick answer."""
    source = receipt.inputs.get(facts.source)
    return (receipt.recipe == facts.recipe and source is not None and facts.source in facts.inputs
            and receipt.moment == observer.moment(facts.inputs - {facts.source})
            and observer.is_digest(facts.source, *source))


def _differences(facts: UnitFacts, receipt: UnitReceipt, observer: Observer) -> list[tuple[str, str]]:
    """(input, what about it) for everything that is not as the receipt says."""
    if _unmoved(facts, receipt, observer):
        return []
    found = [(path, "is an input now") for path in sorted(facts.inputs - receipt.inputs.keys())]
    for path, (identity, digest) in receipt.inputs.items():
        if path not in facts.inputs:
            found.append((path, "is no input any more"))
        elif not observer.is_digest(path, identity, digest):
            found.append((path, "changed"))
    for key in sorted(facts.recipe.keys() | receipt.recipe.keys()):
        if facts.recipe.get(key) != receipt.recipe.get(key):
            found.append((key, "changed"))
    if receipt.moved:
        # What the compiler saw of these is not known, and so not which other inputs they brought along.
        found = [(path, what) for path, what in found if what == "changed" and path not in receipt.moved]
    return found


def _told(differences: Sequence[tuple[str, str]], since: float) -> str:
    first, what = differences[0]
    name = os.path.basename(first)
    others = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return f"{name} {what} since the compile of {_when(since)}{others}"


def judge_unit(facts: UnitFacts, receipt: UnitReceipt | None, observer: Observer) -> UnitJudgement:
    """Whether the unit's object was compiled from its inputs as they are now."""
    def verdict(word: Verdict, reason: str, changed: Iterable[str] = ()) -> UnitJudgement:
        return UnitJudgement(facts.name, word, reason, tuple(changed))

    if observer.identity(facts.object) is None:
        return verdict("unproven", "its object does not exist")
    if receipt is None or receipt.object != facts.object or receipt.source != facts.source:
        return verdict("unproven", "no receipt: this object was not built by this tool")
    if not observer.is_digest(facts.object, receipt.object_identity, receipt.object_digest):
        return verdict("unproven", f"the object was replaced or rebuilt by hand since {_when(receipt.built)}")
    if differences := _differences(facts, receipt, observer):
        return verdict("stale", _told(differences, receipt.built), [path for path, _ in differences])
    if receipt.moved:
        others = f" (and {len(receipt.moved) - 1} more)" if len(receipt.moved) > 1 else ""
        return verdict("unproven", f"{os.path.basename(receipt.moved[0])} was written while it was compiled{others}",
                       receipt.moved)
    if receipt.withdrawn:
        return verdict("unproven", "a recompile was begun and never proved")
    return verdict("fresh", f"compiled {_when(receipt.built)} from exactly these {len(facts.inputs)} inputs")


def link_of_objects(judgements: Sequence[UnitJudgement], remedy: str) -> Link:
    """Link 2: the worst of the units."""
    verdict = worst(judgement.verdict for judgement in judgements)
    if verdict == "fresh":
        return Link(2, verdict, (f"{len(judgements)} objects compiled from the sources as they are now",))
    broken = [j for j in judgements if j.verdict != "fresh"]
    broken.sort(key=lambda j: (-_ORDER[j.verdict], j.name))
    return Link(2, verdict, tuple(f"{j.name}: {j.verdict}: {j.reason}" for j in broken), remedy)


def judge_linked(linked: str, objects: Mapping[str, UnitJudgement], receipt: LinkReceipt | None, observer: Observer,
                 remedy: str) -> Link:
    """Link 3, the link receipt: whether the linker made `linked` from these objects as they are now.

    Another object than the linked one disproves the provider only where that object is proved
    itself: beside an object from outside, the provider may be the one that is right.
    """
    name = os.path.basename(linked)
    if observer.identity(linked) is None:
        return Link(3, "unproven", (f"{name} does not exist",), remedy)
    if receipt is None or receipt.linked != linked:
        return Link(3, "unproven", (f"no receipt: {name} was not linked by this tool",), remedy)
    if not observer.is_digest(linked, receipt.identity, receipt.digest):
        return Link(3, "unproven", (f"{name} was replaced or relinked by hand since {_when(receipt.built)}",), remedy)
    broken: list[tuple[Verdict, str]] = []
    for path, judgement in objects.items():
        recorded, now = receipt.objects.get(path), observer.digest(path)
        if recorded is None:
            broken.append(("unproven", f"{judgement.name} was not part of the recorded link of {name}"))
        elif now is None:
            broken.append(("unproven", f"the object of {judgement.name} does not exist"))
        elif now != recorded:
            word: Verdict = "stale" if judgement.verdict == "fresh" else "unproven"
            broken.append((word, f"{name} was linked {_when(receipt.built)} from another object of {judgement.name}"))
    if broken:
        return Link(3, worst(word for word, _ in broken), tuple(line for _, line in broken), remedy)
    return Link(3, "fresh", (f"{name} linked {_when(receipt.built)} from exactly these {len(objects)} objects",))
