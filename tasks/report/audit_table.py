"""The audit as a table and as a JSON document."""

from __future__ import annotations

import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.auditing import Audit, AuditedUnit, Finding

__all__ = ["as_document", "plain_lines", "print_table"]

_WIDTH = 80
_NAMED = 4
_COLOURS = {"tracked": "\x1b[32m", "not tracked": "\x1b[31m", "nothing known": "\x1b[33m"}


def as_document(audit: Audit) -> dict[str, Any]:
    """The JSON document."""
    def finding(found: Finding) -> dict[str, Any]:
        return {"kind": found.kind, "text": found.text, "mend": found.mend, "units": list(found.units),
                "headers": list(found.headers)}

    return {
        "schema": 1, "task": "audit", "tracked": audit.tracked, "ort_root": audit.ort_root,
        "build_dir": audit.build_dir, "generator": audit.generator, "headers": list(audit.headers),
        "units": [{
            "name": unit.name, "source": unit.source, "object": unit.object, "target": unit.target,
            "record": {
                "from": unit.record.origin if unit.record.files is not None else None,
                "files": None if unit.record.files is None else len(unit.record.files),
                "depfile": unit.record.depfile, "depfile_used": unit.record.used, "folded": unit.record.folded},
            "due": unit.record.due,
            "cells": [{"header": cell.header, "state": cell.state, "recompiles": cell.recompiles, "cause": cell.cause,
                       "detail": cell.detail, "confirmed": cell.confirmed} for cell in unit.cells.values()],
        } for unit in audit.units],
        "causes": [finding(found) for found in audit.causes],
        "findings": [finding(found) for found in audit.findings],
    }


def _columns(audit: Audit) -> list[str]:
    """The headers with any filled cell, in order."""
    filled = {header for unit in audit.units for header in unit.cells}
    return [header for header in audit.headers if header in filled]


def _names(headers: Iterable[str]) -> dict[str, str]:
    """Short names: the file's own, the path's end where two share it."""
    headers = list(headers)
    counts = Counter(os.path.basename(header) for header in headers)
    return {header: os.path.basename(header) if counts[os.path.basename(header)] == 1 else
            "/".join(header.split("/")[-2:]) for header in headers}


def _state(unit: AuditedUnit, header: str) -> str:
    return unit.cells[header].state if header in unit.cells else ""


def _cell(state: str, width: int, colours: Mapping[str, str]) -> str:
    padding = " " * (width - len(state))
    return f"{colours[state]}{state}\x1b[0m{padding}" if state in colours else state + padding


def _matrix(audit: Audit, columns: list[str], names: dict[str, str], colours: Mapping[str, str]) -> list[str] | None:
    """One column a header, in words; None where that is wider than a line."""
    first = max((len(unit.name) for unit in audit.units), default=4)
    widths = [max(13, len(names[header])) for header in columns]
    if first + sum(widths) + 2 * len(widths) > _WIDTH:
        widths = [13] * len(columns)
        keys = [f"[{number}]" for number in range(1, len(columns) + 1)]
        if first + 15 * len(columns) > _WIDTH:
            return None
        legend = [f"  [{number}] {names[header]}" for number, header in enumerate(columns, 1)]
    else:
        keys, legend = [names[header] for header in columns], []
    lines = [*legend, "  ".join([" " * first, *(f"{key:<{width}}" for key, width in zip(keys, widths, strict=True))])]
    lines += ["  ".join([f"{unit.name:<{first}}", *(_cell(_state(unit, header), width, colours)
                                                    for header, width in zip(columns, widths, strict=True))])
              for unit in audit.units]
    return [line.rstrip() for line in lines]


def _counts(audit: Audit, names: dict[str, str]) -> list[str]:
    """One line a unit, where the matrix would be too wide."""
    lines = []
    for unit in audit.units:
        counts = Counter(cell.state for cell in unit.cells.values())
        lines.append(f"{unit.name}: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
        gaps = [names[header] for header, cell in unit.cells.items() if cell.state != "tracked"]
        if gaps:
            lines.append(f"    {_some(gaps)}")
    return lines


def _some(words: Iterable[str]) -> str:
    words = list(words)
    more = f" and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return ", ".join(words[:_NAMED]) + more


def _told(found: Finding) -> list[str]:
    whom = f" ({_some(found.units)})" if found.units else ""
    text = textwrap.wrap(f"{found.kind}{whom}: {found.text}", _WIDTH, subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)
    # A command stands whole, so that it can be copied; words around it have lines of their own.
    words, colon, command = found.mend.rpartition(": ")
    if not colon:
        return [*text, f"    mend: {command}"]
    return [*text, *textwrap.wrap(f"mend: {words}:", _WIDTH, initial_indent="    ", subsequent_indent="      ",
                                  break_long_words=False, break_on_hyphens=False), f"      $ {command}"]


def _confirmed(audit: Audit) -> str:
    answers = [cell.confirmed for unit in audit.units for cell in unit.cells.values()]
    tool = "make" if audit.generator == "Unix Makefiles" else "ninja"
    asked = [answer for answer in answers if answer is not None]
    return f"{tool} itself agrees in {sum(asked)} of {len(asked)} cells that it was asked about" if asked else ""


def plain_lines(audit: Audit, colours: Mapping[str, str] | None = None) -> list[str]:
    """The whole table as text of 80 columns (paths and commands may be longer); `colours` by state."""
    columns = _columns(audit)
    names = _names(columns)
    lines = [f"checkout  {audit.ort_root}", f"build     {audit.build_dir}", f"tool      {audit.generator}", ""]
    lines += _matrix(audit, columns, names, colours or {}) or _counts(audit, names)
    lines.append("")
    if confirmed := _confirmed(audit):
        lines.append(confirmed)
    for found in (*audit.causes, *audit.findings):
        lines += _told(found)
    if audit.tracked:
        lines.append("every pair of unit and header is tracked: an edit makes the build tool recompile")
    return lines


def print_table(audit: Audit) -> None:
    """Print the table to standard output, on a terminal with colours."""
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    print("\n".join(plain_lines(audit, _COLOURS if colours else {})), flush=True)
