"""At 80 columns: nothing torn within a word, paths and commands whole where they fit, what went wrong last."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest
from doit.exceptions import TaskFailed

from tasks.auditing import Audit, AuditedUnit, Finding
from tasks.binary.kernels import Kernel
from tasks.box.space import require_space
from tasks.closure.causes import CAUSES, Places
from tasks.closure.causes import told as told_cause
from tasks.closure.matrix import Cell
from tasks.errors import UserError
from tasks.evidence.chain import Link
from tasks.evidence.flips import TestRun, judge_flips
from tasks.kernels import UnitKernels
from tasks.report import audit_table, flips_table, kernels_table
from tasks.report.console import chain_text
from tasks.report.document import Report
from tasks.report.reporter import reporter_class
from tasks.report.wrap import fitted, fitted_lines
from tasks.unit_code import UnitCode, told

_PAINT = re.compile(r"\x1b\[\d+m")


@pytest.fixture
def terminal() -> Iterator[TextIO]:
    """A terminal of 24 lines and 80 columns."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with os.fdopen(slave, "w") as screen, os.fdopen(master):
        yield screen


class Screen(io.StringIO):
    """Collects what is printed, and looks like the terminal."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()


@pytest.fixture
def printed(terminal: TextIO, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The lines, without colours, that a function prints there."""
    def lines(function: Callable[..., None], *arguments: Any) -> list[str]:
        screen = Screen(terminal)
        monkeypatch.setattr(sys, "stdout", screen)
        function(*arguments)
        monkeypatch.undo()
        return _PAINT.sub("", screen.getvalue()).splitlines()

    return lines


def torn(lines: Sequence[str], words: Sequence[str]) -> list[str]:
    """The words that stand nowhere in one piece."""
    return [word for word in words if not any(word in line for line in lines)]


# -- breaking lines ----------------------------------------------------------------------------------------------


def test_a_path_that_is_too_long_where_it_stands_begins_further_left(terminal: TextIO) -> None:
    path = "/" + "p" * 70
    assert fitted(f"  mapped: {path}", terminal, " " * 31) == f"  mapped:\n{' ' * 9}{path}"


def test_a_path_longer_than_a_line_begins_at_its_start(terminal: TextIO) -> None:
    path = "/" + "p" * 90
    assert fitted(f"see {path}", terminal) == f"see\n{path}"


def test_a_verdict_is_continued_below_itself_and_not_in_the_evidences_column(terminal: TextIO) -> None:
    links = tuple(Link(n, "fresh", ("one two three four five six seven eight nine ten eleven twelve",))
                  for n in range(1, 8))
    report = Report("verify", 3, links, (), "/ort", "/ort/build", {}, 0.0, 0.0)
    lines = _PAINT.sub("", chain_text(report, terminal)).splitlines()
    assert lines[1] == f"{'':31}eleven twelve"
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith(" " * 6) for line in lines[14:])


def test_what_was_not_asked_for_the_same_reason_is_one_row(terminal: TextIO) -> None:
    links = tuple(Link(n, "fresh", ("proved",)) if n < 4 else
                  Link(n, "unproven", ("not run since x.so changed",), checked=False) for n in range(1, 8))
    rows = _PAINT.sub("", chain_text(Report("verify", 3, links, (), "/ort", "/ort/build", {}, 0.0, 0.0), terminal))
    assert rows.splitlines()[3] == f"  {'4-7 test run':<18} {'-':<9} not run since x.so changed"
    assert "process-tests" not in rows
    # What was asked stands alone, also where several links say the same.
    asked = Report("test_mea", 7, links, (), "/ort", "/ort/build", {}, 0.0, 0.0)
    assert all(f"{link.n} {link.name}" in chain_text(asked, terminal) for link in links)


@pytest.mark.parametrize("before", ["  ", "  mend it: ", "  wait for it: ", "  TMPDIR=/a/folder ", "  $ "])
def test_a_command_is_not_broken_since_a_shell_would_take_it_for_two(terminal: TextIO, before: str) -> None:
    command = f"{before}doit rebuild_fmha ort_root=/{'r' * 40} build_dir=/{'b' * 40} jobs=2"
    assert fitted(command, terminal) == command


def test_recompiled_units_with_the_same_words_share_a_line() -> None:
    same = UnitCode("changed", "first proved build", first=True)
    kernels = UnitCode("changed", "device code changed (1 kernel)", kernels=(LONG,))
    assert told([("one", same), ("two", kernels), ("three", same)]) == [
        "   one, three: first proved build", "   two: device code changed (1 kernel)",
        "      attention_kernel_batched<AttentionKernel<cutlass::half_t, cutlass::arch::Sm80, 16, 32>>"]


# -- what went wrong ---------------------------------------------------------------------------------------------


def test_a_failure_is_told_after_the_verdict_that_it_would_else_scroll_away_with() -> None:
    screen = io.StringIO()
    reporter = reporter_class(lambda _: None, lambda: print("stale: forty lines", file=screen))(screen, {})
    reporter.add_failure(SimpleNamespace(name="build"), TaskFailed("The build failed.\n  whole output: x.log"))
    assert screen.getvalue() == ""
    reporter.complete_run()
    assert screen.getvalue() == "stale: forty lines\nbuild: The build failed.\n  whole output: x.log\n"


def test_a_failure_is_told_also_where_the_verdict_is_interrupted() -> None:
    def ended() -> None:
        raise KeyboardInterrupt

    screen = io.StringIO()
    reporter = reporter_class(lambda _: None, ended)(screen, {})
    reporter.add_failure(SimpleNamespace(name="build"), TaskFailed("The build failed."))
    with pytest.raises(KeyboardInterrupt):
        reporter.complete_run()
    assert screen.getvalue() == "build: The build failed.\n"


