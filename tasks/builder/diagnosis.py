"""Finds in a build's output what went wrong: the first error that a person would look for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cause", "first_error"]

# gcc and clang: file:line:col: error; nvcc's front end: file(line): error.
_COMPILER = re.compile(r"^\S.*?(?::\d+(?::\d+)?: (?:fatal )?error:|\(\d+\): (?:catastrophic |internal )?error)")


@dataclass(frozen=True)
class Cause:
    """A known cause with its mend; `about_space` where a file system is to blame."""

    told: str
    about_space: bool = False


# The order is that of the search: a full disk makes compilers crash, too.
_CAUSES = (
    (re.compile(r"No space left on device|not enough space on the disk", re.I),
     Cause("no space or no inodes: free some where the build writes (build directory, TMPDIR): doit disk", True)),
    (re.compile(r"Disk quota exceeded", re.I), Cause("the disk quota is used up: free space, then run again", True)),
    (re.compile(r"Killed signal terminated program|died due to signal 9|^make.*\*\*\* .*Killed$|Error 137$|code=137"
                r"|^Killed$|virtual memory exhausted|out of memory|cannot allocate memory|std::bad_alloc", re.I),
     Cause("the compiler was killed, most likely for memory: fewer jobs, such as: doit TASK jobs=1")),
    (re.compile(r"manifest '.*' still dirty"),
     Cause("a file that CMake reads bears a time in the future: touch it")),
    (re.compile(r"internal compiler error|died due to signal (?:4|6|8|11)\b|Segmentation fault"
                r"|Internal Compiler Error|internal error: assertion failed", re.I),
     Cause("the compiler itself crashed: try again, or another host compiler")),
)
_OTHER = re.compile(r"undefined reference to|multiple definition of|ld returned \d+ exit status|\*\*\* .*Stop\.$"
                    r"|ninja: error:|CMake Error|[Ee]rror:|command not found|Permission denied")


def first_error(log: Path) -> tuple[str | None, Cause | None]:
    """(the first error line, a known cause with its mend) of a build log; None for what was not found."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None, None
    cause = next((told for pattern, told in _CAUSES for line in lines if pattern.search(line)), None)
    return _first(lines, (_COMPILER, _OTHER)), cause


def _first(lines: Sequence[str], patterns: Iterable[re.Pattern[str]]) -> str | None:
    for pattern in patterns:
        for n, line in enumerate(lines):
            if pattern.search(line):
                # CMake tells the place first, and what is wrong indented below it.
                told = next(filter(None, lines[n + 1:]), "") if line.startswith("CMake Error at ") else ""
                return " ".join((line.strip(), told.strip())).rstrip()[:300]
    return None
