"""The count: each claim of a column beside the oracle's answer.

Three states are told apart. The artifact holds other code than the sources: only "not fresh" is right.
Everything is in place (the same code, from inputs that did not change since the compile, in files that the
column left there): only "fresh" is right, and a forced recompile is an alarm. In between (a comment was edited; an
object was rebuilt or replaced by others) "not fresh" is no alarm, and "fresh" is none either.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign.columns import Claim
from tests.campaign.oracle import Compile, Oracle, Truth, holds, read_compiles
from tests.campaign.place import Place

__all__ = ["COUNTS", "Check", "Ledger", "Sight"]

COUNTS = ("false_green", "false_alarm", "unproven_by_design", "recompiled_needlessly")

_Mark = tuple[int, ...]


@dataclass(frozen=True)
class Check:
    """One claim, judged: `kind` is one of COUNTS, or empty where the claim was right."""

    kind: str
    step: str
    claim: str
    why: str = ""
    units: int = 1


def _mark(path: Path) -> _Mark | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@dataclass(frozen=True)
class Sight:
    """The place at one moment, as the oracle and the file system see it."""

    truth: Truth
    holding: Mapping[str, bool]
    objects: Mapping[str, _Mark | None]
    provider: _Mark | None
    sources: Mapping[str, _Mark | None]
    compiles: Mapping[str, Compile]

    @property
    def holds(self) -> bool:
        """Whether the artifact holds exactly what the sources mean."""
        return self.truth.compiles and bool(self.holding) and all(self.holding.values())


@dataclass
class Ledger:
    """What one column did and said in one scenario; `meant`: see :func:`tests.campaign.oracle.holds`."""

    place: Place
    oracle: Oracle
    checks: list[Check] = field(default_factory=list)
    meant: dict[str, int] = field(default_factory=dict)
    _left: Sight | None = None
    _compiled: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Everything is in place now, and the column left it there."""
        self._left = self.see()
        self._compiled = dict(self._left.truth.openings)

    def see(self) -> Sight:
        truth = self.oracle.truth(self.place)
        compiles = {one.name: one for one in read_compiles(self.place.build_dir) if one.name in truth.revisions}
        return Sight(truth, holds(self.place, truth, self.meant),
                     {name: _mark(one.object) for name, one in compiles.items()}, _mark(self.place.provider),
                     {name: _mark(one.source) for name, one in compiles.items()}, compiles)

    def note_compiles(self, before: Sight, after: Sight) -> set[str]:
        """Which objects are others now; they were compiled from what lies there, unless that was edited meanwhile.

        An object that is no newer than the one before was laid down by something that is no compiler.
        """
        remade = {name for name, mark in after.objects.items() if mark != before.objects.get(name)}
        for name in remade:
            steady = before.truth.edits.get(name) == after.truth.edits.get(name)
            known = steady and not _is_laid_down(before.objects.get(name), after.objects[name])
            self._compiled[name] = after.truth.openings.get(name, "") if known else "not known"
        return remade

    def left_by_column(self, sight: Sight) -> None:
        """What the column left: whatever differs later was done by others."""
        self._left = sight

    def is_foreign(self, sight: Sight) -> bool:
        """Whether an object or the provider is not the file that the column left."""
        assert self._left is not None
        return sight.objects != self._left.objects or sight.provider != self._left.provider

    def is_changed(self, sight: Sight, name: str) -> bool:
        """Whether a unit's inputs are not those of its last compile."""
        return sight.truth.openings.get(name) != self._compiled.get(name)

    def judge(self, step: str, claim: Claim, sight: Sight) -> None:
        """Write down whether the claim is right."""
        self.checks.append(Check(self._kind(claim, sight), step, claim.word, self._why(claim, sight)))

    def _kind(self, claim: Claim, sight: Sight) -> str:
        if claim.fresh:
            return "" if sight.holds else "false_green"
        if not sight.holds or any(self.is_changed(sight, name) for name in sight.truth.revisions):
            return ""
        if self.is_foreign(sight) and claim.word == "unproven":
            return "unproven_by_design"
        return "false_alarm"

    @staticmethod
    def _why(claim: Claim, sight: Sight) -> str:
        wrong = sorted(name for name, right in sight.holding.items() if not right)
        told = f"the artifact holds other code: {', '.join(wrong) or 'all'}" if not sight.holds else "all is in place"
        return f"{told}; said: {claim.text.strip()[-600:]}"

    def judge_recompiles(self, step: str, before: Sight, after: Sight) -> None:
        """Count the units that the column forced although they were in place."""
        assert self._left is not None
        changed = {name for name in before.truth.revisions if self.is_changed(before, name)}
        forced = {name for name in self.note_compiles(before, after) if _was_forced(before, after, name)}
        needless = {name for name in forced - changed
                    if before.holding.get(name, False)
                    and before.truth.openings.get(name) == after.truth.openings.get(name)
                    and before.objects.get(name) == self._left.objects.get(name)}
        if needless:
            names = ", ".join(sorted(needless))
            self.checks.append(Check("recompiled_needlessly", step, "", names, len(needless)))
            if before.holds and not changed and not self.is_foreign(before):
                self.checks.append(Check("false_alarm", step, "recompiled", f"in place: {names}"))


def _is_laid_down(before: _Mark | None, after: _Mark | None) -> bool:
    return before is not None and after is not None and before[2] <= time.time_ns() and after[2] <= before[2]


def _was_forced(before: Sight, after: Sight, name: str) -> bool:
    """Whether the column made the build tool compile: it touched the source, or removed an object from the future."""
    old = before.objects.get(name)
    from_the_future = old is not None and after.objects[name] is not None and old[2] > after.objects[name][2]
    return before.sources.get(name) != after.sources.get(name) or from_the_future