def test_a_build_that_finds_no_room_is_refused_in_four_rows(terminal: TextIO, tmp_path: Path) -> None:
    folder = tmp_path / ("checkout-" * 3) / "build" / "Linux"
    with pytest.raises(UserError) as refused:
        require_space(folder, tmp_path, {"TMPDIR": str(tmp_path)}, 0, min_free_gb=1e6)
    lines = fitted_lines(f"object:fmha_sm50: {refused.value}".split("\n"), terminal).splitlines()
    assert len(lines) <= 4
    assert lines[-1].startswith("  see what fills it: doit disk, or ask for less: min_free_gb")


def test_the_reason_says_its_verdict_once() -> None:
    links = (Link(1, "fresh", ("x",)), Link(2, "stale", ("fmha_sm80: stale: kernel_forward.h changed",)))
    report = Report("status", 3, links, (), "/ort", "/ort/build", {}, 0.0, 0.0)
    assert report.disproof == "stale: fmha_sm80: kernel_forward.h changed"


# -- tables ------------------------------------------------------------------------------------------------------

LONG = "_Z24attention_kernel_batchedI15AttentionKernelIN7cutlass6half_tENS1_4arch4Sm80ELi16ELi32EEEvv"


def test_a_kernels_name_stands_above_its_architectures_whole_words(printed: Callable[..., list[str]]) -> None:
    kernels = (Kernel(LONG, "compute_90", None, None, 1024, None), Kernel(LONG, "sm_80", 28, 392, 2048, 35200))
    units = [UnitKernels("fmha_sm80", "x.o", "contained", "device code lies in the provider", kernels,
                         UnitCode(kernels=(LONG,))),
             UnitKernels("empty", "y.o", "none", "no device code", (), UnitCode())]
    lines = printed(kernels_table.print_table, units, [], "/provider.so")
    assert lines[:7] == [
        "               registers  stack  shared     code",
        "fmha_sm80: contained: device code lies in the provider",
        "  attention_kernel_batched<AttentionKernel<cutlass::half_t, cutlass::arch::Sm80,",
        "     16, 32>>",
        "    compute_90         -      -    1024        -  changed",
        "    sm_80             28    392    2048    35200  changed",
        "empty: none: no device code"]
    assert max(map(len, lines)) <= 80


HEADERS = tuple(f"/ort/fmha/{name}.h" for name in ("fmha_launch_template", "kernel_forward",
                                                   "memory_efficient_attention"))


def audit(mend: str) -> Audit:
    cells = {header: Cell("fmha_sm80", header, "not tracked", False, "system-headers") for header in HEADERS}
    unit = AuditedUnit("group_query_attention_impl", "/ort/a.cu", "a.o", "provider", "CUDA", None, cells)  # type: ignore[arg-type]
    return Audit("/ort", "/ort/build", "Ninja", HEADERS, (unit,), (Finding("a-kind", "text", mend),), ())


def test_header_names_are_whole_in_the_audits_table(printed: Callable[..., list[str]]) -> None:
    lines = printed(audit_table.print_table, audit("cmake --build /x"))
    assert torn(lines, [header.rpartition("/")[2] for header in HEADERS]) == []
    assert max(map(len, lines)) <= 80
    assert "group_query_attention_impl  not tracked    not tracked    not tracked" in lines


def test_the_command_of_a_mend_is_on_a_line_of_its_own_to_be_copied(printed: Callable[..., list[str]]) -> None:
    command = "cmake -S /a/long/path/to/the/checkout/cmake -B /a/long/path/to/the/checkout/build && doit rebuild_fmha"
    words = "-MD instead of -MMD in CMAKE_DEPFILE_FLAGS_CXX (or a folder that is not SYSTEM), then"
    lines = printed(audit_table.print_table, audit(f"{words}: {command}"))
    at = lines.index("a-kind: text")
    assert lines[at + 1:at + 4] == [
        "    mend: -MD instead of -MMD in CMAKE_DEPFILE_FLAGS_CXX (or a folder that is",
        "      not SYSTEM), then:", f"      $ {command}"]
    lines = printed(audit_table.print_table, audit(command))
    assert f"    mend: {command}" in lines


@pytest.mark.parametrize("kind", CAUSES)
def test_what_an_audit_shows_as_a_command_is_one(printed: Callable[..., list[str]], kind: str) -> None:
    _, mend = told_cause(kind, Places("/ort/build", "/ort/cmake", "provider", "CUDA", ("/a.cu",), "/a.h", "", "doit x"))
    commands = [line.strip() for line in printed(audit_table.print_table, audit(mend)) if line.startswith("      $ ")]
    assert [words for words in commands if not words.startswith(("$ cmake ", "$ doit ", "$ touch "))] == []


def test_test_names_are_whole_in_the_list_of_flips(printed: Callable[..., list[str]]) -> None:
    test = "AttentionTest.Attention_Causal_NonPadKVSeqLen_MEA_NegOffset_FP16_CUDA"
    runs = [TestRun(0.0, "a" * 64, "t" * 64, "NVIDIA H200", None, None, {test: "FAIL"}),
            TestRun(9.0, "b" * 64, "t" * 64, "NVIDIA H200", None, None, {test: "PASS"})]
    lines = printed(flips_table.print_table, [(run, judge_flips(run, runs[:n])) for n, run in enumerate(runs)])
    assert torn(lines, [test, "FAIL->PASS", "NVIDIA H200"]) == []
    assert max(map(len, lines)) <= 80


def test_in_a_pipe_lines_stay_whole() -> None:
    assert fitted_lines(["x" * 200, "y"], io.StringIO()) == f"{'x' * 200}\ny"
