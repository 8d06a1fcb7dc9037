"""One line of a terminal that is drawn again and again; in a pipe it is not drawn at all."""

from __future__ import annotations

import os
from typing import TextIO

__all__ = ["LiveLine"]


class LiveLine:
    """Draws the newest of its texts. `live` is false in a pipe and on a dumb terminal."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._drawn = False
        self.live = output.isatty() and os.environ.get("TERM") != "dumb"

    def draw(self, text: str) -> None:
        """Replace the line; cut at the terminal's width."""
        if self.live:
            width = os.get_terminal_size(self._output.fileno()).columns
            self._output.write("\r\x1b[K" + text[: max(10, width - 1)])
            self._output.flush()
            self._drawn = True

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.clear()
        self._output.write(text + "\n")
        self._output.flush()

    def clear(self) -> None:
        """Take the drawn line away."""
        if self._drawn:
            self._output.write("\r\x1b[K")
            self._output.flush()
            self._drawn = False
