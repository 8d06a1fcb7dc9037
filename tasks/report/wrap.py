"""Lines that are broken between words at a terminal's width; in a pipe they stay whole."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Iterable
from typing import TextIO

__all__ = ["fitted", "fitted_lines"]

# `mend it: doit TASK`, `TMPDIR=/path doit TASK`, `$ cmake ..`: a shell takes a broken line for two commands.
_COMMAND = re.compile(r"\s*([\w ]+: )?(\w+=\S+ )*(doit|\$) ")
_PAINTED = re.compile(r"\x1b\[\d+m(.*?)\x1b\[0m")


def fitted(line: str, output: TextIO, indent: str = "     ") -> str:
    """`line` for `output`; what is continued begins with `indent`. A command stays as it can be pasted."""
    if not output.isatty() or _COMMAND.match(line):
        return line
    plain = _PAINTED.sub(r"\1", line)
    width = os.get_terminal_size(output.fileno()).columns
    if len(plain) <= width or width < 40:
        return line
    wrapped = textwrap.wrap(plain, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    text = "\n".join(_moved(part, width) for part in wrapped)
    painted = _PAINTED.search(line)
    return text if painted is None else text.replace(painted[1], painted[0], 1)


def _moved(part: str, width: int) -> str:
    """A path that is too long where it stands begins further left."""
    word = part.lstrip()
    return part if len(part) <= width else " " * max(0, width - len(word)) + word


def fitted_lines(lines: Iterable[str], output: TextIO, indent: str = "     ") -> str:
    """Several lines as one text."""
    return "\n".join(fitted(line, output, indent) for line in lines)
