"""Runs the user's build under the lock and writes receipts for what it proved. `test_mea` builds through here too."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tasks.builder.aside import Aside
from tasks.builder.command import assemble, default_jobs, shown
from tasks.builder.launcher import Launchers, launchers_of
from tasks.builder.lock import BuildLock
from tasks.checkout.locate import Location
from tasks.evidence.receipts import ReceiptStore
from tasks.evidence.snapshot import Observer
from tasks.guarded_build import (
    BeforeBuild,
    BuildResult,
    Judged,
    force,
    judge,
    state_folder,
    write_link_receipt,
    write_unit_receipts,
)
from tasks.regenerating import Regeneration
from tasks.survey import Survey, WatchedUnit, read_survey
from tasks.unit_code import record_unit_code

__all__ = ["Listener", "build", "commands_for", "jobs_for", "launchers_in"]


class Listener(Protocol):
    """Hears what a build does."""

    def say(self, line: str) -> None:
        """A line of ours."""

    def line(self, line: str | None) -> None:
        """A line of the build's output; None is a moment without one."""

    def begins(self, session: int) -> None:
        """A command of the build runs in this session."""


def commands_for(survey: Survey, targets: Sequence[str]) -> list[list[str]]:
    """The commands that build the targets. Raises :class:`tasks.errors.UserError`."""
    settings, location = survey.settings, survey.location
    config = _configuration(location)
    return assemble(location.ort_root, location.build_dir, config, targets, jobs_for(survey), settings.build_command)


def _configuration(location: Location) -> str:
    """What `build.sh --config` would be: the folder's name where it is one and CMake was given none, or many."""
    cache, name = location.cache, location.build_dir.name
    several = cache.get("CMAKE_CONFIGURATION_TYPES")
    if name in (several or "Debug;MinSizeRel;Release;RelWithDebInfo").split(";"):
        return name if several else cache.get("CMAKE_BUILD_TYPE") or name
    return cache.get("CMAKE_BUILD_TYPE")


def jobs_for(survey: Survey) -> int:
    """The parallel compile jobs that are set, or as many as the box bears: some units run several compiles each."""
    threads = (unit.line.threads or os.cpu_count() or 1 for unit in survey.units.values())
    return survey.settings.jobs or default_jobs(max(threads, default=1))


def launchers_in(survey: Survey, language: str | None = None) -> dict[str, str]:
    """The compiler caches that the watched units (of one language) are compiled through: path by name."""
    return launchers_of((unit.line.words, unit.compilers) for unit in survey.units.values()
                        if language in (None, unit.line.language))


