"""The chain of evidence as a table of plain text: fast to print, and the same in a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TextIO

from tasks.report.document import Report
from tasks.report.wrap import fitted_lines

__all__ = ["chain_text", "time_lines"]

_COLOURS = {"fresh": "\x1b[32m", "stale": "\x1b[31m", "unproven": "\x1b[33m"}


def _painted(word: str, width: int = 9) -> str:
    padded = f"{word:<{width}}"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ and word in _COLOURS:
        return f"{_COLOURS[word]}{padded}\x1b[0m"
    return padded


# Where the evidence begins: number, name and verdict of a link stand before it.
_EVIDENCE = " " * 31


def chain_text(report: Report, output: TextIO) -> str:
    """One row a link, its first evidence lines below each other, then the verdict with its mend."""
    return f"{fitted_lines(_link_lines(report), output, _EVIDENCE)}\n{fitted_lines(_verdict_lines(report), output)}"


def _link_lines(report: Report, limit: int = 6) -> list[str]:
    lines = []
    # What nobody asked about is no bad news: it is listed without a verdict's colour, and what is so for the same
    # reason in one row.
    asked = [link.n for link in report.links if link.n <= report.judged or link.checked]
    for _, same in groupby(report.links, lambda link: (link.n if link.n in asked else 0, link.evidence)):
        first, *more = same
        name = f"{first.n}-{more[-1].n} test run" if more else f"{first.n} {first.name}"
        word = _painted(first.verdict) if first.n in asked else f"{'-':<9}"
        evidence = list(first.evidence[:limit])
        if len(first.evidence) > limit:
            evidence.append(f"... and {len(first.evidence) - limit} more (--json has all)")
        lines.append(f"  {name:<18} {word} {evidence[0] if evidence else ''}".rstrip())
        lines += [f"{_EVIDENCE}{line}" for line in evidence[1:]]
    return lines


def _verdict_lines(report: Report) -> list[str]:
    verdict = _painted(report.verdict, 0)
    broken = report.broken
    if broken is None:
        return [f"{verdict}: {report.claims}"]
    lines = [f"{verdict}: link {broken.n} ({broken.name}) is the first that is not proved"]
    # A refused test run says its own mend, below.
    if broken.remedy and report.refusal is None:
        lines.append(f"  mend it: {broken.remedy}")
    return lines


def _clock(path: str | Path) -> tuple[int, str]:
    try:
        moment = os.stat(path).st_mtime_ns
    except OSError:
        return 0, "missing"
    return moment, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment / 1e9))


def time_lines(headers: Iterable[str], objects: Iterable[tuple[str, str]], provider: str) -> list[str]:
    """The manual ritual's check, as a hint and no proof: the times of header, objects and provider."""
    newest = max(headers, key=lambda path: _clock(path)[0], default="")
    header, header_clock = _clock(newest)
    lines = [f"  {'newest header':<34} {header_clock}  {os.path.basename(newest)}"]
    linked, linked_clock = _clock(provider)
    newest_object = 0
    for name, path in objects:
        moment, clock = _clock(path)
        newest_object = max(newest_object, moment)
        hint = "older or equal" if 0 < moment <= header else ""
        lines.append(f"  {'object ' + name:<34} {clock}  {hint}".rstrip())
    hint = "older or equal" if 0 < linked <= max(header, newest_object) else ""
    lines.append(f"  {os.path.basename(provider):<34} {linked_clock}  {hint}".rstrip())
    return lines
