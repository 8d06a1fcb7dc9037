"""What one run of doit knows: settings, the checkout as it was last looked at, receipts, the lock.

Everything is made when it is first asked for, so that `doit list` and `doit help` cost nothing and
never fail for something that only a task needs.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tasks.evidence import STATE_NAME
from tasks.settings import RUN_OPTIONS, Settings, load

if TYPE_CHECKING:
    from tasks.builder.lock import BuildLock
    from tasks.checkout.locate import Location
    from tasks.evidence.receipts import ReceiptStore
    from tasks.evidence.runs import RunStore
    from tasks.evidence.snapshot import Identity
    from tasks.guarded_build import BuildResult, Judged
    from tasks.survey import Survey

__all__ = ["BuildNotes", "Session"]


@dataclass(eq=False, repr=False)
class BuildNotes:
    """What the tasks of one run tell each other: forced units with what was done, digests of removed objects."""

    forced: dict[str, str] = field(default_factory=dict)
    former: dict[str, str] = field(default_factory=dict)
    result: BuildResult | None = None


class Session:
    """One run of doit: where it was started, with which settings. See the module."""

    def __init__(self, project: Path, start_dir: Path, environ: Mapping[str, str],
                 command_line: Mapping[str, str]) -> None:
        self.project = project
        self.start_dir = start_dir
        self.environ = dict(environ)
        self.command_line = dict(command_line)
        self.notes = BuildNotes()
        # Judging tasks that were asked for by name, and those that have told their verdict.
        self.selected: tuple[str, ...] = ()
        self.concluded: set[str] = set()
        # With `--json`, stdout belongs to the document.
        self.as_json = "--json" in sys.argv
        # Names of graph tasks that are marked as ignored in doit's database: nothing above them is believed.
        self.ignored: tuple[str, ...] = ()
        self._survey: Survey | None = None
        self._judged: Judged | None = None
        # The build lock's note when the survey began, and what may be taken from it without asking the files again.
        self._note: Identity | None = None
        self._seen: Mapping[str, Sequence[int]] | None = None

    @cached_property
    def settings(self) -> Settings:
        """Raises :class:`tasks.errors.UserError`."""
        return load(self.project, self.environ, self.command_line, self.start_dir)

    @cached_property
    def location(self) -> Location:
        """Checkout and build directory. Raises :class:`tasks.errors.UserError`."""
        from tasks.checkout.locate import locate

        return locate(self.settings.ort_root, self.settings.build_dir, self.settings.start_dir)

    @property
    def output(self) -> TextIO:
        """Where lines for people go."""
        return sys.stderr if self.as_json else sys.stdout

    def say(self, line: str) -> None:
        """Print one line for people."""
        from tasks.report.wrap import fitted

        print("\n".join(fitted(part, self.output) for part in line.split("\n")), file=self.output, flush=True)

    def document(self, task: str, text: str) -> None:
        """Print the one JSON document of `task` on stdout."""
        if task not in self.concluded:
            self.concluded.add(task)
            print(text, flush=True)

    def document_error(self, task: str, message: str) -> None:
        """With `--json`: the document that says why there is no other, where `task` was asked for."""
        if self.as_json and task in self.selected:
            from tasks.report.document import error_document

            self.document(task, error_document(task, message))

    @property
    def state(self) -> Path:
        """The state folder of the build directory; it need not exist."""
        return self.location.build_dir / STATE_NAME

    @cached_property
    def lock(self) -> BuildLock:
        """The build directory's lock, not yet taken."""
        from tasks.builder.lock import BuildLock

        return BuildLock(self.state, self.command(self.task))

    @cached_property
    def store(self) -> ReceiptStore:
        """The build directory's receipts."""
        from tasks.evidence.receipts import ReceiptStore

        return ReceiptStore(self.location.build_dir)

    @cached_property
    def runs(self) -> RunStore:
        """What the last test run proved."""
        from tasks.evidence.runs import RunStore

        return RunStore(self.state)

    def survey(self, again: bool = False) -> Survey:
        """The checkout as it was looked at last, or as it is now. Raises :class:`tasks.errors.UserError`."""
        if again or self._survey is None:
            from tasks.survey import read_survey

            self._note = self.lock.note()
            self._survey = read_survey(self.settings, self.environ, self.location)
            self._judged, self._seen = None, self._survey.seen
        return self._survey

    def adopt(self, survey: Survey) -> None:
        """Take the look of a build at what it left for the last one; its files are asked for once more."""
        self._note, self._survey, self._judged, self._seen = self.lock.note(), survey, None, None

    def somebody_built(self) -> bool:
        """Whether another run held the lock between the last look and the moment when this one took it."""
        return self._note != self.lock.found

    def judged(self, again: bool = False) -> Judged:
        """The receipts' judgement on :meth:`survey`; `again` looks at every file once more."""
        survey = self.survey(again)
        if self._judged is None or again:
            from tasks.guarded_build import judge

            # Nothing waits or builds between the two: whatever does makes both be forgotten.
            self._judged = judge(survey, self.store, self._seen)
            if self.notes.result is not None and self.notes.result.complete:
                # This run has built: what only a build can tell is told.
                pending = self._judged.pending._replace(unnamed=())
                self._judged = self._judged._replace(pending=pending)
        return self._judged

    def forget_judgement(self) -> None:
        """Something was touched, built or waited for: what was seen before counts no more."""
        self._survey = self._judged = None

    @property
    def task(self) -> str:
        """The judging task that was asked for: the one that a person runs again."""
        from tasks.doit_state import JUDGING_TASKS

        return next((name for name in self.selected if name in JUDGING_TASKS), "rebuild_fmha")

    def command(self, task: str) -> str:
        """The command that runs `task` as this run was started; options are of one run and not repeated."""
        return shlex.join([*self._doit, *task.split(), *self._given.values()])

    def as_started(self, mend: str) -> str:
        """What is to be typed, with what the commands that it names need to mean the same as in this run."""
        missing = [word for key, word in self._given.items() if f"{key}=" not in mend]
        return re.sub(r"\bdoit ((?:-s )?(?:[a-z]\w*|TASK))",
                      lambda found: shlex.join([*self._doit, *found[1].split(), *missing]), mend)

    @property
    def _doit(self) -> list[str]:
        elsewhere = self.start_dir.resolve() != self.project
        return ["doit", *(["-f", str(self.project / "dodo.py")] if elsewhere else [])]

    @property
    def _given(self) -> dict[str, str]:
        return {key: f"{key}={value}" for key, value in self.command_line.items() if key not in RUN_OPTIONS}

    def writable(self) -> bool:
        """Whether state can be kept: the build directory, and its state folder where there is one."""
        folder = self.state if self.state.exists() else self.location.build_dir
        return os.access(folder, os.W_OK | os.X_OK)
