"""The judgement of one cell, for what no build in these tests brings about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tasks.closure.matrix import Cell, Compile, confirmed, judge_cell, read_compile
from tasks.closure.recorded import UnitRecord

RECORD = UnitRecord(("/s/a.cu", "/s/k.h"), "compiler_depend.make", "whole", True)
LINE = Compile(True, False, "")


def _cell(record: UnitRecord = RECORD, line: Compile = LINE, listed: bool = True, known: bool = True,
          unseen: str | None = None, other: str = "") -> Cell:
    return judge_cell("u", "/s/k.h", record, line, listed, known, unseen, True, other)


def test_an_edit_that_is_not_seen_counts_only_where_nothing_else_makes_the_tool_compile() -> None:
    assert _cell(unseen="old-mtime").state == "not tracked"
    assert _cell(replace(RECORD, due="b.h is newer than the object"), unseen="old-mtime").state == "tracked"


def test_a_truncated_depfile_makes_an_unlisted_header_unknown() -> None:
    assert _cell(listed=False).cause == "not-opened"
    cell = _cell(replace(RECORD, depfile="truncated"), listed=False)
    assert (cell.state, cell.cause) == ("nothing known", "depfile-unusable")


def test_where_make_stops_nothing_is_recompiled() -> None:
    cell = _cell(replace(RECORD, stops="depend.make is missing", due="k.h is newer"))
    assert (cell.state, cell.recompiles) == ("nothing known", False)


@pytest.mark.parametrize(("answer", "state", "agreed"), [(True, "tracked", True), (False, "not tracked", False)])
def test_the_build_tools_own_answer_wins(answer: bool, state: str, agreed: bool) -> None:
    cell = confirmed(_cell(), answer)
    assert (cell.state, cell.confirmed) == (state, agreed)


def test_the_tool_is_not_believed_about_an_edit_that_it_cannot_see() -> None:
    cell = _cell(unseen="old-mtime")
    assert confirmed(cell, True) == cell


def test_compile_lines_say_how_they_write_depfiles() -> None:
    assert read_compile(("/usr/bin/ccache", "/usr/bin/nvcc", "-MD", "-MF", "x.d")) == Compile(True, False, "ccache")
    assert read_compile(("g++", "-MMD", "-c", "x.cc")) == Compile(True, True, "")
    assert read_compile(("g++", "-c", "x.cc")) == Compile(False, False, "")
