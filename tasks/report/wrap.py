"""Lines that are broken between words at a terminal's width; in a pipe they stay whole."""

from __future__ import annotations

import os
import textwrap
from typing import TextIO

__all__ = ["fitted"]


def fitted(line: str, output: TextIO, indent: str = "     ") -> str:
    """`line` for `output`; what is continued begins with `indent`. A command (`$ ...`) stays as it can be pasted."""
    if not output.isatty() or line.lstrip().startswith("$ ") or "\x1b" in line:
        return line
    width = os.get_terminal_size(output.fileno()).columns
    if len(line) <= width or width < 40:
        return line
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
                         drop_whitespace=True, replace_whitespace=False)
