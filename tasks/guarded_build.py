"""What makes a build believable: a forced recompile, the snapshot before it, the receipts after it. Runs no program."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from tasks.device_code import contradicts_link
from tasks.errors import UserError
from tasks.evidence import STATE_NAME
from tasks.evidence.chain import UnitJudgement, judge_linked, judge_unit
from tasks.evidence.linking import prove_steps
from tasks.evidence.receipts import LinkReceipt, ReceiptStore, UnitReceipt
from tasks.evidence.snapshot import Identity, Observer, clock_ns, identity_of, settle
from tasks.survey import Survey, WatchedUnit
from tasks.upstream import Pending, find_pending

__all__ = ["BeforeBuild", "BuildResult", "Judged", "force", "judge", "observer_for", "state_folder",
           "write_link_receipt", "write_unit_receipts"]


def state_folder(build_dir: Path) -> Path:
    """Where everything that this project keeps about a build directory lies."""
    return build_dir / STATE_NAME


class Judged(NamedTuple):
    """Units and provider as the receipts judge them at one moment; `pending` is what a build would make before them."""

    units: Mapping[str, UnitJudgement]
    linked: bool
    pending: Pending
    observer: Observer

    @property
    def unproved(self) -> list[str]:
        """The units whose object is not proved."""
        return [name for name, judgement in self.units.items() if judgement.verdict != "fresh"]

    @property
    def proved(self) -> bool:
        """Whether every object and the link of the provider are proved."""
        return self.linked and not self.pending and not self.unproved


@dataclass(eq=False, repr=False)
class BuildResult:
    """What a guarded build did. `not_rewritten` names forced units whose object is still the old one.

    `complete` is false while the commands run and where one failed: an object may be half-written then.
    `from_cache` holds sources whose object a launcher took from its cache, `launchers` tells what they did.
    `same_bytes` is what it means that an object of nvcc has the bytes of the one before: nvcc itself never writes
    them twice, behind sccache it does. `moved` has a unit's inputs that were written while it was compiled, `rewritten`
    those of them that were so at its compile before, too; `proved` the receipt that it had before either. `restored`
    and `unclear` list the units whose object got no receipt for it, `broken` those whose object is none, `not_made` the
    generated headers that were to be made again, and were not. `after` is a look taken after the last of `commands`,
    where there was one.
    """

    status: int = 0
    complete: bool = False
    from_cache: frozenset[str] = frozenset()
    same_bytes: Literal["restored", "compiled", "unclear"] = "restored"
    launchers: list[str] = field(default_factory=list)
    log: Path | None = None
    commands: list[str] = field(default_factory=list)
    recompiled: list[str] = field(default_factory=list)
    not_rewritten: list[str] = field(default_factory=list)
    moved: dict[str, list[str]] = field(default_factory=dict)
    proved: dict[str, UnitReceipt | None] = field(default_factory=dict)
    restored: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    rewritten: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    not_made: list[str] = field(default_factory=list)
    after: Survey | None = None
    seconds: float = 0.0


def observer_for(receipts: Iterable[UnitReceipt | None], link: LinkReceipt | None,
                 seen: Mapping[str, Sequence[int]] | None = None) -> Observer:
    """An observer that need not read what the receipts know by identity; for `seen` see :class:`Observer`."""
    observer = Observer(seen=seen)
    for receipt in receipts:
        if receipt is not None:
            observer.learn(receipt.object, receipt.object_identity, receipt.object_digest)
            observer.learn_all(receipt.inputs)
    if link is not None:
        observer.learn(link.linked, link.identity, link.digest)
        for output, step in link.steps.items():
            observer.learn(output, step.identity, step.digest)
    return observer


def judge(survey: Survey, store: ReceiptStore, seen: Mapping[str, Sequence[int]] | None = None) -> Judged:
    """Links 2 and 3 by the receipts, without reading a file that did not move.

    `seen` is the survey's own, where survey and judgement are one look; else every file is asked for anew.
    """
    receipts = {name: store.unit(name) for name in survey.units}
    link = store.link()
    observer = observer_for(receipts.values(), link, seen)
    units = {name: judge_unit(unit.facts, receipts[name], observer) for name, unit in survey.units.items()}
    objects = {survey.units[name].facts.object: judgement for name, judgement in units.items()}
    linked = judge_linked(survey.provider, objects, link, observer, "").verdict == "fresh"
    return Judged(units, linked, find_pending(survey.upstream, store.generated(), observer), observer)


def _touch(source: Path, obj: Path) -> bool:
    """Make the source newer than its object; False where that cannot be had."""
    try:
        os.utime(source)
    except OSError:
        return False
    try:
        return source.stat().st_mtime_ns > obj.stat().st_mtime_ns
    except OSError:
        return True  # no object: it is made anyway


def force(unit: WatchedUnit, store: ReceiptStore, how: str) -> str:
    """Make the build tool recompile one unit; says what was done to it. Needs the lock.

    The receipt is withdrawn first. The source is touched, which reaches every build directory of
    the checkout; where a touch cannot work (an object from the future, a source that is not ours to
    touch), or on `how` ``remove``, the object is removed.
    """
    store.withdraw(unit.name)
    if how != "remove" and _touch(unit.unit.source, unit.unit.object):
        return "touched"
    try:
        unit.unit.object.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"{unit.unit.object} cannot be removed: {error.strerror}.",
                        "make the build directory writable") from None
    return "object removed"


class BeforeBuild:
    """Everything that counts at one moment before a build: inputs, recipes, objects, linked files."""

    def __init__(self, survey: Survey, store: ReceiptStore) -> None:
        self.survey = survey
        self._receipts = {name: store.unit(name) for name in survey.units}
        self.old_link = store.link()
        self.inputs = settle(survey.inputs)
        # Now, by the clock of the file system that the objects will be written to.
        self.clock_ns = clock_ns(state_folder(survey.location.build_dir))
        self._known = observer_for(self._receipts.values(), self.old_link, self.inputs)
        self._contents: dict[str, tuple[Identity, str] | None] = {}
        objects = {unit.facts.object for unit in survey.units.values()}
        self.outputs = {path: self._known.identity(path) for path in objects | {step.output for step in survey.steps}}
        # An nvcc object is never the same twice, so equal bytes tell a restored one.
        self.digests = {unit.facts.object: self._known.digest(unit.facts.object) for unit in survey.units.values()
                        if unit.line.language == "CUDA"}

    def content(self, unit: str, path: str) -> tuple[Identity, str] | None:
        """Identity and digest of an input then, where it has them still; else None.

        Most are what the unit's own receipt says. The others are read only now, of the few units that were compiled.
        """
        if path not in self._contents:
            self._contents[path] = self._content(self.inputs.get(path), self._receipts[unit], path)
        return self._contents[path]

    def _content(self, then: Identity | None, receipt: UnitReceipt | None, path: str) -> tuple[Identity, str] | None:
        known = receipt.inputs.get(path) if receipt is not None else None
        digest = known[1] if known is not None and known[0] == then else self._known.digest(path)
        # What was read is what was there then only if nobody wrote meanwhile.
        return (then, digest) if then is not None and digest is not None and identity_of(path) == then else None


def _moved_inputs(before: BeforeBuild, unit: WatchedUnit, after: WatchedUnit, now: Observer) -> list[str]:
    """What is not as it was when the build began; `now` is a moment after it ended."""
    moved = [path for path in sorted(unit.facts.inputs) if path not in before.inputs
             or now.identity(path) != before.inputs[path] or before.content(unit.name, path) is None]
    moved += sorted(unit.facts.inputs ^ after.facts.inputs)
    moved += [key for key in sorted(unit.facts.recipe.keys() | after.facts.recipe.keys())
              if unit.facts.recipe.get(key) != after.facts.recipe.get(key)]
    return list(dict.fromkeys(moved))


def _note_moved(name: str, moved: Sequence[str], former: UnitReceipt | None, result: BuildResult) -> None:
    result.moved[name] = list(moved)
    if former is not None:
        result.rewritten += [path for path in moved if path in former.moved and path not in result.rewritten]


_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")  # what clang writes in an object's place for -flto


def _is_whole(path: str, ended_well: bool) -> bool:
    """Whether an object was written to its end: an assembler writes ELF header and section table last.

    Intermediate code does not show its end: there it counts how the build ended.
    """
    from tasks.binary.elf import NOBITS, read_elf
    from tasks.binary.source import open_source

    try:
        with open_source(Path(path)) as (source, _):
            if ended_well and source.size >= 4 and source.read(0, 4) in _BITCODE:
                return True
            return all(section.type == NOBITS or section.offset + section.size <= source.size
                       for section in read_elf(source).sections)
    except (UserError, OSError):
        return False


def _is_proof_of(receipt: UnitReceipt, digest: str) -> bool:
    return receipt.object_digest == digest and not receipt.withdrawn and not receipt.moved


def write_unit_receipts(before: BeforeBuild, after: Survey, store: ReceiptStore,
                        former: Mapping[str, Collection[str]], result: BuildResult) -> None:
    """A receipt for every object that was remade from inputs that did not move.

    `former` holds digests of the objects that a unit had before `before`, by its name; `after` is of a moment
    after the build.
    """
    ended = Observer(seen=after.seen)
    for name, unit in before.survey.units.items():
        now = identity_of(unit.facts.object)
        if now is None or now == before.outputs[unit.facts.object]:
            continue
        if not _is_whole(unit.facts.object, result.complete):
            # Its compiler was ended, or failed, or something wrote over it. No linker takes it, and a receipt would
            # keep it from being compiled again.
            result.broken.append(name)
            continue
        if now.mtime_ns < before.clock_ns or os.path.realpath(unit.facts.source) in result.from_cache:
            # No compiler wrote this: it was put there with an older time, or a launcher had it in its cache.
            result.restored.append(name)
            continue
        if name not in result.recompiled:
            result.recompiled.append(name)
        digest = Observer().digest(unit.facts.object)
        if digest is None or identity_of(unit.facts.object) != now:
            continue
        again = after.units.get(name)
        moved = [name] if again is None else _moved_inputs(before, unit, again, ended)
        if moved:
            known = store.unit(name)
            proved = result.proved.setdefault(name, known)
            # These very bytes were compiled before, from inputs that are known: proof again where those are there.
            proof = proved if proved is not None and _is_proof_of(proved, digest) else None
            if again is None or judge_unit(again.facts, proof, ended).verdict != "fresh":
                _note_moved(name, moved, known, result)
            if proof is not None:
                store.save_unit(proof)
                continue
        if unit.line.language == "CUDA" and result.same_bytes != "compiled" and digest in (
                before.digests.get(unit.facts.object), *former.get(name, ())):
            if not moved:
                (result.restored if result.same_bytes == "restored" else result.unclear).append(name)
            continue
        # From here on an older receipt describes another object, also where both have the same bytes.
        if not moved:
            result.moved.pop(name, None)
        inputs = {path: content for path in unit.facts.inputs
                  if path not in moved and (content := before.content(name, path)) is not None}
        store.save_unit(UnitReceipt(name, unit.facts.source, unit.facts.object, store.home, now, digest, inputs,
                                    unit.facts.recipe, time.time(), withdrawn=bool(moved), moved=tuple(moved)))


def write_link_receipt(before: BeforeBuild, survey: Survey, store: ReceiptStore) -> list[str]:
    """The link receipt, where every step is proved; else the outputs of the steps that are not.

    Times prove a step, the device code can disprove it: a script may have put an old device link there.
    """
    receipts = [store.unit(name) for name in survey.units]
    now = observer_for(receipts, before.old_link)
    records, unproved = prove_steps(survey.steps, before.outputs, before.clock_ns, before.old_link, now)
    if unproved:
        return unproved
    top = records[survey.provider]
    objects = {path: digest for unit in survey.units.values()
               if (digest := now.digest(path := unit.facts.object)) is not None}
    old = before.old_link
    if old is not None and (old.linked, old.identity, dict(old.objects), dict(old.steps)) == (
            survey.provider, top.identity, objects, records):
        return []  # nothing was linked: the receipt keeps its time
    if contradicts_link(survey, now, state_folder(survey.location.build_dir)):
        return list(records)
    store.save_link(LinkReceipt(survey.provider, store.home, top.identity, top.digest, objects, records, time.time()))
    return []
