"""Lines that are broken between words at a terminal's width; in a pipe they stay whole."""

from __future__ import annotations

import os
import re
import textwrap
from typing import TextIO

__all__ = ["fitted"]

_PAINTED = re.compile(r"\x1b\[\d+m(.*?)\x1b\[0m")


def fitted(line: str, output: TextIO, indent: str = "     ") -> str:
    """`line` for `output`; what is continued begins with `indent`. A command (`$ ...`) stays as it can be pasted."""
    if not output.isatty() or line.lstrip().startswith("$ "):
        return line
    plain = _PAINTED.sub(r"\1", line)
    width = os.get_terminal_size(output.fileno()).columns
    if len(plain) <= width or width < 40:
        return line
    text = textwrap.fill(plain, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    painted = _PAINTED.search(line)
    return text if painted is None else text.replace(painted[1], painted[0], 1)
