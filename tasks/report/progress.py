"""Shows a running build and a running test: what is done of what is expected, and what runs now.

On a terminal one line is redrawn; in a pipe a line is printed for each step, so that a log can be
followed.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, TextIO

from tasks.report.live import LiveLine

if TYPE_CHECKING:
    from tasks.gtest.request import Progress as TestMoment

__all__ = ["BuildProgress", "RunProgress"]

# `[ 42%] Building CUDA object ...` (Makefiles) and `[3/10] Building CUDA object ...` (Ninja).
_STEP = re.compile(r"^\[\s*(?:(?P<percent>\d+)%|(?P<done>\d+)/(?P<total>\d+))\]\s+(?P<what>(?:Build|Link|Generat).*)$")


class BuildProgress:
    """A context manager that is fed the build's lines; None is a tick without a line."""

    def __init__(self, output: TextIO) -> None:
        self._line = LiveLine(output)
        self._started = time.monotonic()
        self._step = ""

    def __enter__(self) -> BuildProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        self._line.clear()

    def line(self, line: str | None) -> None:
        """One line of the build's output, or a tick."""
        match = _STEP.match(line) if line is not None else None
        if match is not None:
            self._step = self._told(match)
            if not self._line.live:
                self._line.say(f"   {self._step}")
        if self._step:
            self._line.draw(f"   {self._step}  {time.monotonic() - self._started:.0f} s")

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
