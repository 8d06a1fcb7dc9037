"""A build that can be believed: lock, snapshot, the user's command, receipts for what was proved.

`force` is what the `object:<unit>` tasks call, `build` what the `build` task and `test_mea` call.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tasks.builder.command import assemble, default_jobs, shown
from tasks.builder.lock import BuildLock
from tasks.errors import UserError
from tasks.evidence.chain import UnitJudgement, judge_linked, judge_unit
from tasks.evidence.linking import prove_steps
from tasks.evidence.receipts import LinkReceipt, ReceiptStore, UnitReceipt
from tasks.evidence.snapshot import Observer, clock_ns, identity_of, settle
from tasks.survey import Survey, WatchedUnit, read_survey

__all__ = ["BuildResult", "Judged", "build", "force", "judge", "observer_for", "state_folder"]

Say = Callable[[str], None]


def state_folder(build_dir: Path) -> Path:
    """Where everything that this project keeps about a build directory lies."""
    return build_dir / ".fmha"


@dataclass(frozen=True)
class Judged:
    """Units and provider as the receipts judge them at one moment."""

    units: Mapping[str, UnitJudgement]
    linked: bool
    observer: Observer

    @property
    def proved(self) -> bool:
        """Whether every object and the link of the provider are proved."""
        return self.linked and all(judgement.verdict == "fresh" for judgement in self.units.values())


@dataclass
class BuildResult:
    """What a guarded build did. `failed` names forced units whose object was not rewritten, with the reason."""

    status: int = 0
    log: Path | None = None
    commands: list[str] = field(default_factory=list)
    recompiled: list[str] = field(default_factory=list)
    not_rewritten: list[str] = field(default_factory=list)
    moved: dict[str, list[str]] = field(default_factory=dict)
    restored: list[str] = field(default_factory=list)
    seconds: float = 0.0


def observer_for(receipts: Iterable[UnitReceipt | None], link: LinkReceipt | None) -> Observer:
    """An observer that need not read what the receipts know by identity."""
    observer = Observer()
    for receipt in receipts:
        if receipt is not None:
            observer.learn(receipt.object, receipt.object_identity, receipt.object_digest)
            for path, (identity, digest) in receipt.inputs.items():
                observer.learn(path, identity, digest)
    if link is not None:
        observer.learn(link.linked, link.identity, link.digest)
        for output, step in link.steps.items():
            observer.learn(output, step.identity, step.digest)
    return observer


def judge(survey: Survey, store: ReceiptStore) -> Judged:
    """Links 2 and 3 by the receipts, without reading a file that did not move."""
    receipts = {name: store.unit(name) for name in survey.units}
    link = store.link()
    observer = observer_for(receipts.values(), link)
    units = {name: judge_unit(unit.facts, receipts[name], observer) for name, unit in survey.units.items()}
    objects = {survey.units[name].facts.object: judgement for name, judgement in units.items()}
    linked = judge_linked(survey.provider, objects, link, observer, "").verdict == "fresh"
    return Judged(units, linked, observer)


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


class _Moment:
    """Everything that counts at one moment before a build: inputs, recipes, objects, linked files."""

    def __init__(self, survey: Survey, store: ReceiptStore) -> None:
        self.survey = survey
        settle(survey.inputs)
        # Now, by the clock of the file system that the objects will be written to.
        self.clock_ns = clock_ns(state_folder(survey.location.build_dir))
        receipts = {name: store.unit(name) for name in survey.units}
        self.old_link = store.link()
        known = observer_for(receipts.values(), self.old_link)
        self.inputs = {path: (identity, digest) for path in survey.inputs
                       if (identity := known.identity(path)) and (digest := known.digest(path))}
        objects = {unit.facts.object for unit in survey.units.values()}
        self.outputs = {path: known.identity(path) for path in objects | {step.output for step in survey.steps}}
        # An nvcc object is never the same twice, so equal bytes tell a restored one.
        self.digests = {unit.facts.object: known.digest(unit.facts.object) for unit in survey.units.values()
                        if unit.line.language == "CUDA"}


def _moved_inputs(before: _Moment, unit: WatchedUnit, after: WatchedUnit) -> list[str]:
    """What is not as it was when the build began."""
    moved = [path for path in sorted(unit.facts.inputs)
             if path not in before.inputs or identity_of(path) != before.inputs[path][0]]
    moved += sorted(unit.facts.inputs ^ after.facts.inputs)
    moved += [key for key in sorted(unit.facts.recipe.keys() | after.facts.recipe.keys())
              if unit.facts.recipe.get(key) != after.facts.recipe.get(key)]
    return list(dict.fromkeys(moved))


def _write_receipts(before: _Moment, after: Survey, store: ReceiptStore, former: Mapping[str, str],
                    result: BuildResult) -> None:
    """A receipt for every object that was remade from inputs that did not move."""
    for name, unit in before.survey.units.items():
        now = identity_of(unit.facts.object)
        if now is None or now == before.outputs[unit.facts.object]:
            continue
        if now.mtime_ns < before.clock_ns:
            # No compiler wrote this: it was put there with an older time.
            result.restored.append(name)
            continue
        if name not in result.recompiled:
            result.recompiled.append(name)
        # From here on an older receipt describes another object.
        again = after.units.get(name)
        moved = [name] if again is None else _moved_inputs(before, unit, again)
        if moved or again is None:
            result.moved[name] = moved
            continue
        digest = Observer().digest(unit.facts.object)
        if digest is None or identity_of(unit.facts.object) != now:
            continue
        if unit.line.language == "CUDA" and digest in (before.digests.get(unit.facts.object), former.get(name)):
            result.restored.append(name)
            continue
        inputs = {path: before.inputs[path] for path in unit.facts.inputs}
        store.save_unit(UnitReceipt(name, unit.facts.source, unit.facts.object, store.home, now, digest, inputs,
                                    unit.facts.recipe, time.time()))


def _write_link(before: _Moment, survey: Survey, store: ReceiptStore) -> list[str]:
    """The link receipt, where every step is proved; else the outputs of the steps that are not."""
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
    store.save_link(LinkReceipt(survey.provider, store.home, top.identity, top.digest, objects, records, time.time()))
    return []


class _Aside:
    """Linked files moved out of the way, so that the build tool links; put back where it does not."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "previous"
        self._moved: list[tuple[Path, Path]] = []

    def move(self, outputs: Iterable[str]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for output in map(Path, outputs):
            kept = self._folder / output.name
            if output.exists():
                output.replace(kept)
                self._moved.append((output, kept))

    def restore(self) -> None:
        for output, kept in self._moved:
            if not output.exists() and kept.exists():
                kept.replace(output)
        self._moved.clear()


class _Build:
    """One guarded build."""

    def __init__(self, survey: Survey, store: ReceiptStore, lock: BuildLock, targets: Sequence[str],
                 environ: Mapping[str, str], say: Say, on_line: Callable[[str | None], None]) -> None:
        self._survey = survey
        self._store = store
        self._lock = lock
        self._environ = environ
        self._say = say
        self._on_line = on_line
        self._state = state_folder(survey.location.build_dir)
        self.result = BuildResult()
        settings, location = survey.settings, survey.location
        config = location.cache.get("CMAKE_BUILD_TYPE") or location.build_dir.name
        self._commands = assemble(location.ort_root, location.build_dir, config, targets,
                                  settings.jobs or default_jobs(), settings.build_command)

    def run(self, forced: Sequence[str], former: Mapping[str, str]) -> BuildResult:
        started = time.monotonic()
        before = _Moment(self._survey, self._store)
        after = self._round(before, former)
        if repeated := self._to_repeat(after):
            self._say("this build changed files that it compiles from: compiling the units that see them once more")
            for name in repeated:
                if name in after.units:
                    force(after.units[name], self._store, self._survey.settings.force)
            self._survey, self.result.moved = after, {}
            before = _Moment(after, self._store)
            after = self._round(before, former)
        if self.result.status == 0:
            self._link(before, after)
        self.result.not_rewritten = [name for name in forced if name not in self.result.recompiled]
        self.result.seconds = time.monotonic() - started
        return self.result

    def _to_repeat(self, after: Survey) -> list[str]:
        """Recompiled units of which the build itself changed an input: what their objects hold is not known.

        Either it began by running CMake again, with other flags, or it generated a header that they include.
        """
        inside = f"{self._survey.location.build_dir}{os.sep}"
        generated = {name for name, paths in self.result.moved.items()
                     if self.result.status == 0 and all(path.startswith(inside) for path in paths)}
        return [name for name, unit in self._survey.units.items() if name in self.result.recompiled
                and (name in generated or name not in after.units
                     or after.units[name].facts.recipe != unit.facts.recipe)]

    def _round(self, before: _Moment, former: Mapping[str, str]) -> Survey:
        """The commands once; receipts are written also where they fail or are interrupted."""
        try:
            self._run_commands()
        finally:
            after = read_survey(self._survey.settings, self._environ, self._survey.location)
            _write_receipts(before, after, self._store, former, self.result)
        return after

    def _run_commands(self) -> None:
        from tasks.builder.run import new_log, run_build

        for words in self._commands:
            log = new_log(self._state / "logs", "build")
            self._say(f"$ {shown(words)}")
            self.result.commands.append(shown(words))
            run = run_build(words, self._survey.location.ort_root, self._environ, log, self._on_line,
                            self._lock.descriptor(), self._lock.runs)
            self.result.status, self.result.log = run.status, log
            if run.status != 0:
                return

    def _link(self, before: _Moment, after: Survey) -> None:
        """The link receipt; where the build tool saw no need to link, it is made to."""
        unproved = _write_link(before, after, self._store)
        if not unproved or any(not Path(path).exists() for path in unproved):
            return
        names = ", ".join(Path(path).name for path in unproved)
        self._say(f"{names}: not linked from these objects by this build, so moved aside and linked again")
        aside = _Aside(self._state)
        aside.move(unproved)
        try:
            self._run_commands()
        finally:
            aside.restore()
        if self.result.status == 0:
            _write_link(before, after, self._store)


def build(survey: Survey, store: ReceiptStore, lock: BuildLock, targets: Sequence[str], environ: Mapping[str, str],
          say: Say, on_line: Callable[[str | None], None], forced: Sequence[str] = (),
          former: Mapping[str, str] | None = None) -> BuildResult:
    """Run the user's build under the lock and write receipts for what it proved.

    `forced` names units that must be recompiled, `former` the digests of objects that were removed.
    The receipts, not the result, say what is proved: judge again afterwards.
    """
    return _Build(survey, store, lock, targets, environ, say, on_line).run(forced, former or {})
