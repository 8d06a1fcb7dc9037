"""`doit test_mea` on the graph: it builds first, judges first, and says every refusal in one word."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import Tree

TEST_SOURCE = Path("onnxruntime/test/providers/attention_op_test.cc")


def refusal(tree: Tree, *arguments: str, env: dict[str, str] | None = None) -> tuple[str | None, str]:
    done = tree.doit("test_mea", *arguments, env=env)
    report = tree.report()
    assert report["task"] == "test_mea"
    assert done.status == (0 if report["verdict"] == "fresh" and report["refusal"] is None else 1), done.text
    return report["refusal"], done.text


def test_every_test_skipped_without_a_gpu_is_no_gpu(tree: Tree) -> None:
    word, text = refusal(tree)
    assert word == "no-gpu", text
    report = tree.report()
    assert [link["verdict"] for link in report["links"]][:4] == ["fresh"] * 4
    assert report["verdict"] == "unproven"
    assert report["links"][3]["evidence"][0].endswith("libonnxruntime_providers_cuda.so")


def test_a_filter_that_matches_nothing_names_its_neighbours(make_tree: Tree) -> None:
    word, text = refusal(make_tree, "test_filter=AttentionTest.Attention_Casual*")
    assert word == "no-tests-matched"
    assert "AttentionTest.Attention_Causal" in text


def test_the_wrong_binary_is_told_where_the_tests_are(make_tree: Tree) -> None:
    word, text = refusal(make_tree, "test_binary=onnxruntime_test_all")
    assert word == "wrong-binary"
    assert "onnxruntime_provider_test" in text


def test_an_edited_test_is_built_and_run_as_edited(tree: Tree) -> None:
    source = tree.root / TEST_SOURCE
    source.write_text(source.read_text().replace("_LongKV_MEA_", "_LongKVRenamed_MEA_"))
    word, text = refusal(tree, "test_filter=AttentionTest.*LongKVRenamed*")
    assert word == "no-gpu", text
    assert "LongKVRenamed" in text


def test_an_edited_header_is_built_before_the_tests_run(make_tree: Tree) -> None:
    make_tree.edit()
    word, text = refusal(make_tree)
    assert word == "no-gpu", text
    assert make_tree.is_current()


def test_with_single_the_build_tool_looks_but_nothing_is_forced(make_tree: Tree) -> None:
    make_tree.edit()
    done = make_tree.doit("-s", "test_mea")
    assert done.status == 1
    assert make_tree.report()["refusal"] == "not-fresh"
    assert make_tree.report()["verdict"] == "stale"
    assert not make_tree.is_current()


def test_a_test_that_does_not_compile_is_not_fresh_and_its_error_is_shown(make_tree: Tree) -> None:
    source = make_tree.root / TEST_SOURCE
    source.write_text(source.read_text() + "\n#error test_is_broken\n")
    done = make_tree.doit("test_mea")
    assert done.status == 1
    assert make_tree.report()["refusal"] == "not-fresh"
    assert "test_is_broken" in done.text


def test_what_a_run_proved_is_shown_until_something_changes(make_tree: Tree) -> None:
    refusal(make_tree)
    assert make_tree.judge()["links"][3]["verdict"] == "fresh"
    make_tree.edit()
    assert make_tree.doit("rebuild_fmha").status == 0
    link = make_tree.judge()["links"][3]
    assert link["verdict"] == "unproven"
    assert "not run" in link["evidence"][0]


LONG = "AttentionTest.Attention_LongKV_MEA_FP32_CUDA"


@pytest.fixture(scope="session")
def own_runner_tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """A tree whose tests run without GoogleTest."""
    tree = Tree(tmp_path_factory.mktemp("own") / "ort", "Ninja", ["MINIORT_HOST_ONLY=ON", "MINIORT_GTEST=OWN"])
    tree.configure()
    return tree


@pytest.fixture(params=["GoogleTest", "own runner"])
def framework(request: pytest.FixtureRequest) -> Tree:
    """A tree with the real GoogleTest, and one without."""
    name = "make_tree" if request.param == "GoogleTest" else "own_runner_tree"
    tree: Tree = request.getfixturevalue(name)
    return tree


@pytest.mark.parametrize(("accident", "arguments", "told"), [
    ({"MINIORT_TEST_CRASH": LONG}, (), f"crashed: The test process died of SIGABRT in {LONG}"),
    ({"MINIORT_TEST_HANG": LONG}, ("test_timeout_s=1",), f"timed-out: No test began or ended for 1 s "
                                                         f"(test_timeout_s): in {LONG}"),
    ({"MINIORT_CRASH_AT_EXIT": "1"}, (), "crashed-at-exit: All tests ended, then the process died of SIGABRT"),
], ids=["crash", "hang", "crash at exit"])
def test_an_accident_is_told_beside_the_missing_gpu(framework: Tree, accident: dict[str, str],
                                                    arguments: tuple[str, ...], told: str) -> None:
    word, text = refusal(framework, *arguments, env=accident)
    assert word == "no-gpu", text
    report = framework.report()
    assert report["links"][3]["verdict"] == "fresh"
    assert report["links"][4]["evidence"][0].startswith(told)


def test_a_test_that_returns_at_once_is_never_passed(framework: Tree) -> None:
    word, text = refusal(framework, f"test_filter={LONG}", env={"MINIORT_TEST_RETURN_EARLY": LONG})
    assert word == "library-not-loaded", text
    report = framework.report()
    assert report["tests"]["counts"]["passed"] == 1
    assert [link["verdict"] for link in report["links"][3:]] == ["unproven", "fresh", "unproven", "unproven"]


def test_a_misspelt_filter_and_the_wrong_binary_are_told(framework: Tree) -> None:
    assert refusal(framework, "test_filter=AttentionTest.Attention_Casual*")[0] == "no-tests-matched"
    assert refusal(framework, "test_binary=onnxruntime_test_all")[0] == "wrong-binary"


# A GoogleTest program beside the provider that does what FAKE_TESTS says: what a GPU would show is shown without one.


@pytest.fixture
def scripted(make_tree: Tree, programs: Path) -> Tree:
    """A tree whose build directory holds the program, and no kept run."""
    shutil.copy(programs / "scripted", make_tree.build_dir / "scripted")
    shutil.rmtree(make_tree.build_dir / ".fmha" / "runs", ignore_errors=True)
    return make_tree


def run_script(tree: Tree, *tests: str) -> dict[str, Any]:
    """`test_mea` on these tests of `Suite.name: actions` each."""
    refusal(tree, "test_binary=scripted", "test_filter=AttentionTest.*",
            env={"FAKE_TESTS": "\n".join(f"AttentionTest.{test}" for test in tests)})
    return tree.report()


def test_a_result_that_another_provider_turns_is_a_flip_in_report_and_history(scripted: Tree) -> None:
    first = run_script(scripted, "One_MEA: open; mea; fail x", "Two_MEA: open; mea")
    assert first["tests"]["flips"]["text"] == ["no earlier test run is kept: nothing to compare the results with"]
    scripted.edit()
    flips = run_script(scripted, "One_MEA: open; mea", "Two_MEA: open; mea")["tests"]["flips"]
    assert flips["flips"] == [{"test": "AttentionTest.One_MEA", "was": "FAIL", "now": "PASS", "changed": ["provider"]}]
    assert flips["against"]["provider"] == first["provider"]["sha256"]
    assert not flips["same_code"]
    done = scripted.doit("flips")
    assert done.status == 0, done.text
    assert "1 FAIL, 1 PASS" in done.out
    assert "FAIL->PASS AttentionTest.One_MEA" in done.out
    document = json.loads(scripted.doit("flips", "--json").out)
    assert (document["schema"], document["task"]) == (1, "flips")
    assert [run["results"]["AttentionTest.One_MEA"] for run in document["runs"]] == ["FAIL", "PASS"]


def test_an_edit_that_moves_no_result_is_told_as_such(scripted: Tree) -> None:
    run_script(scripted, "One_MEA: open; mea")
    header = scripted.header("kernel_forward")
    header.write_text(header.read_text() + "static int unused_but_kept __attribute__((used)) = 3;\n")
    flips = run_script(scripted, "One_MEA: open; mea")["tests"]["flips"]
    assert flips["text"] == ["the provider changed, no result changed (1 test)"]


def test_the_same_provider_with_another_result_is_flaky(scripted: Tree) -> None:
    run_script(scripted, "One_MEA: open; mea")
    flips = run_script(scripted, "One_MEA: open; mea; fail x")["tests"]["flips"]
    assert flips["flips"] == []
    assert [change["test"] for change in flips["flaky"]] == ["AttentionTest.One_MEA"]


def test_an_edited_test_is_no_flip_of_the_kernel(scripted: Tree) -> None:
    run_script(scripted, "One_MEA: open; mea; fail x")
    with (scripted.build_dir / "scripted").open("ab") as file:
        file.write(b"edited")
    flips = run_script(scripted, "One_MEA: open; mea")["tests"]["flips"]
    assert flips["flips"] == []
    assert [change["changed"] for change in flips["edited"]] == [["tests"]]


@pytest.mark.parametrize("tests", [
    ("One_MEA: open", "Two_MEA: open"),
    ("One_MEA: open; log CUDA failure 100: no CUDA-capable device is detected; skip no CUDA device",),
    ("One_MEA: mea",),
], ids=["no dispatch", "no GPU", "not mapped"])
def test_a_run_that_shows_nothing_of_the_kernel_is_not_kept(scripted: Tree, tests: tuple[str, ...]) -> None:
    assert "flips" not in run_script(scripted, *tests)["tests"]
    done = scripted.doit("flips")
    assert done.status == 0
    assert "no test run is kept" in done.out


def test_a_pass_by_another_path_is_no_pass(scripted: Tree) -> None:
    run_script(scripted, "One_MEA: open; mea; fail x", "Two_MEA: open; mea")
    scripted.edit()
    flips = run_script(scripted, "One_MEA: open; unfused", "Two_MEA: open; mea")["tests"]["flips"]
    assert [(change["was"], change["now"]) for change in flips["flips"]] == [("FAIL", "OTHER-PATH")]


def test_a_provider_that_changes_while_the_tests_run_is_library_changed(scripted: Tree) -> None:
    provider = scripted.build_dir / "libonnxruntime_providers_cuda.so"
    report = run_script(scripted, f"One_MEA: open; mea; append {provider}")
    assert report["refusal"] == "library-changed"
    assert report["links"][3]["verdict"] == "stale"
    assert scripted.judge()["links"][2]["verdict"] == "unproven"


def test_a_second_copy_that_the_tests_open_is_other_library_loaded(scripted: Tree) -> None:
    other = scripted.root / "old" / "libonnxruntime_providers_cuda.so"
    other.parent.mkdir(exist_ok=True)
    shutil.copy(scripted.build_dir / other.name, other)
    report = run_script(scripted, f"One_MEA: open {other}; mea")
    assert report["refusal"] == "other-library-loaded"
    evidence = "\n".join(report["links"][3]["evidence"])
    assert str(other) in evidence
    assert str(scripted.build_dir / other.name) in evidence
    other.unlink()


def test_variables_of_the_shell_that_steer_the_tests_are_scrubbed_and_said(scripted: Tree) -> None:
    refusal(scripted, "test_binary=scripted", "test_filter=AttentionTest.*",
            env={"FAKE_TESTS": "AttentionTest.One_MEA: open; mea", "GTEST_FILTER": "-*",
                 "ORT_DISABLE_FLASH_ATTENTION": "1"})
    report = scripted.report()
    assert report["refusal"] is None
    assert report["tests"]["scrubbed"] == ["GTEST_FILTER", "ORT_DISABLE_FLASH_ATTENTION"]
    assert "not passed on: GTEST_FILTER, ORT_DISABLE_FLASH_ATTENTION" in report["links"][4]["evidence"]
