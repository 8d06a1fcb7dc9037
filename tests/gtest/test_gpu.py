"""The GPU: none, one that is no use, one without matching code. Concluded from the test process alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.gtest import device
from tasks.gtest.device import code_for, is_named, says_no_gpu
from tests.gtest.conftest import Bench

NO_DEVICE = ("CUDA failure 100: no CUDA-capable device is detected ; GPU=-1 ; hostname=h ; "
             "file=cuda_call.cc ; expr=cudaGetDeviceCount(&n)")
OLD_DRIVER = "CUDA failure 35: CUDA driver version is insufficient for CUDA runtime version ; GPU=-1"


def skipping(text: str) -> str:
    return f"AttentionTest.One_MEA: open; log {text.replace(';', ',')}; skip CUDA provider is not available"


def test_process_that_finds_no_device_is_no_gpu_rather_than_all_skipped(bench: Bench) -> None:
    outcome = bench.run(skipping(NO_DEVICE))
    assert outcome.refusal == "no-gpu"
    assert "CUDA failure 100" in outcome.message
    assert {link.number: link.verdict for link in outcome.links} == {
        4: "fresh", 5: "unproven", 6: "unproven", 7: "unproven"}


def test_test_that_finds_no_device_returns_and_passes_is_no_gpu(bench: Bench) -> None:
    assert bench.run(f"AttentionTest.One_MEA: open; log {NO_DEVICE.replace(';', ',')}").refusal == "no-gpu"


def test_test_that_fails_since_there_is_no_device_is_no_gpu(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_MEA: open; mea; log CUDA error cudaErrorNoDevice:no device; fail x")
    assert outcome.refusal == "no-gpu"


def test_reason_of_a_skip_alone_tells_that_there_is_no_gpu(bench: Bench) -> None:
    assert bench.run("AttentionTest.One_MEA: open; skip no CUDA device").refusal == "no-gpu"


def test_hidden_gpu_is_no_gpu_and_the_variable_is_named(bench: Bench) -> None:
    outcome = bench.run(skipping(NO_DEVICE), {"CUDA_VISIBLE_DEVICES": "-1"})
    assert "unset CUDA_VISIBLE_DEVICES (it is '-1')" in outcome.message
    assert outcome.tests is not None
    assert outcome.tests["environment"] == {"CUDA_VISIBLE_DEVICES": "-1"}


@pytest.mark.parametrize(("driver", "refusal"), [(True, "gpu-unusable"), (False, "no-gpu")])
def test_old_driver_is_gpu_unusable_and_without_any_driver_no_gpu(
        bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: bool, refusal: str) -> None:
    version = tmp_path / "version"
    monkeypatch.setattr(device, "_DRIVER", version)
    if driver:
        version.write_text("NVRM version: 470")
    assert bench.run(skipping(OLD_DRIVER)).refusal == refusal


@pytest.mark.parametrize("text", [
    "CUDA failure 2: out of memory", "CUDA failure 209: no kernel image is available for execution on the device",
    "Failed to allocate memory for requested buffer of size 1024", "CUDA error cudaErrorDevicesUnavailable: busy",
])
def test_gpu_that_cannot_run_it_is_gpu_unusable(bench: Bench, text: str) -> None:
    assert bench.run(f"AttentionTest.One_MEA: open; mea; log {text}; fail x").refusal == "gpu-unusable"


def test_cuda_error_that_a_passing_test_provokes_is_no_trouble(bench: Bench) -> None:
    assert bench.run(f"AttentionTest.One_MEA: open; mea; log {NO_DEVICE.replace(';', ',')}").refusal is None


def test_kernel_that_breaks_is_the_edits_fault(bench: Bench) -> None:
    tests = "AttentionTest.One_MEA: open; mea; log CUDA failure 700: an illegal memory access was encountered; fail x"
    assert bench.run(tests).refusal == "tests-failed"


def test_mea_that_is_compiled_out_is_not_taken_for_a_missing_gpu(bench: Bench) -> None:
    outcome = bench.run("AttentionTest.One_MEA: open; skip Memory efficient attention is not compiled")
    assert outcome.refusal == "all-skipped"


@pytest.mark.parametrize(("reason", "expected"), [
    ("no CUDA device", True), ("CUDA execution provider is not available", True), ("No usable GPU", True),
    ("needs an NVIDIA GPU, none was found: GPU missing", True), ("MEA not compiled", False), ("requires sm_80", False),
])
def test_reasons_for_skipping_are_told_apart(reason: str, expected: bool) -> None:
    assert says_no_gpu(reason) is expected


@pytest.mark.parametrize(("archs", "capability", "code"), [
    (("sm_80", "sm_90"), 90, "sm_90"), (("sm_80",), 86, "sm_80"), (("sm_86",), 80, None), (("sm_80",), 90, None),
    (("sm_80", "compute_80"), 90, "compute_80"), (("compute_75", "compute_80"), 90, "compute_80"),
    (("sm_80", "compute_75"), 89, "sm_80"), (("sm_90a",), 90, "sm_90a"), (("sm_90a",), 100, None),
    (("compute_90a",), 100, None), (("sm_100f",), 103, "sm_100f"), (("sm_120",), 120, "sm_120"),
    (("compute_120",), 90, None), ((), 90, None), (("nonsense",), 90, None),
])
def test_gpu_runs_the_code_that_nvidias_compatibility_rules_allow(
        archs: tuple[str, ...], capability: int, code: str | None) -> None:
    assert code_for(archs, capability) == code


@pytest.mark.parametrize("word", ["90", "9.0", "sm_90", "sm_90a", "compute_90"])
def test_required_architecture_may_be_written_in_any_usual_way(word: str) -> None:
    assert is_named(word, 90)
    assert not is_named(word, 80)


def test_probe_of_a_machine_without_a_driver_names_no_gpu(bench: Bench) -> None:
    from tasks.gtest.device import probe
    from tasks.gtest.environment import prepare
    found = probe(prepare({"PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": "-1"}, (), (), "m"), bench.folder)
    assert found is None
