"""GoogleTest's filter language: which listed tests a list of patterns selects, and what it probably meant.

Semantics are gtest's own (`UnitTestFilter` in googletest/src/gtest.cc): `*` is any text, `?` one
character, `:` separates, and everything behind the first `-` of a filter excludes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Filter", "Selection", "is_disabled", "matches", "nearest", "parse_filter", "select"]

_WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True)
class Filter:
    """Patterns that select and patterns that exclude, the latter over all of the former."""

    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()

    def selects(self, name: str) -> bool:
        """Whether gtest would run the test, were it not disabled."""
        return any(matches(pattern, name) for pattern in self.positives) and not self.excludes(name)

    def excludes(self, name: str) -> bool:
        """Whether a negative pattern matches the test."""
        return any(matches(pattern, name) for pattern in self.negatives)

    def __str__(self) -> str:
        """The value of `--gtest_filter`."""
        text = ":".join(self.positives) or ":"
        return f"{text}-{':'.join(self.negatives)}" if self.negatives else text


@dataclass(frozen=True)
class Selection:
    """What a filter does to a list of tests. `unmatched` holds (pattern, why it contributes nothing)."""

    selected: tuple[str, ...]
    disabled: tuple[str, ...]
    unmatched: tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    pieces = {"*": ".*", "?": "."}
    pattern = re.sub(r"\*+", "*", pattern)
    return re.compile("".join(pieces.get(char) or re.escape(char) for char in pattern), re.S)


def matches(pattern: str, name: str) -> bool:
    """Whether one gtest pattern (no `:`, no `-` part) matches the whole `Suite.Test`."""
    return _regex(pattern).fullmatch(name) is not None


def parse_filter(words: Iterable[str]) -> Filter:
    """One filter from a list of gtest filters: positives and negatives of all of them, in order.

    As in gtest, a list that only excludes selects all the rest, and an empty one selects nothing.
    """
    positives: dict[str, None] = {}
    negatives: dict[str, None] = {}
    only_excludes = False
    for word in words:
        selecting, dash, excluding = word.strip().partition("-")
        only_excludes |= bool(dash) and not selecting
        positives.update(dict.fromkeys(filter(None, selecting.split(":"))))
        negatives.update(dict.fromkeys(filter(None, excluding.split(":"))))
    return Filter(tuple(positives) or (("*",) if only_excludes else ()), tuple(negatives))


def is_disabled(name: str) -> bool:
    """Whether gtest skips the test silently: suite or test begins with `DISABLED_`."""
    return any(part.startswith("DISABLED_") for part in re.split(r"[./]", name))


def select(wanted: Filter, names: Sequence[str]) -> Selection:
    """Apply a filter to every listed name, disabled ones included, and account for each of its patterns."""
    chosen = [name for name in names if wanted.selects(name)]
    disabled = tuple(name for name in chosen if is_disabled(name))
    unmatched: list[tuple[str, str]] = []
    for pattern in wanted.positives:
        hits = [name for name in names if matches(pattern, name)]
        kept = [name for name in hits if not wanted.excludes(name)]
        if not hits:
            unmatched.append((pattern, "matches no test"))
        elif not kept:
            unmatched.append((pattern, "matches only tests that a negative pattern excludes"))
        elif all(map(is_disabled, kept)):
            unmatched.append((pattern, f"matches only disabled tests ({kept[0]})"))
    unmatched += [(f"-{pattern}", "excludes no test") for pattern in wanted.negatives
                  if not any(matches(pattern, name) for name in names)]
    return Selection(tuple(name for name in chosen if not is_disabled(name)), disabled, tuple(unmatched))


def nearest(pattern: str, names: Sequence[str], count: int = 3) -> tuple[str, ...]:
    """What was probably meant: the same pattern with a suite in front if that matches, else similar names."""
    pattern = pattern.removeprefix("-")
    for repaired in (f"*.{pattern}", f"{pattern}.*", f"{pattern}*", f"*{pattern}*"):
        if any(matches(repaired, name) for name in names):
            return (repaired,)
    plain = pattern.replace("*", "").replace("?", "").lower()
    words = set(_WORD.findall(plain))
    # Common words first, since full comparison of thousands of names would take seconds.
    closest = sorted(names, key=lambda name: -len(words & set(_WORD.findall(name.lower()))))[:200]
    closest.sort(key=lambda name: -difflib.SequenceMatcher(None, plain, name.lower()).ratio())
    return tuple(closest[:count])
