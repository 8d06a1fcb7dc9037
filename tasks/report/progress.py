"""Shows a running build: units done of units expected, and what runs now.

On a terminal one line is redrawn; in a pipe a line is printed for each step that names a watched
unit or a link, so that a log stays short.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from typing import TextIO

__all__ = ["Progress"]

# `[ 42%] Building CUDA object ...` (Makefiles) and `[3/10] Building CUDA object ...` (Ninja).
_STEP = re.compile(r"^\[\s*(?:(?P<percent>\d+)%|(?P<done>\d+)/(?P<total>\d+))\]\s+(?P<what>.*)$")
_NOTABLE = re.compile(r"\b(?:Linking|Building|Generating|Built target)\b")


class Progress:
    """A context manager that is fed the build's lines; None is a tick without a line."""

    def __init__(self, output: TextIO, units: Iterable[str]) -> None:
        self._output = output
        self._live = output.isatty() and os.environ.get("TERM") != "dumb"
        self._started = time.monotonic()
        self._step = ""
        self._units = len(list(units))
        self._shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._shown:
            self._output.write("\r\x1b[K")
            self._output.flush()

    def line(self, line: str | None) -> None:
        """One line of the build's output, or a tick."""
        match = _STEP.match(line) if line is not None else None
        if match is not None and _NOTABLE.search(match["what"]):
            self._step = self._told(match)
            if not self._live:
                self._output.write(f"   {self._step}\n")
                self._output.flush()
        if self._live and self._step:
            self._draw()

    @staticmethod
    def _told(match: re.Match[str]) -> str:
        where = f"{match['percent']}%" if match["percent"] else f"{match['done']}/{match['total']}"
        words = match["what"].split()
        # Object paths are absolute below CMakeFiles/: the last part names the unit.
        what = " ".join(os.path.basename(word) if "/" in word else word for word in words)
        return f"[{where}] {what}"

    def _draw(self) -> None:
        seconds = time.monotonic() - self._started
        width = os.get_terminal_size(self._output.fileno()).columns
        text = f"   {self._step}  {seconds:.0f} s"
        self._output.write("\r\x1b[K" + text[: max(10, width - 1)])
        self._output.flush()
        self._shown = True
