"""Unit against header: what an edit of the header leads to at the next ordinary build. Pure judgement."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

from tasks.closure.recorded import UnitRecord

__all__ = ["Cell", "CellState", "Compile", "confirmed", "judge_cell", "read_compile"]

CellState = Literal["tracked", "not tracked", "nothing known"]

# GCC's and nvcc's words for writing a depfile beside the object.
_DEPFILE_FLAGS = ("-MD", "-MMD", "--generate-dependencies-with-compile",
                  "--generate-nonsystem-dependencies-with-compile")
_USER_ONLY_FLAGS = ("-MMD", "-MM", "--generate-nonsystem-dependencies-with-compile")
_LAUNCHERS = ("ccache", "sccache", "distcc", "icecc", "buildcache", "fastbuild")


@dataclass(frozen=True)
class Compile:
    """What one unit's compile line says of its depfile; `launcher` is the compiler cache in front, or empty."""

    writes_depfile: bool
    user_headers_only: bool
    launcher: str


@dataclass(frozen=True)
class Cell:
    """One unit and one watched header that it reaches.

    `recompiles`: whether the next ordinary build compiles the unit once the header is edited. It can
    be true without a record (the build tool compiles what it knows nothing of, or the unit is due
    anyway). `cause` is a key of :data:`tasks.closure.causes.CAUSES`, None for ``tracked``.
    `confirmed` is what the build tool itself said: None where it was not asked. `detail` names a file.
    """

    unit: str
    header: str
    state: CellState
    recompiles: bool
    cause: str | None = None
    detail: str = ""
    confirmed: bool | None = None


def read_compile(words: Collection[str]) -> Compile:
    """The depfile's side of a compile line."""
    flags = set(words)
    launcher = next((name for word in list(words)[:4] if (name := os.path.basename(word)) in _LAUNCHERS), "")
    return Compile(not flags.isdisjoint(_DEPFILE_FLAGS) or any(word.startswith("-Wp,-M") for word in flags),
                   not flags.isdisjoint(_USER_ONLY_FLAGS), launcher)


def _why_no_record(record: UnitRecord, line: Compile, object_exists: bool) -> str:
    if not object_exists:
        return "not-compiled"
    if not record.used and record.depfile in ("whole", "truncated"):
        return "depfile-not-read"
    if not line.writes_depfile and record.origin != "depend.make":
        return "no-depfile-flag"
    if record.depfile in ("empty", "malformed", "truncated"):
        return "depfile-unusable"
    if line.launcher and record.due is None:
        return "launcher"
    return "records-deleted"


def _why_not_listed(record: UnitRecord, line: Compile, same_name: str) -> str:
    if same_name:
        return "shadowed"
    if line.user_headers_only:
        return "system-headers"
    return "new-include" if record.due is not None else "not-opened"


def judge_cell(unit: str, header: str, record: UnitRecord, line: Compile, listed: bool, known: bool, unseen: str | None,
               object_exists: bool, same_name: str = "") -> Cell:
    """The cell of one unit and one header.

    `listed`: the build tool's record or its build files name the header. `known`: the record names
    any file that is there. `unseen`: an edit is there already that the tool cannot see, and why.
    `same_name`: another file of the header's name, which the record has or the unit now finds first.
    """
    due = record.due is not None
    if record.stops is not None:
        return Cell(unit, header, "nothing known", False, "make-stops", record.stops)
    if listed and same_name and not due:
        return Cell(unit, header, "not tracked", False, "shadowed", same_name)
    if listed and unseen is not None and not due:
        return Cell(unit, header, "not tracked", False, unseen)
    if listed:
        return Cell(unit, header, "tracked", True)
    if record.files is None or not known:
        return Cell(unit, header, "nothing known", due, _why_no_record(record, line, object_exists))
    if record.depfile == "truncated":
        return Cell(unit, header, "nothing known", due, "depfile-unusable")
    return Cell(unit, header, "not tracked", due, _why_not_listed(record, line, same_name), same_name)


def confirmed(cell: Cell, answer: bool | None) -> Cell:
    """The cell with the build tool's own answer, which wins where they differ."""
    if answer is None or cell.cause not in (None, "system-headers", "not-opened", "no-depfile-flag",
                                            "records-deleted", "depfile-unusable", "launcher"):
        # The tool was asked about an edit from now on, not about what is there already.
        return cell
    if answer == cell.recompiles:
        return replace(cell, confirmed=True)
    if cell.state == "tracked":
        return replace(cell, state="not tracked", recompiles=False, cause="tool-disagrees", confirmed=False)
    return replace(cell, recompiles=answer, confirmed=False)
