"""Reads depfiles: the makefile fragments in which a compiler lists what it opened. Touches nothing else.

What counts as an escape is the writer's matter. GCC ("Preprocessor Options", `-MD`; libcpp's
mkdeps.cc) writes `\\ ` for a space, doubles backslashes in front of one, and writes `$$` and `\\#`.
nvcc escapes spaces alone, leaves `$` and `#` raw, turns every `\\` into `/`, never escapes the
target and puts a space before the colon.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Depfile", "Dialect", "Rule", "State", "parse_depfile", "read_depfile", "read_rules"]

Dialect = Literal["gcc", "nvcc"]
State = Literal["whole", "truncated", "empty", "malformed", "missing"]

# A colon ends the targets only in front of white space: `C:/x` and `co:lon/x` are names.
_COLON = re.compile(r":(?=\s|$)")
# A blank belongs to a name after an odd number of backslashes.
_NAME = re.compile(r"(?:(?<!\\)(?:\\\\)*\\ |\S)+")
_BLANK = re.compile(r"((?:\\\\)*)\\ ")
_CONTINUED = re.compile(r"\\\r?\n")


@dataclass(frozen=True)
class Rule:
    """One rule: its targets and what they depend on, unescaped, in the file's order."""

    targets: tuple[str, ...]
    prerequisites: tuple[str, ...]


@dataclass(frozen=True)
class Depfile:
    """A depfile and its state.

    ``truncated``: it ends inside a line, so more names may have followed. ``empty`` and
    ``malformed`` (a line without a colon) have no rules that count.
    """

    state: State
    rules: tuple[Rule, ...] = ()

    @property
    def prerequisites(self) -> tuple[str, ...]:
        """Every prerequisite of every rule, once, in order."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.prerequisites))

    def of_target(self, target: str) -> tuple[str, ...]:
        """The prerequisites of `target`; of all rules where no rule names it (a relative name, say)."""
        named = [rule for rule in self.rules if target in rule.targets]
        return tuple(dict.fromkeys(name for rule in named for name in rule.prerequisites)) or self.prerequisites


def _plain(name: str, dialect: Dialect) -> str:
    if "\\" in name:
        name = _BLANK.sub(lambda match: match[1][: len(match[1]) // 2] + " ", name)
        if dialect == "gcc":
            name = name.replace("\\#", "#").replace("\\:", ":")
    return name.replace("$$", "$") if dialect == "gcc" and "$" in name else name


def _names(text: str, dialect: Dialect) -> tuple[str, ...]:
    if "\\" not in text and "$" not in text:
        return tuple(text.split())
    return tuple(_plain(name, dialect) for name in _NAME.findall(text))


def _lines(text: str) -> Iterator[str]:
    """Lines with continuations joined; a backslash at the end of the file continues nothing."""
    # Two plain replacements take a tenth of the time of a pattern's.
    for line in text.replace("\\\r\n", "  ").replace("\\\n", "  ").split("\n"):
        stripped = line.strip(" \t\r")
        if stripped == "\\" or stripped.endswith((" \\", "\t\\")):
            stripped = stripped[:-1].rstrip()
        if stripped:
            yield stripped


def read_rules(text: str, dialect: Dialect = "gcc") -> Iterator[Rule]:
    """The rules of a depfile's text. Raises :class:`ValueError` at a line without a colon."""
    for line in _lines(text):
        colon = _COLON.search(line)
        if colon is None:
            raise ValueError(f"no colon in {line[:60]!r}")
        head = line[: colon.start()]
        # nvcc's target is one name, blanks and all.
        targets = (head.strip(),) if dialect == "nvcc" else tuple(dict.fromkeys(_names(head, dialect)))
        yield Rule(targets, _names(line[colon.end():], dialect))


def parse_depfile(content: bytes, dialect: Dialect = "gcc") -> Depfile:
    """Parse a depfile's content."""
    text = os.fsdecode(content)
    if not text.strip():
        return Depfile("empty")
    try:
        rules = tuple(read_rules(text, dialect))
    except ValueError:
        return Depfile("malformed")
    ends_inside = not text.endswith("\n") or _CONTINUED.search(text[-3:].lstrip("\n")) is not None
    if not any(rule.prerequisites for rule in rules):
        return Depfile("truncated" if ends_inside else "empty", rules)
    return Depfile("truncated" if ends_inside else "whole", rules)


def read_depfile(path: str | Path, dialect: Dialect = "gcc") -> Depfile:
    """Read a depfile; a missing or unreadable one has the state ``missing``."""
    try:
        content = Path(path).read_bytes()
    except OSError:
        return Depfile("missing")
    return parse_depfile(content, dialect)
