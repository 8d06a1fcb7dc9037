"""Hangs, floods, forks, Ctrl-C, programs that are none: never a traceback, never a hang, never green."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.gtest import Outcome
from tests.gtest.conftest import Bench

MEA = "AttentionTest.One_MEA_FP16_CUDA: open; mea"


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def daemon_of(file: Path) -> int:
    return int(file.read_text())


# 33
def test_test_that_never_ends_is_timed_out_and_named_and_its_tree_is_ended(bench: Bench, tmp_path: Path) -> None:
    began = time.monotonic()
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: mea; daemon {tmp_path}/pid; hang", test_timeout_s=0.4)
    assert time.monotonic() - began < 5
    assert outcome.refusal == "timed-out"
    assert "in AttentionTest.Two_MEA" in outcome.message
    assert "test_timeout_s" in outcome.message
    assert is_gone(daemon_of(tmp_path / "pid"))


def test_run_that_takes_too_long_is_timed_out_though_each_test_is_quick(bench: Bench) -> None:
    tests = "\n".join(f"AttentionTest.T{number}_MEA: open; mea; sleep 100" for number in range(20))
    outcome = bench.run(tests, run_timeout_s=0.5)
    assert outcome.refusal == "timed-out"
    assert "run_timeout_s" in outcome.message


def test_process_that_ignores_sigterm_is_ended_all_the_same(bench: Bench) -> None:
    began = time.monotonic()
    outcome = bench.run(f"{MEA}; deaf; hang", test_timeout_s=0.3)
    assert time.monotonic() - began < 6
    assert outcome.refusal == "timed-out"
    assert outcome.tests is not None
    assert outcome.tests["status"] == -signal.SIGKILL


def test_hang_after_the_last_test_is_timed_out_and_named(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nexit: hang", test_timeout_s=0.4)
    assert outcome.refusal == "timed-out"
    assert "after AttentionTest.One_MEA_FP16_CUDA" in outcome.message


def test_child_that_outlives_the_tests_and_holds_the_pipe_stops_nothing_and_is_ended(
        bench: Bench, tmp_path: Path) -> None:
    began = time.monotonic()
    outcome = bench.run(f"{MEA}; daemon {tmp_path}/pid")
    assert outcome.refusal is None
    assert time.monotonic() - began < 4
    assert is_gone(daemon_of(tmp_path / "pid"))


def test_child_that_goes_on_writing_when_the_tests_have_ended_stops_nothing(bench: Bench) -> None:
    began = time.monotonic()
    outcome = bench.run(f"{MEA}; chatter")
    assert outcome.refusal is None
    assert time.monotonic() - began < 6


def interrupt_in(seconds: float) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_the_tree_and_is_interrupted(bench: Bench, tmp_path: Path) -> None:
    interrupt_in(0.6)
    outcome = bench.run(f"{MEA}; daemon {tmp_path}/pid; hang")
    assert outcome.refusal == "interrupted"
    assert "in AttentionTest.One_MEA_FP16_CUDA" in outcome.message
    assert is_gone(daemon_of(tmp_path / "pid"))


def test_second_ctrl_c_while_the_tree_is_ended_is_interrupted_as_well(bench: Bench, tmp_path: Path) -> None:
    interrupt_in(0.6)
    interrupt_in(1.0)
    outcome = bench.run(f"{MEA}; deaf; daemon {tmp_path}/pid; hang")
    assert outcome.refusal == "interrupted"
    assert is_gone(daemon_of(tmp_path / "pid"))


def test_ctrl_c_while_tests_are_listed_is_interrupted(bench: Bench) -> None:
    interrupt_in(0.4)
    outcome = bench.run(f"{MEA}\nlist: hang")
    assert outcome.refusal == "interrupted"


def test_flood_of_output_neither_hides_the_tests_nor_fills_the_disk(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; flood 200\nAttentionTest.Two_MEA: mea")
    assert outcome.refusal is None
    assert outcome.log is not None
    assert outcome.log.stat().st_size < 65 << 20


def test_broken_utf8_is_a_failure_told_and_no_traceback(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}; bytes")
    assert outcome.refusal == "tests-failed"


def program(write: str | bytes | None, mode: int = 0o755) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.unlink()
        if write is not None:
            path.write_bytes(write if isinstance(write, bytes) else write.encode())
            path.chmod(mode)
    return make


ELF = Path(sys.executable).resolve().read_bytes()[:4096]


@pytest.mark.parametrize(("make", "told"), [
    (program(None), "There is no test executable"),
    (program("#!/bin/sh\nexec sleep 0\n"), "printed no list of tests"),
    (program("#!/bin/sh\necho garbage; exit 7\n"), "ended with status 7 when asked for its tests (last"),
    (program("#!/bin/sh\nkill -SEGV $$\n"), "died of SIGSEGV"),
    (program("#!/nowhere/interpreter\n"), "No such file"),
    (program("no program at all\n"), "Exec format error"),
    (program("#!/bin/sh\n", 0o644), "Permission denied"),
    (program(ELF[:18] + b"\xb7\x00" + ELF[20:]), "Exec format error"),
    (program("#!/bin/sh\nsleep 60\n"), "did not list its tests within 0.5 s"),
    (program("#!/bin/sh\nyes '  X'\n"), "MB when asked for its tests"),
    (program("#!/bin/sh\nhead -c 100000 /dev/urandom\n"), "printed no list of tests"),
], ids=["missing", "silent", "garbage", "dies", "interpreter", "text", "mode", "other-cpu", "hangs", "floods", "noise"])
def test_program_that_is_no_test_executable_is_binary_not_runnable(
        bench: Bench, make: Callable[[Path], None], told: str) -> None:
    make(bench.binary)
    timeout = 0.5 if "within" in told else 20.0
    outcome = bench.run(MEA, list_timeout_s=timeout)
    assert outcome.refusal == "binary-not-runnable"
    assert told in outcome.message
    assert 2 <= len(outcome.message.splitlines()) <= 3


def test_binary_that_lacks_a_library_is_binary_not_runnable_and_the_library_is_named(
        bench: Bench, programs: Path) -> None:
    from subprocess import run
    source = bench.folder / "needy.cc"
    source.write_text("int main() {}")
    run(["g++", source, "-o", bench.binary, "-Wl,--no-as-needed", programs / "provider.so"], check=True)
    shutil.move(programs / "provider.so", bench.folder / "away.so")
    try:
        outcome = bench.run(MEA)
    finally:
        shutil.move(bench.folder / "away.so", programs / "provider.so")
    assert outcome.refusal == "binary-not-runnable"
    assert "provider.so: cannot open shared object file" in outcome.message
    assert "LD_LIBRARY_PATH" in outcome.message


def test_script_that_starts_the_real_binary_is_judged_by_what_was_mapped(bench: Bench) -> None:
    real = bench.folder / "real"
    bench.binary.rename(real)
    bench.binary.write_text(f'#!/bin/sh\nexec "{real}" "$@"\n'.replace("$HOME", "\\$HOME"))
    bench.binary.chmod(0o755)
    assert bench.run(MEA).refusal is None
    # Where the executable itself is to be judged, a script is not it.
    assert bench.run(MEA, provider=None).refusal == "library-not-loaded"


def test_link_to_the_executable_is_started_by_its_real_path(bench: Bench) -> None:
    link = bench.folder.parent / "link"
    link.symlink_to(bench.binary)
    assert bench.run(MEA, binary=link).refusal is None


def test_launcher_that_is_missing_is_binary_not_runnable(bench: Bench) -> None:
    outcome = bench.run(MEA, launcher=("no-such-launcher",))
    assert outcome.refusal == "binary-not-runnable"
    assert "`no-such-launcher` is not on PATH" in outcome.message


def test_folder_that_cannot_be_written_is_told(bench: Bench) -> None:
    (bench.folder / "file").write_text("")
    outcome = bench.run(MEA, log_dir=bench.folder / "file" / "logs")
    assert outcome.refusal == "report-missing"
    assert "make" in outcome.message


def test_nothing_but_log_and_report_is_left_behind(bench: Bench) -> None:
    bench.run(MEA)
    assert [path.name for path in (bench.folder / "logs").iterdir()] == ["test_mea.log"]
    assert [path.name for path in (bench.folder / "report").iterdir()] == ["gtest.json"]


def test_progress_tells_each_test_as_it_begins_and_ends(bench: Bench) -> None:
    outcome = bench.run(f"{MEA}\nAttentionTest.Two_MEA: fail x")
    assert isinstance(outcome, Outcome)
    assert [(step.running, step.ended, step.result, step.done, step.failed) for step in bench.progress] == [
        ("AttentionTest.One_MEA_FP16_CUDA", None, None, 0, 0),
        (None, "AttentionTest.One_MEA_FP16_CUDA", "passed", 1, 0),
        ("AttentionTest.Two_MEA", None, None, 1, 0),
        (None, "AttentionTest.Two_MEA", "failed", 2, 1)]


def test_package_costs_little_to_import() -> None:
    import subprocess
    code = "import sys, tasks.gtest; sys.exit(bool({'plumbum', 'psutil', 'subprocess', 'json'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-S", "-c", code], check=False).returncode == 0
