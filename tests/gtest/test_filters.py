"""The filter language, checked against the real GoogleTest, and the parsing of its lists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.gtest.environment import prepare
from tasks.gtest.filters import is_disabled, matches, nearest, parse_filter, select
from tasks.gtest.listing import list_tests, parse_text

NAMES = (
    "AttentionTest.Attention_Causal_MEA_FP16_CUDA", "AttentionTest.Attention_Causal_FP32_CUDA",
    "AttentionTest.DISABLED_Attention_Slow_MEA", "DISABLED_OldTest.One", "Typed/0.Holds", "Typed/1.Holds",
    "BrokenSetUp.One", "All/Sizes.Works/0", "All/Sizes.Works/1", "All/Sizes.Works/2",
)


def gtest_says(program: Path, flag: str) -> tuple[str, ...]:
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={flag}"], capture_output=True, text=True,
                            check=True)
    return parse_text(listed.stdout)


def test_list_of_a_real_program_holds_every_shape_of_name_and_no_log_line(programs: Path, tmp_path: Path) -> None:
    environment = prepare({}, (), (), "mark")
    listed = list_tests(programs / "shapes", tmp_path, environment, tmp_path / "list.json", 20)
    assert sorted(listed) == sorted(NAMES)


def test_text_glued_to_a_suite_in_the_list_does_no_harm(programs: Path, tmp_path: Path) -> None:
    environment = prepare({"FAKE_TESTS": "AttentionTest.A: mea\nlist: out glued"}, (), (), "mark")
    assert list_tests(programs / "scripted", tmp_path, environment, tmp_path / "list.json", 20) == ("AttentionTest.A",)


def test_text_of_the_list_is_read_where_a_program_writes_no_json() -> None:
    assert parse_text(
        "Running main() from gtest_main.cc\n"
        "2026-01-01 10:00:00 [V:onnxruntime:, x.cc:1] loading. Done.\n"
        "AttentionTest.\r\n"
        "  A\r\n"
        "log line between\n"
        "  B  # GetParam() = (1, 2)\n"
        "My/Typed/0.  # TypeParam = std::vector<int>\n"
        "  Holds\n"
        "  two words\n"
    ) == ("AttentionTest.A", "AttentionTest.B", "My/Typed/0.Holds")


def test_tests_without_a_suite_are_no_tests() -> None:
    assert parse_text("  A\n  B\nSuite\n  C\n") == ()


@pytest.mark.parametrize("flag", [
    "*", "*MEA*", "AttentionTest.*", "AttentionTest.Attention_Causal_????_CUDA", "*-*CUDA", "-*CUDA", "All/*:Typed/?.*",
    "AttentionTest", "Attention*.One", "*/0*", "*:-", "::*MEA*::", "Typed/0.Holds", "*-*/1-*/2",
    "*MEA*-*Slow*:*FP16*", ":", "-", ":-*MEA*",
])
def test_filters_mean_what_gtest_means_by_them(programs: Path, flag: str) -> None:
    wanted = parse_filter([flag])
    assert {name for name in NAMES if wanted.selects(name)} == set(gtest_says(programs / "shapes", flag))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["*", "?", "Attention", "MEA", "Typed", "/", "0", ".", "_", "One", ":", "-", "CUDA"]),
                min_size=1, max_size=7).map("".join))
def test_random_filters_mean_what_gtest_means_by_them(programs: Path, flag: str) -> None:
    wanted = parse_filter([flag])
    assert {name for name in NAMES if wanted.selects(name)} == set(gtest_says(programs / "shapes", flag))
    # What is handed to gtest is our own rendering of the filter: it must mean the same.
    assert str(parse_filter([str(wanted)])) == str(wanted)
    assert set(gtest_says(programs / "shapes", str(wanted))) == set(gtest_says(programs / "shapes", flag))


def test_several_filters_become_one_whose_negatives_come_last() -> None:
    assert str(parse_filter(["A.*-A.x", "B.*", "-*FP32*"])) == "A.*:B.*-A.x:*FP32*"


def test_brackets_and_dots_are_plain_text() -> None:
    assert not matches("A.[ab]", "A.a")
    assert not matches("A.b", "Axb")


def test_disabled_suites_and_tests_are_known_also_behind_a_prefix() -> None:
    assert [is_disabled(name) for name in ("A.DISABLED_x", "DISABLED_A.x", "In/DISABLED_A.x/0", "A.xDISABLED_")] == [
        True, True, True, False]


def test_every_pattern_accounts_for_what_it_selects() -> None:
    chosen = select(parse_filter(["*Causal_FP32*", "*Slow*", "Nope.*", "*MEA_FP16*-*MEA_FP16*:Gone.*"]), NAMES)
    assert chosen.selected == ("AttentionTest.Attention_Causal_FP32_CUDA",)
    assert chosen.disabled == ("AttentionTest.DISABLED_Attention_Slow_MEA",)
    assert dict(chosen.unmatched) == {
        "*Slow*": "matches only disabled tests (AttentionTest.DISABLED_Attention_Slow_MEA)",
        "Nope.*": "matches no test",
        "*MEA_FP16*": "matches only tests that a negative pattern excludes",
        "-Gone.*": "excludes no test",
    }


def test_pattern_without_its_suite_is_offered_with_one() -> None:
    assert nearest("Attention_Causal_*", NAMES) == ("*.Attention_Causal_*",)


def test_misspelt_pattern_is_offered_the_most_similar_tests() -> None:
    assert nearest("AttentionTest.Atention_Causal_MEA_FP16_CUDA", NAMES)[0] == NAMES[0]


def test_nearest_of_thousands_of_names_is_found_within_a_second() -> None:
    names = [f"AttentionTest.Attention_Case_{number}_FP16_CUDA" for number in range(10_000)]
    import time
    began = time.perf_counter()
    assert nearest("AttentionTest.Atention_Case_77_FP16_CUDA", names)
    assert time.perf_counter() - began < 1
