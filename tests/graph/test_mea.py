"""`doit test_mea` on the graph: it builds first, judges first, and says every refusal in one word."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support import MINIORT, Tree

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


def test_a_crash_names_the_test(make_tree: Tree) -> None:
    shutil.copy(MINIORT / TEST_SOURCE, make_tree.root / TEST_SOURCE)
    word, text = refusal(make_tree, env={"MINIORT_TEST_CRASH": "AttentionTest.Attention_LongKV_MEA_FP32_CUDA"})
    assert word in ("crashed", "no-gpu"), text
