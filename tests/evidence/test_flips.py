"""Which changes of test results are told as the kernel's, as a test's, as the GPU's, and as chance."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tasks.evidence.flips import Change, TestRun, judge_flips
from tasks.evidence.history import KEPT, RunHistory


def ran(provider: str, tests: str = "T", gpu: str | None = "H200", code: str | None = None, **results: str) -> TestRun:
    return TestRun(0.0, provider, tests, gpu, code, None, results)


def test_without_earlier_runs_there_is_nothing_to_compare_with() -> None:
    flips = judge_flips(ran("A", one="PASS"), [])
    assert (flips.flips, flips.edited, flips.flaky) == ((), (), ())
    assert flips.lines == ["no earlier test run is kept: nothing to compare the results with"]


def test_another_result_with_another_provider_is_a_flip_in_both_directions() -> None:
    before = ran("A", one="FAIL", two="PASS", three="PASS")
    flips = judge_flips(ran("B", one="PASS", two="FAIL", three="PASS"), [before])
    assert flips.flips == (Change("one", "FAIL", "PASS", ("provider",)), Change("two", "PASS", "FAIL", ("provider",)))
    assert flips.lines == ["2 of 3 results changed since the provider before (A)",
                           "  FAIL->PASS one", "  PASS->FAIL two"]


def test_a_changed_provider_and_no_changed_result_is_said() -> None:
    flips = judge_flips(ran("B", one="PASS", two="FAIL"), [ran("A", one="PASS", two="FAIL")])
    assert flips.lines == ["the provider changed, no result changed (2 tests)"]


def test_a_provider_without_changed_machine_code_is_said_as_such() -> None:
    same = judge_flips(ran("B", code="x", one="PASS"), [ran("A", code="x", one="PASS")])
    assert same.lines == ["the provider changed, no result changed (1 test); no machine code of the watched units did"]
    flipped = judge_flips(ran("B", code="x", one="PASS"), [ran("A", code="x", one="FAIL")])
    assert flipped.lines[0].endswith("; no machine code of the watched units changed")
    unknown = judge_flips(ran("B", one="PASS"), [ran("A", one="PASS")])
    assert not unknown.same_code


def test_the_same_provider_with_another_result_is_flaky_and_no_flip() -> None:
    flips = judge_flips(ran("B", one="PASS"), [ran("A", one="FAIL"), ran("B", one="FAIL")])
    assert flips.flips == ()
    assert flips.flaky == (Change("one", "FAIL", "PASS", ()),)
    assert flips.lines == ["same provider as in the run before; no result differs from the provider before,"
                           " besides 1 flaky (1 test)", "  flaky: FAIL->PASS one (same provider, other result)"]


def test_a_test_that_was_flaky_with_the_provider_before_is_no_flip() -> None:
    flips = judge_flips(ran("B", one="PASS"), [ran("A", one="PASS"), ran("A", one="FAIL")])
    assert flips.flips == ()
    assert flips.lines == ["the provider changed, no result changed, besides 1 flaky (1 test)",
                           "  flaky: FAIL->PASS one (its results differed with one same provider before)"]


def test_a_flaky_test_is_counted_beside_the_flips() -> None:
    history = [ran("A", one="PASS", two="FAIL", three="PASS"), ran("A", one="FAIL", two="FAIL", three="PASS")]
    flips = judge_flips(ran("B", one="PASS", two="PASS", three="PASS"), history)
    assert flips.lines == ["1 of 3 results changed since the provider before (A), besides 1 flaky",
                           "  FAIL->PASS two",
                           "  flaky: FAIL->PASS one (its results differed with one same provider before)"]


def test_a_test_that_was_flaky_with_this_very_provider_is_neither_a_flip_nor_told_as_edited() -> None:
    flickered = [ran("B", one="PASS"), ran("B", one="FAIL")]
    for history in (flickered, [ran("A", tests="U", one="FAIL"), *flickered],
                    [*reversed(flickered), ran("A", tests="U", one="FAIL")]):
        flips = judge_flips(ran("B", tests="U", one="PASS"), history)
        assert (flips.flips, flips.edited) == ((), ())
        assert [change.test for change in flips.flaky] == ["one"]


def test_an_edited_test_is_no_flip_of_the_kernel() -> None:
    flips = judge_flips(ran("A", tests="U", one="PASS"), [ran("A", one="FAIL")])
    assert flips.flips == ()
    assert flips.edited == (Change("one", "FAIL", "PASS", ("tests",)),)
    assert flips.lines == ["same provider as in every kept run",
                           "  FAIL->PASS one (the test executable changed, not the provider)"]


def test_a_test_that_was_edited_after_the_provider_changed_is_told_as_edited_alone() -> None:
    history = [ran("A", one="FAIL"), ran("B", one="FAIL")]
    flips = judge_flips(ran("B", tests="U", one="PASS"), history)
    assert flips.flips == ()
    assert [change.changed for change in flips.edited] == [("tests",)]
    assert flips.lines == ["same provider as in the run before; no result differs from the provider before, besides"
                           " 1 with another test executable or GPU (1 test)",
                           "  FAIL->PASS one (the test executable changed, not the provider)"]


def test_where_provider_and_test_executable_changed_both_are_named() -> None:
    flips = judge_flips(ran("B", tests="U", one="PASS"), [ran("A", one="FAIL")])
    assert flips.lines[1:] == ["  FAIL->PASS one (the test executable changed too)"]


def test_another_gpu_is_named_and_never_called_flaky() -> None:
    flips = judge_flips(ran("A", gpu="L4", one="FAIL"), [ran("A", one="PASS")])
    assert flips.flaky == ()
    assert flips.lines[1:] == ["  PASS->FAIL one (the GPU changed, not the provider)"]


def test_the_baseline_is_all_that_is_known_of_the_provider_before() -> None:
    history = [ran("A", one="FAIL", two="PASS"), ran("A", two="PASS"), ran("B", two="PASS")]
    flips = judge_flips(ran("B", one="PASS"), history)
    assert [change.text for change in flips.flips] == ["FAIL->PASS one"]


def test_the_baseline_is_the_last_other_provider_and_none_before_it() -> None:
    flips = judge_flips(ran("C", one="PASS"), [ran("A", one="FAIL"), ran("B", one="PASS")])
    assert flips.flips == ()
    assert flips.against is not None
    assert flips.against.provider == "B"


def test_going_back_to_an_earlier_provider_compares_with_the_one_in_between() -> None:
    history = [ran("A", one="PASS"), ran("B", one="FAIL")]
    assert [change.text for change in judge_flips(ran("A", one="PASS"), history).flips] == ["FAIL->PASS one"]


def test_tests_that_only_one_run_has_are_not_compared() -> None:
    flips = judge_flips(ran("B", new="PASS"), [ran("A", old="PASS")])
    assert flips.compared == 0
    assert flips.lines == ["no test of this run was run with the provider before (A)"]


def test_a_crash_and_another_path_are_results_of_their_own() -> None:
    flips = judge_flips(ran("B", one="CRASH", two="OTHER-PATH"), [ran("A", one="PASS", two="FAIL")])
    assert [change.text for change in flips.flips] == ["PASS->CRASH one", "FAIL->OTHER-PATH two"]


@pytest.fixture
def history(tmp_path: Path) -> RunHistory:
    return RunHistory(tmp_path)


def test_runs_come_back_as_they_were_and_in_order(history: RunHistory) -> None:
    runs = [ran("A", one="PASS"), ran("B", gpu=None, one="FAIL"), ran("A", code="c", two="SKIP")]
    for run in runs:
        history.add(run)
    assert history.runs() == runs


def test_the_history_is_bounded(history: RunHistory, tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        history.add(ran(str(number), one="PASS"))
    assert [run.provider for run in history.runs()] == [str(number) for number in range(3, KEPT + 3)]
    assert len(list((tmp_path / ".fmha" / "runs").iterdir())) == KEPT


def test_a_copied_build_directory_has_no_history(history: RunHistory, tmp_path: Path) -> None:
    import shutil

    history.add(ran("A", one="PASS"))
    copy = tmp_path.with_name(f"{tmp_path.name}-copy")
    shutil.copytree(tmp_path, copy)
    assert RunHistory(copy).runs() == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}', b"null"])
def test_a_damaged_file_is_no_run_and_hides_no_other(history: RunHistory, tmp_path: Path, content: bytes) -> None:
    history.add(ran("A", one="PASS"))
    history.add(ran("B", one="PASS"))
    first = sorted((tmp_path / ".fmha" / "runs").iterdir())[0]
    first.write_bytes(content)
    assert [run.provider for run in history.runs()] == ["B"]


@pytest.mark.parametrize(("field", "value"), [("results", {"one": 7}), ("results", None), ("provider", None),
                                              ("tests", 3), ("started", "now")])
def test_a_run_of_other_values_is_no_run(history: RunHistory, field: str, value: object) -> None:
    history.add(dataclasses.replace(ran("A", one="PASS"), **{field: value}))  # type: ignore[arg-type]
    assert history.runs() == []
