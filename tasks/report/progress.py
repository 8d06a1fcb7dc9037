"""Shows a running build and a running test: what is done of what is expected, and what runs now.

On a terminal one line is redrawn; in a pipe a line is printed for each step and every half minute, so
that a log can be followed.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, TextIO

from tasks.report.live import LiveLine

if TYPE_CHECKING:
    from tasks.builder.watch import BuildWatch
    from tasks.gtest.request import Progress as TestMoment

__all__ = ["BuildProgress", "RunProgress"]

# `[ 42%] Building CUDA object ...` (Makefiles) and `[3/10] Building CUDA object ...` (Ninja).
_STEP = re.compile(r"^\[\s*(?:(?P<percent>\d+)%|(?P<done>\d+)/(?P<total>\d+))\]\s+(?P<what>(?:Build|Link|Generat).*)$")
# Seconds between two looks at the build: on a terminal, and between two lines in a pipe.
_LOOK_S, _EVERY_S = 0.5, 30.0


def _clock(seconds: float) -> str:
    """75 as 1:15."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class BuildProgress:
    """A context manager that is fed the build's lines; None is a tick without a line.

    `watch` knows the units, `about_s` is how long the build is expected to take.
    """

    def __init__(self, output: TextIO, watch: BuildWatch, about_s: float | None = None,
                 every_s: float = _EVERY_S) -> None:
        self._line = LiveLine(output)
        self._watch = watch
        self._about_s = about_s
        # Looking at processes costs milliseconds.
        self._every_s = _LOOK_S if self._line.live else every_s
        self._looked = time.monotonic()
        self._step = ""

    def __enter__(self) -> BuildProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        self._line.clear()

    def say(self, line: str) -> None:
        """A line that stays."""
        self._line.say(line)

    def begins(self, session: int) -> None:
        """A command of the build runs in this session."""
        self._watch.begin(session)

    def line(self, line: str | None) -> None:
        """One line of the build's output, or a tick."""
        match = _STEP.match(line) if line is not None else None
        if match is not None:
            self._step = self._told(match)
            if not self._line.live:
                self._line.say(f"   {self._step}")
        now = time.monotonic()
        if now - self._looked < self._every_s:
            return
        self._looked = now
        text = f"   {self._state(now - self._watch.started)}"
        if self._line.live:
            self._line.draw(text)
        else:
            self._line.say(text)

    def _state(self, seconds: float) -> str:
        """Units, the ones that are compiled now, and the time, within 80 columns for names of 30."""
        about = "" if self._about_s is None else f" of about {_clock(self._about_s)}"
        moment = self._watch.moment()
        if not moment.running:
            what = self._step or "waiting for the build tool"
        else:
            (name, for_s), *others = moment.running
            what = f"{name} for {_clock(for_s)}" + (f" (+{len(others)} more)" if others else "")
        units = f"{moment.done}/{moment.total} units, " if moment.total else ""
        return f"{_clock(seconds)}{about}: {units}{what}"

    @staticmethod
    def _told(match: re.Match[str]) -> str:
        where = f"{match['percent']}%" if match["percent"] else f"{match['done']}/{match['total']}"
        # Object paths are absolute below CMakeFiles/: the last part names the unit.
        what = " ".join(os.path.basename(word) if "/" in word else word for word in match["what"].split())
        return f"[{where}] {what}"


class RunProgress:
    """A context manager that is fed a test run's moments."""

    def __init__(self, output: TextIO) -> None:
        self._line = LiveLine(output)

    def __enter__(self) -> RunProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        self._line.clear()

    def moment(self, moment: TestMoment) -> None:
        """A test has begun or ended."""
        if moment.ended is not None and (not self._line.live or moment.result not in ("passed", "skipped")):
            self._line.say(f"   [{moment.done}/{moment.total}] {moment.result}: {moment.ended}")
        if moment.running is not None:
            failed = f", {moment.failed} failed" if moment.failed else ""
            self._line.draw(f"   [{moment.done}/{moment.total}{failed}] {moment.elapsed_s:.0f} s  {moment.running}")
