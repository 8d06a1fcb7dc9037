"""Green for the wrong reason: case by case, with a real GoogleTest program."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tasks.gtest import REFUSALS, DeviceCode, Outcome
from tests.gtest.conftest import Bench

MEA = "AttentionTest.One_MEA_FP16_CUDA: open; mea"


def links(outcome: Outcome) -> dict[int, str]:
    return {link.number: link.verdict for link in outcome.links}


def result(outcome: Outcome, name: str) -> dict[str, object]:
    assert outcome.tests is not None
    return next(test for test in outcome.tests["results"] if test["name"] == name)


def three_lines(outcome: Outcome) -> bool:
    return 1 <= len(outcome.message.splitlines()) <= 3


def test_proved_run_is_green_in_all_four_links(bench: Bench, gpu: Callable[[int], None]) -> None:
    gpu(90)
    outcome = bench.run(MEA, code=DeviceCode({"fmha_sm80": ("sm_80", "compute_90"), "fmha_sm70": ("sm_70",)}))
    assert outcome.refusal is None
    assert links(outcome) == {4: "fresh", 5: "fresh", 6: "fresh", 7: "fresh"}
    assert outcome.message.startswith("1 of 1 tests passed on NVIDIA H200 (sm_90) in ")
    assert outcome.message.endswith(" s, 1 of them by memory-efficient attention.")
    assert outcome.links[0].evidence == (f"mapped: {bench.provider}",)
    json.dumps(outcome.tests)


# 23
def test_filter_that_matches_nothing_is_no_tests_matched_and_nearest_are_shown(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.Attention_Causal_MEA_FP16: open; mea", patterns=("Attention_Causal_*",))
    assert outcome.refusal == "no-tests-matched"
    assert "`Attention_Causal_*` matches no test" in outcome.message
    assert "Suite.Test" in outcome.message
    assert "'*.Attention_Causal_*'" in outcome.message
    assert links(outcome)[5] == "unproven"
    assert three_lines(outcome)


def test_every_pattern_given_must_match(bench: Bench) -> None:
    outcome = bench.run(MEA, patterns=("*MEA*", "*Nope*"))
    assert outcome.refusal == "no-tests-matched"
    assert "`*Nope*`" in outcome.message


def test_of_the_default_patterns_one_must_match_and_the_others_are_named(bench: Bench) -> None:
    outcome = bench.run(MEA, patterns=("*MEA*", "*Nope*"), every_pattern_must_match=False)
    assert outcome.refusal is None
    assert outcome.tests is not None
    assert outcome.tests["unmatched"] == [{"pattern": "*Nope*", "why": "matches no test"}]


def test_pattern_of_disabled_tests_only_is_no_tests_matched(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nAttentionTest.DISABLED_Two: mea", patterns=("*Two",))
    assert outcome.refusal == "no-tests-matched"
    assert "disabled" in outcome.message


# 24
def test_binary_without_the_tests_is_wrong_binary_and_the_right_one_is_named(bench: Bench, programs: Path) -> None:
    wrong = bench.folder / "onnxruntime_test_all"
    shutil.copy(programs / "shapes", wrong)
    outcome = bench.run(MEA, binary=wrong, patterns=("*One_MEA*",), candidates=(wrong, bench.binary))
    assert outcome.refusal == "wrong-binary"
    assert outcome.message.splitlines()[-1].strip() == "doit test_mea test_binary=onnxruntime_provider_test"


def test_binary_without_attention_suites_is_wrong_binary_also_without_a_candidate(bench: Bench) -> None:
    outcome = bench.run("GraphTest.AttentionFusion: mea", patterns=("AttentionTest.*",))
    assert outcome.refusal == "wrong-binary"
    assert "none of them in AttentionTest" in outcome.message


def test_older_trees_binary_is_right_because_it_holds_the_tests(bench: Bench) -> None:
    old = bench.folder / "onnxruntime_test_all"
    bench.binary.rename(old)
    assert bench.run(MEA, binary=old).refusal is None


# 25
def test_variables_that_steer_gtest_or_the_dispatch_are_scrubbed_and_said(bench: Bench) -> None:
    leaking = {"GTEST_FILTER": "-*", "GTEST_TOTAL_SHARDS": "2", "GTEST_SHARD_INDEX": "1", "GTEST_REPEAT": "0",
               "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION": "1", "TEST_TOTAL_SHARDS": "3", "XML_OUTPUT_FILE": "x",
               "TESTBRIDGE_TEST_ONLY": "Nope", "LD_PRELOAD": "/nowhere.so", "CUDA_FORCE_PTX_JIT": "1"}
    outcome = bench.run(f"{MEA}; env ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION; env GTEST_REPEAT", leaking)
    assert outcome.refusal is None
    assert outcome.tests is not None
    assert outcome.tests["scrubbed"] == sorted(leaking)
    assert any("GTEST_FILTER" in line for line in outcome.links[1].evidence)
    assert outcome.log is not None
    assert "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION=(unset)\nGTEST_REPEAT=(unset)" in outcome.log.read_text()


def test_variables_of_this_very_process_do_not_reach_the_tests(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from plumbum import local
    monkeypatch.setenv("GTEST_FILTER", "-*")
    with local.env(GTEST_FILTER="-*"):  # plumbum's copy of the environment, taken at its import
        assert bench.run(MEA).refusal is None


def test_kept_variable_reaches_the_tests(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; env ORT_DISABLE_FLASH_ATTENTION", {"ORT_DISABLE_FLASH_ATTENTION": "1"},
                        env_keep=("ORT_DISABLE_FLASH_ATTENTION",))
    assert outcome.log is not None
    assert "ORT_DISABLE_FLASH_ATTENTION=1" in outcome.log.read_text()
    assert outcome.tests is not None
    assert outcome.tests["scrubbed"] == []


def test_switches_of_the_dispatch_lines_are_turned_on(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; env ORT_UNIT_TEST_MAIN_LOG_LEVEL; env ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO")
    assert outcome.log is not None
    assert "LOG_LEVEL=0\nORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO=1" in outcome.log.read_text()


def test_behind_a_launcher_the_environment_travels_as_words(bench: Bench) -> None:
    # `env -i` drops every variable, as a container does.
    tests = f"FAKE_TESTS={MEA}; env ORT_UNIT_TEST_MAIN_LOG_LEVEL; env GTEST_REPEAT"
    outcome = bench.run("", launcher=("env", "-i", "GTEST_REPEAT=0", tests))
    assert outcome.refusal is None
    assert outcome.log is not None
    assert "LOG_LEVEL=0\nGTEST_REPEAT=(unset)" in outcome.log.read_text()
    assert links(outcome)[4] == "fresh"


# 26
def test_run_in_which_every_test_skips_is_all_skipped_with_reasons(bench: Bench) -> None:
    outcome = bench.run("""
        AttentionTest.One_MEA: open; skip MEA is not compiled
        AttentionTest.Two_MEA: open; skip head size is too large
    """)
    assert outcome.refusal == "all-skipped"
    assert "MEA is not compiled; head size is too large" in outcome.message
    assert sum("MEA is not compiled" in line for line in outcome.links[1].evidence) == 1
    assert links(outcome)[5] == "unproven"


def test_run_in_which_one_test_skips_tells_its_reason(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: skip only for sm_90\\nand newer")
    assert outcome.refusal is None
    assert result(outcome, "AttentionTest.Two_MEA")["reason"] == "only for sm_90 and newer"
    assert "skipped: only for sm_90 and newer" in outcome.links[1].evidence


# 27
def test_process_that_dies_is_crashed_and_names_the_running_test_whatever_report_lies_there(bench: Bench) -> None:
    assert bench.run(MEA).refusal is None
    report = bench.folder / "report" / "gtest.json"
    assert report.exists()
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: mea; segv\nAttentionTest.Three_MEA: mea")
    assert outcome.refusal == "crashed"
    assert "died of SIGSEGV in AttentionTest.Two_MEA" in outcome.message
    assert not report.exists()
    assert not (bench.folder / "junit.xml").exists()
    assert outcome.tests is not None
    assert [test["result"] for test in outcome.tests["results"]] == ["passed", "unfinished", "missing"]
    assert (links(outcome)[5], links(outcome)[6]) == ("unproven", "unproven")


def test_test_that_ends_the_process_with_status_0_is_crashed(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; _exit 0")
    assert outcome.refusal == "crashed"
    assert "ended with status 0 in AttentionTest.One_MEA" in outcome.message


# 28
@pytest.mark.parametrize(("how", "told"), [("segv", "died of SIGSEGV"), ("_exit 3", "ended with status 3")])
def test_process_that_dies_after_the_last_test_is_crashed_at_exit(bench: Bench, how: str, told: str) -> None:
    outcome = bench.run(f"{MEA}\nexit: {how}")
    assert outcome.refusal == "crashed-at-exit"
    assert told in outcome.message
    assert links(outcome)[5] == "unproven"


# 29
def test_run_that_never_opens_the_provider_is_library_not_loaded(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_MEA: mea")
    assert outcome.refusal == "library-not-loaded"
    assert str(bench.provider) in outcome.message
    assert links(outcome)[4] == "unproven"
    assert not any("mapped: " in line for line in outcome.links[0].evidence)


def test_provider_that_lacks_a_library_is_library_not_loaded_and_the_library_is_named(
        bench: Bench, programs: Path) -> None:
    shutil.copy(programs / "needy.so", bench.provider)
    outcome = bench.run(MEA)
    assert outcome.refusal == "library-not-loaded"
    assert "libcudnn.so.9 was not found" in outcome.message
    assert "LD_LIBRARY_PATH" in outcome.message


def test_provider_that_is_no_library_is_library_not_loaded(bench: Bench) -> None:
    bench.provider.write_text("not ELF")
    outcome = bench.run(MEA)
    assert outcome.refusal == "library-not-loaded"
    assert "asked for" in outcome.message


def test_missing_provider_is_library_not_loaded(bench: Bench) -> None:
    bench.provider.unlink()
    assert bench.run(MEA).refusal == "library-not-loaded"


# 30
def test_second_copy_of_the_provider_is_other_library_loaded_and_both_paths_are_shown(bench: Bench) -> None:
    other = bench.folder / "old" / bench.provider.name
    other.parent.mkdir()
    shutil.copy(bench.provider, other)
    outcome = bench.run(f"AttentionTest.One_MEA: open {other}; mea")
    assert outcome.refusal == "other-library-loaded"
    assert str(other) in outcome.message
    assert str(bench.provider) in outcome.message
    assert links(outcome)[4] == "stale"


def test_second_copy_beside_the_right_one_is_other_library_loaded_too(bench: Bench) -> None:
    other = bench.folder / "libonnxruntime_providers_cuda_plugin.so"
    shutil.copy(bench.provider, other)
    outcome = bench.run(f"{MEA}; open {other}")
    assert outcome.refusal == "other-library-loaded"


def test_link_to_the_provider_is_the_provider(bench: Bench) -> None:
    link = bench.folder / "link" / bench.provider.name
    link.parent.mkdir()
    link.symlink_to(bench.provider)
    outcome = bench.run(f"AttentionTest.One_MEA: open {link}; mea")
    assert outcome.refusal is None
    assert outcome.links[0].evidence == (f"mapped: {bench.provider}",)


def test_hard_link_to_the_provider_is_the_provider(bench: Bench) -> None:
    other = bench.folder.parent / bench.provider.name
    other.hardlink_to(bench.provider)
    outcome = bench.run(f"AttentionTest.One_MEA: open {other}; mea")
    assert outcome.refusal is None
    assert outcome.links[0].evidence == (f"mapped: {other}",)


def test_copy_that_only_a_helper_program_opens_is_not_what_the_tests_ran(bench: Bench, tmp_path: Path) -> None:
    old = tmp_path / "old" / bench.provider.name
    old.parent.mkdir()
    shutil.copy(bench.provider, old)
    shutil.copy(bench.binary, tmp_path / "helper")
    outcome = bench.run(f"{MEA}; shell FAKE_TESTS='A.b: open {old}' {tmp_path}/helper")
    assert outcome.refusal is None


def test_provider_that_is_replaced_while_tests_run_is_library_changed(bench: Bench, tmp_path: Path) -> None:
    shutil.copy(bench.provider, tmp_path / "new.so")
    (tmp_path / "here").symlink_to(bench.folder)
    outcome = bench.run(f"{MEA}; shell mv {tmp_path}/new.so {tmp_path}/here/{bench.provider.name}")
    assert outcome.refusal == "library-changed"
    assert outcome.links[0].evidence[1:] == (f"mapped: {bench.provider}",)


def test_provider_that_is_written_while_tests_run_is_library_changed(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; append {bench.provider}")
    assert outcome.refusal == "library-changed"
    assert links(outcome)[4] == "stale"


def test_static_executable_is_judged_itself(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_MEA: mea", provider=None)
    assert outcome.refusal is None
    assert outcome.links[0].evidence == (f"mapped: {bench.binary}",)


def test_static_executable_that_is_written_while_it_runs_is_library_changed(bench: Bench) -> None:
    outcome = bench.run(f"AttentionTest.One_MEA: mea; touch {bench.binary}", provider=None)
    assert outcome.refusal == "library-changed"


# 31
def test_middle_test_on_another_path_is_other_path_ran_and_is_named(bench: Bench) -> None:
    outcome = bench.run("""
        AttentionTest.One_MEA: open; mea
        AttentionTest.Two_MEA: unfused
        AttentionTest.Three_MEA: sdpa EFFICIENT_ATTENTION
    """)
    assert outcome.refusal == "other-path-ran"
    assert "AttentionTest.Two_MEA ran unfused, not mea" in outcome.message
    assert "Three" not in outcome.message
    assert links(outcome)[6] == "stale"


def test_test_that_dispatches_two_paths_is_other_path_ran(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_MEA: open; mea; unfused")
    assert outcome.refusal == "other-path-ran"
    assert "ran mea+unfused" in outcome.message


def test_users_table_decides_which_path_is_right(bench: Bench) -> None:
    tests = f"{MEA}\nAttentionTest.Two_MEA: unfused"
    assert bench.run(tests, expected_paths=(("*Two*", "any"), ("*", "mea"))).refusal is None
    assert bench.run(tests, expected_paths=(("*", "flash"),)).refusal == "other-path-ran"


def test_cpu_test_that_dispatches_a_kernel_is_other_path_ran(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA_CPU: mea")
    assert "AttentionTest.Two_MEA_CPU ran mea, not none" in outcome.message


@pytest.mark.parametrize(("name", "capability", "quick", "refusal"), [
    ("FlashEmpty_FP16_CUDA", 90, False, "other-path-ran"), ("FlashEmpty_BF16_CUDA", 80, False, "other-path-ran"),
    ("FlashEmpty_FP32_CUDA", 90, False, None), ("FlashEmpty_FP16_CUDA", 75, False, None),
    ("FlashEmpty_FP16_CUDA", 90, True, None),
])
def test_flash_is_expected_only_where_flash_can_run(bench: Bench, gpu: Callable[[int], None], name: str,
                                                    capability: int, quick: bool, refusal: str | None) -> None:
    gpu(capability)
    outcome = bench.run(f"{MEA}\nAttentionTest.{name}: mea", quick_build=quick)
    assert outcome.refusal == refusal


# 44
def test_test_that_passes_without_a_dispatch_line_is_path_unknown(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: open")
    assert outcome.refusal == "path-unknown"
    assert "AttentionTest.Two_MEA" in outcome.message
    assert links(outcome)[6] == "unproven"


def test_run_without_any_memory_efficient_dispatch_is_path_unknown(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.Any: open\nAttentionTest.Other: flash")
    assert outcome.refusal == "path-unknown"


# 32
def test_other_architectures_and_units_are_listed_as_untested(bench: Bench, gpu: Callable[[int], None]) -> None:
    gpu(90)
    code = DeviceCode({"fmha_sm80": ("sm_80", "sm_90"), "fmha_sm75": ("sm_75",), "fmha_sm70": ("sm_70",)})
    outcome = bench.run(MEA, code=code)
    assert outcome.links[3].verdict == "fresh"
    assert outcome.links[3].evidence == (
        "NVIDIA H200 (sm_90, GPU-1) ran fmha_sm80: sm_90 (cubin)",
        "untested: fmha_sm75, fmha_sm70 (this GPU never dispatches to them)", "untested: sm_80 of fmha_sm80")


def test_required_architecture_that_did_not_run_breaks_link_7(bench: Bench, gpu: Callable[[int], None]) -> None:
    gpu(90)
    code = DeviceCode({"fmha_sm80": ("sm_80", "sm_90")})
    assert bench.run(MEA, code=code, require_archs=("9.0",)).links[3].verdict == "fresh"
    link = bench.run(MEA, code=code, require_archs=("sm_90", "sm_80")).links[3]
    assert (link.verdict, link.evidence[-1]) == ("unproven", "required and not run: sm_80")


def test_unit_without_code_for_the_gpu_is_stale_at_link_7(bench: Bench, gpu: Callable[[int], None]) -> None:
    gpu(90)
    assert bench.run(MEA, code=DeviceCode({"fmha_sm80": ("sm_80",)})).links[3].verdict == "stale"


def test_failed_test_is_tests_failed_and_breaks_no_link(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; fail wrong value\\nsecond line")
    assert outcome.refusal == "tests-failed"
    assert [links(outcome)[number] for number in (4, 5, 6)] == ["fresh", "fresh", "fresh"]
    assert "wrong value\nsecond line" in str(result(outcome, "AttentionTest.One_MEA_FP16_CUDA")["failures"][0])


def test_failed_set_up_of_a_suite_is_tests_failed(bench: Bench, programs: Path) -> None:
    shutil.copy(programs / "shapes", bench.binary)
    outcome = bench.run("", {"FAKE_BREAK": "1"}, provider=None, patterns=("BrokenSetUp.*", "Typed/*"))
    assert outcome.refusal == "tests-failed"
    assert "BrokenSetUp (set-up or tear-down)" in outcome.message


@pytest.mark.parametrize(("doing", "told"), [
    ("truncate", "not complete JSON"), ("write {}", "lacks what gtest writes"), ("write  ", "is empty"),
    ("write [1]", "lacks what gtest writes"),
    ('write {"tests": 7, "testsuites": []}', "says 7 tests and holds 0"),
    ('write {"testsuites": [{"name": "A", "testsuite": [{"name": "x", "result": "COMPLETED"}]}]}', "never began"),
])
def test_report_that_cannot_be_believed_is_report_invalid(bench: Bench, doing: str, told: str) -> None:
    outcome = bench.run(f"{MEA}\nmain: {doing}")
    assert outcome.refusal == "report-invalid"
    assert told in outcome.message


def test_run_without_a_report_is_report_missing(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nmain: unlink")
    assert outcome.refusal == "report-missing"


def test_test_absent_from_the_report_is_some_missing(bench: Bench) -> None:
    report = ('write {"testsuites": [{"name": "AttentionTest", "testsuite": '
              '[{"name": "One_MEA_FP16_CUDA", "status": "RUN", "result": "COMPLETED"}]}]}')
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: mea\nmain: {report}")
    assert outcome.refusal == "some-missing"
    assert "AttentionTest.Two_MEA" in outcome.message


def test_junit_file_tells_every_test(bench: Bench) -> None:
    bench.run(f"{MEA}\nAttentionTest.Two_MEA: bytes; fail bell \x07\nAttentionTest.Three_MEA: skip why <&>")
    root = ElementTree.parse(bench.folder / "junit.xml").getroot()
    assert {case.get("name"): [child.tag for child in case] for case in root.iter("testcase")} == {
        "One_MEA_FP16_CUDA": [], "Two_MEA": ["failure", "failure"], "Three_MEA": ["skipped"]}
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")


def test_words_come_in_the_order_of_the_design(bench: Bench) -> None:
    # Never opened, skipped, failed and on another path at once: the first of the list decides, all are told.
    outcome = bench.run("AttentionTest.One_MEA: unfused; fail x\nAttentionTest.Two_MEA: unfused")
    assert outcome.refusal == "library-not-loaded"
    assert links(outcome)[6] == "stale"


def test_crash_before_any_test_could_open_the_provider_is_crashed(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_CPU: out x\nAttentionTest.Two_MEA: abort")
    assert outcome.refusal == "crashed"
    assert links(outcome)[4] == "unproven"


def test_crash_after_a_test_that_should_have_opened_the_provider_is_library_not_loaded(bench: Bench) -> None:
    assert bench.run("AttentionTest.One_MEA: mea\nAttentionTest.Two_MEA: abort").refusal == "library-not-loaded"


def test_newer_gtests_skip_messages_are_told_without_their_place(bench: Bench) -> None:
    report = ('write {"testsuites": [{"name": "AttentionTest", "testsuite": [{"name": "One_MEA", "status": "RUN", '
              '"result": "SKIPPED", "skipped": [{"message": "/a/b.cc:48\\u000aMEA is not compiled"}]}]}]}')
    outcome = bench.run(f"AttentionTest.One_MEA: open; skip other\nmain: {report}")
    assert result(outcome, "AttentionTest.One_MEA")["reason"] == "MEA is not compiled"


def test_every_finding_of_every_refusal_has_evidence(bench: Bench) -> None:
    for tests in (MEA, "AttentionTest.One_CPU: out x\nAttentionTest.Two_MEA: abort",
                  "AttentionTest.One_MEA: skip x", "x.y: _exit 0"):
        outcome = bench.run(tests)
        assert all(link.evidence for link in outcome.links), tests
        assert [link.number for link in outcome.links] == [4, 5, 6, 7]
        assert all(link.remedy for link in outcome.links if link.verdict != "fresh")


def test_readme_explains_every_refusal_in_the_order_in_which_they_are_judged() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    section = readme.partition("## When `test_mea` refuses\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", section, re.M) == ["not-fresh", *REFUSALS]