class _Build:
    """One guarded build."""

    def __init__(self, survey: Survey, store: ReceiptStore, lock: BuildLock, targets: Sequence[str],
                 environ: Mapping[str, str], listener: Listener, former: Mapping[str, str]) -> None:
        self._survey = survey
        self._store = store
        self._lock = lock
        self._environ = environ
        self._listener = listener
        self._state = state_folder(survey.location.build_dir)
        self._targets = targets
        self._aside = Aside(self._state)
        self._commands = commands_for(survey, targets)
        # Digests of every object that nvcc made of a unit and that is no more: whoever kept one can put it back.
        self._former = {name: {digest} for name, digest in former.items()}
        # What was noted of the units' code before this build.
        self._former_code: dict[str, Mapping[str, Any]] = {}
        self.result = BuildResult()

    def run(self, forced: Sequence[str]) -> BuildResult:
        started = time.monotonic()
        regeneration = Regeneration(self._survey, self._store)
        if words := regeneration.configure_command(self._survey):
            self._listener.say(f"CMake runs first: {regeneration.pending.told()[0]}")
            self._configure(words)
            if self.result.status != 0:
                return self.result
            regeneration.configured(self._survey)
            forced = [*forced, *self._force_changed(forced)]
            # Headers may be made otherwise by the new build files.
            regeneration = Regeneration(self._survey, self._store)
        self._aside.move(regeneration.pending.headers)
        try:
            after = self._rounds()
        finally:
            self._aside.restore()
        if self.result.status == 0:
            regeneration.built(after)
        self.result.not_rewritten = [name for name in forced if name not in self.result.recompiled]
        self.result.seconds = time.monotonic() - started
        return self.result

    def _configure(self, words: Sequence[str]) -> None:
        """Run CMake again, as the build would do by itself if it went by contents: from here on its answers count."""
        self._run_command(words, self._environ)
        if self.result.status == 0:
            self._survey = read_survey(self._survey.settings, self._environ, self._survey.location)
            self._commands = commands_for(self._survey, self._targets)

    def _force_changed(self, forced: Sequence[str]) -> list[str]:
        """Force the units that new build files compile otherwise than their objects were."""
        judged = judge(self._survey, self._store)
        names = [name for name in judged.unproved if name not in forced]
        for name in names:
            told = self._force(self._survey.units[name])
            self._listener.say(f"   {name}: {told} ({judged.units[name].reason})")
        return names

    def _force(self, unit: WatchedUnit) -> str:
        """Force one unit, and keep in mind which object it had."""
        if unit.line.language == "CUDA":
            self._remember(unit.name, Observer().digest(unit.facts.object))
        return force(unit, self._store, self._survey.settings.force)

    def _remember(self, name: str, digest: str | None) -> None:
        if digest is not None:
            self._former.setdefault(name, set()).add(digest)

    def _remember_all(self, before: BeforeBuild) -> None:
        for name, unit in before.survey.units.items():
            self._remember(name, before.digests.get(unit.facts.object))

    def _rounds(self) -> Survey:
        # What starts a process takes as long to load as the clock takes to tick on after the last touch.
        import plumbum  # noqa: F401

        before = BeforeBuild(self._survey, self._store)
        after = self._round(before)
        if self.result.status == 0 and self._begin_again(before, after):
            self._survey, self.result.moved, self.result.rewritten = after, {}, []
            before = BeforeBuild(after, self._store)
            after = self._round(before)
        self._note_code(after)
        if self.result.status == 0:
            after = self._link(before, after)
        return after

    def _begin_again(self, before: BeforeBuild, after: Survey) -> bool:
        """Force what this build, which succeeded, has to compile once more; whether there is anything.

        A failed build is left as it is: what it changed or added may be what failed.
        """
        judged = judge(after, self._store, after.seen)
        repeated = self._to_repeat(after, judged)
        # By the CMake run in the build: nobody saw what these were compiled from.
        added = [name for name in judged.unproved if name not in self._survey.units]
        if repeated:
            self._listener.say("this build changed files that it compiles from: compiling the units that see them"
                               " once more")
        if added:
            self._listener.say(f"new since this build began, so compiled once more: {', '.join(added)}")
        if not repeated and not added:
            return False
        self._remember_all(before)
        for name in (*repeated, *added):
            if name in after.units:
                self._force(after.units[name])
        return True

    def _note_code(self, after: Survey) -> None:
        """What the recompiles changed, beside the objects before this build: the link is held against that."""
        receipts = {name: self._store.unit(name) for name in self.result.recompiled}
        objects = {name: receipt.object_digest for name, receipt in receipts.items()
                   if receipt is not None and not receipt.withdrawn}
        record_unit_code(after, self._state, objects, self._former_code)

    def _to_repeat(self, after: Survey, judged: Judged) -> list[str]:
        """Units of which the build itself changed an input: what their objects hold is not known, or is old.

        Either it ran CMake again, with other flags, or it generated a header that they include.
        """
        inside = f"{self._survey.location.build_dir}{os.sep}"

        def is_generated(paths: Iterable[str]) -> bool:
            return all(path.startswith(inside) for path in paths)

        compiled = [name for name, unit in self._survey.units.items() if name in self.result.recompiled
                    and (is_generated(self.result.moved.get(name, [""])) or name not in after.units
                         or after.units[name].facts.recipe != unit.facts.recipe)]
        left = [name for name, judgement in judged.units.items()
                if judgement.verdict == "stale" and is_generated(judgement.changed)]
        return list(dict.fromkeys((*compiled, *left)))

    def _round(self, before: BeforeBuild) -> Survey:
        """The commands once; receipts are written also where they fail or are interrupted."""
        try:
            self._run_commands()
            self._put_headers_back()
        finally:
            after = self._look_again(before)
        return after

    def _look_again(self, before: BeforeBuild) -> Survey:
        """What the commands since then left, with receipts for the objects."""
        after = self.result.after = read_survey(self._survey.settings, self._environ, self._survey.location)
        write_unit_receipts(before, after, self._store, self._former, self.result)
        return after

    def _put_headers_back(self) -> None:
        """Headers that the build did not make again: their rules may belong to targets that are not built here.

        A build that fails may fail for that: it would not, had nobody moved them.
        """
        back = self._aside.restore()
        self.result.not_made += map(str, back)
        if back and self.result.status != 0:
            self._listener.say(f"{', '.join(path.name for path in back)}: not made by this build, so put back")
            self._run_commands()

    def _run_commands(self) -> None:
        self.result.complete = False
        launchers = Launchers(launchers_in(self._survey), self._environ, self._survey.location.ort_root, self._state)
        try:
            for words in self._commands:
                self._run_command(words, launchers.environ)
                if self.result.status != 0:
                    return
            self.result.complete = True
        finally:
            self.result.from_cache, sccache_compiled, self.result.launchers = launchers.end()
            # sccache runs nvcc's parts itself, in folders whose names do not get into the object.
            behind_sccache = "sccache" in launchers_in(self._survey, "CUDA")
            self.result.same_bytes = ("restored" if not behind_sccache else
                                      "compiled" if sccache_compiled else "unclear")

    def _run_command(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        from tasks.builder.run import new_log, run_build

        self.result.after = None
        self.result.log = new_log(self._state / "logs", "build")
        self._listener.say(f"$ {shown(words)}")
        self.result.commands.append(shown(words))
        run = run_build(words, self._survey.location.ort_root, environ, self.result.log, self._listener.line,
                        self._lock.descriptor(), self._begins)
        self.result.status = run.status

    def _begins(self, session: int) -> None:
        self._lock.runs(session)
        self._listener.begins(session)
        # While the build runs: what looks at its objects. No signal comes in here: one that interrupts an import can
        # end the interpreter by itself, though the interrupt is handled (CPython, where a module runs `exec`).
        import tasks.binary.fingerprint  # noqa: F401

    def _link(self, before: BeforeBuild, after: Survey) -> Survey:
        """The link receipt; where the build tool saw no need to link, it is made to. What is there then."""
        unproved = write_link_receipt(before, after, self._store)
        if not unproved or any(not Path(path).exists() for path in unproved):
            return after
        names = ", ".join(Path(path).name for path in unproved)
        self._listener.say(f"{names}: not linked from these objects by this build, so moved aside and linked again")
        self._remember_all(before)
        # The build tool may compile again what it compiled just now (a source from the future).
        between = BeforeBuild(after, self._store)
        self._aside.move(unproved)
        try:
            self._run_commands()
        finally:
            self._aside.restore()
            after = self._look_again(between)
        self._note_code(after)
        if self.result.status == 0:
            write_link_receipt(before, after, self._store)
        return after


def build(survey: Survey, store: ReceiptStore, lock: BuildLock, targets: Sequence[str], environ: Mapping[str, str],
          listener: Listener, forced: Sequence[str] = (), former: Mapping[str, str] | None = None) -> BuildResult:
    """Run the user's build under the lock and write receipts for what it proved.

    `forced` names units that must be recompiled, `former` the digests of objects that were removed.
    The receipts, not the result, say what is proved: judge again afterwards.
    """
    return _Build(survey, store, lock, targets, environ, listener, former or {}).run(forced)
