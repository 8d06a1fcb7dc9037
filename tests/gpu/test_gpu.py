"""What only a GPU shows: all seven links, numbers that flip, and the refusals that need a real device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import GENERATORS
from tests.gpu.trees import KERNEL, LAUNCH, OLD, GpuTree, results

pytestmark = pytest.mark.gpu
TreeFor = Callable[..., GpuTree]
ALL_FRESH = ["fresh"] * 7
MASKED = "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION"


def other_capability(capability: int) -> int:
    """One whose machine code the GPU at hand cannot run, and whose PTX it can (of sm_80 and newer)."""
    return 80 if capability // 10 != 8 else 75


@pytest.mark.parametrize("generator", GENERATORS)
def test_an_edit_is_followed_through_all_seven_links(tree_for: TreeFor, generator: str) -> None:
    gpu = tree_for(generator)
    assert gpu.test().verdicts == ALL_FRESH
    # The false green that all this is about: a real edit, an old time, a plain build, and green tests.
    gpu.scale(2.0, mtime=OLD)
    assert gpu.tree.make("onnxruntime_provider_test").status == 0
    assert gpu.by_hand().status == 0
    assert gpu.tree.verdict() == "stale"
    edited = gpu.test()
    assert edited.refusal == "tests-failed", results(edited)
    assert edited.verdicts == ALL_FRESH
    gpu.scale(1.0)
    back = gpu.test()
    assert back.refusal is None, results(back)
    assert back.verdicts == ALL_FRESH
    assert gpu.tree.judge()["links"][6]["verdict"] == "fresh"  # status still shows it


@pytest.mark.parametrize("define", ["MINIORT_RDC=ON", "MINIORT_STATIC_PROVIDER=ON", "MINIORT_PLUGIN_PROVIDER=ON"])
def test_other_shapes_of_a_provider_flip_as_well(tree_for: TreeFor, define: str) -> None:
    gpu = tree_for("Unix Makefiles", define)
    assert gpu.test().verdicts == ALL_FRESH
    gpu.scale(2.0)
    edited = gpu.test()
    assert edited.refusal == "tests-failed", results(edited)
    assert edited.verdicts == ALL_FRESH


def test_an_edit_without_machine_code_is_said_and_changes_no_result(tree_for: TreeFor) -> None:
    gpu = tree_for()
    before = gpu.test()
    gpu.replace("kernel_forward", "// The forward kernel:", "// The forward kernel, said otherwise:")
    after = gpu.test()
    assert after.verdicts == ALL_FRESH
    assert after.report["provider"]["sha256"] is not None
    states = {unit["name"]: unit["device_code"] for unit in after.report["units"]}
    assert states["fmha_sm80"] == "unchanged", after.text
    assert before.evidence(7) == after.evidence(7)


def test_a_fallback_that_masks_the_kernel_is_refused(tree_for: TreeFor) -> None:
    gpu = tree_for()
    scrubbed = gpu.test(env={MASKED: "1"})
    assert scrubbed.refusal is None, results(scrubbed)
    assert MASKED in scrubbed.evidence(5)
    kept = gpu.test(f"test_env_keep={MASKED}", "test_filter=AttentionTest.*MEA*", env={MASKED: "1"})
    assert kept.refusal == "other-path-ran", results(kept)
    assert kept.verdicts[5] == "stale"


def test_a_provider_for_another_architecture_is_refused(tree_for: TreeFor, capability: int) -> None:
    other = other_capability(capability)
    gpu = tree_for("Ninja", f"CMAKE_CUDA_ARCHITECTURES={other}-real")
    tested = gpu.test()
    assert tested.refusal == "gpu-unusable", results(tested)
    assert "no kernel image" in tested.text
    assert tested.verdicts[6] != "fresh"
    assert f"sm_{other}" in tested.evidence(7)


def test_ptx_that_the_driver_compiles_is_matching_code(tree_for: TreeFor) -> None:
    gpu = tree_for("Ninja", "CMAKE_CUDA_ARCHITECTURES=75-virtual")
    tested = gpu.test()
    assert tested.verdicts == ALL_FRESH, results(tested)
    assert "compute_75 (PTX" in tested.evidence(7)


def test_architectures_that_did_not_run_are_named_and_may_be_required(tree_for: TreeFor, capability: int) -> None:
    other = other_capability(capability)
    gpu = tree_for("Ninja", f"CMAKE_CUDA_ARCHITECTURES={other}-real;{capability}-real")
    tested = gpu.test()
    assert tested.verdicts == ALL_FRESH, results(tested)
    assert f"untested: sm_{other} of fmha_sm" in tested.evidence(7)
    required = gpu.test(f"require_archs={other}")
    assert required.refusal is None
    assert required.verdicts[6] == "unproven"
    assert required.status == 1


def test_a_launch_that_fails_for_shared_memory_is_no_pass(tree_for: TreeFor) -> None:
    gpu = tree_for()
    asks_too_much = "attention_kernel_batched<Attention><<<grid, block, 1 << 20, params.stream>>>(p);"
    gpu.replace("fmha_launch_template", LAUNCH, asks_too_much)
    tested = gpu.test()
    assert tested.refusal == "tests-failed", results(tested)
    assert "invalid argument" in (gpu.tree.build_dir / ".fmha" / "tests.xml").read_text()


def test_a_stale_provider_from_another_place_is_refused(tree_for: TreeFor, tmp_path: Path) -> None:
    gpu = tree_for()
    gpu.scale(2.0)
    assert gpu.test().refusal == "tests-failed"
    elsewhere = gpu.copy_elsewhere(tmp_path / "elsewhere")
    gpu.scale(1.0)
    tested = gpu.test(f"test_binary={elsewhere}")
    assert tested.refusal == "other-library-loaded", results(tested)
    assert tested.verdicts[3] == "stale"
    assert str(elsewhere.parent) in tested.text
    assert gpu.test().verdicts == ALL_FRESH


def test_a_hung_kernel_is_ended_by_the_limit(tree_for: TreeFor) -> None:
    gpu = tree_for()
    gpu.replace("kernel_forward", KERNEL, f"for (;;) __nanosleep(1000);\n  {KERNEL}")
    tested = gpu.test("test_timeout_s=5")
    assert tested.refusal == "timed-out", results(tested)
    assert "MEA" in tested.text
    gpu.replace("kernel_forward", f"for (;;) __nanosleep(1000);\n  {KERNEL}", KERNEL)
    assert gpu.test().verdicts == ALL_FRESH  # the GPU is free again


def test_a_gpu_that_is_hidden_is_no_gpu(tree_for: TreeFor) -> None:
    tested = tree_for().test(env={"CUDA_VISIBLE_DEVICES": ""})
    assert tested.refusal == "no-gpu", results(tested)
    assert "CUDA_VISIBLE_DEVICES" in tested.text
