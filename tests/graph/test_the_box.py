"""The box that builds run on: full disks, two runs at once, killed runs, damaged state; told and mended."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.box.test_space import fill
from tests.box.world import needs_root, tmpfs
from tests.support import Tree, end, wait_for


def touched(tree: Tree) -> dict[str, object]:
    """Everything that a refused build must leave as it is; what only spares work the next time is left out."""
    free = ("report.json", "closures")
    found: dict[str, object] = {}
    for place in (tree.root / "onnxruntime", tree.build_dir):
        for path in place.rglob("*"):
            if path.is_file() and path.name not in free and not path.name.startswith("doit.sqlite3"):
                stat = path.stat()
                found[str(path)] = (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns)
    return found


def refused(tree: Tree, **env: str) -> str:
    before = touched(tree)
    done = tree.doit("rebuild_fmha", env=env)
    assert done.status == 1
    assert "Nothing was built: no room." in done.text
    assert "doit disk" in done.text
    assert touched(tree) == before
    return done.text


@contextlib.contextmanager
def exhausted(folder: Path, options: str = "size=40m") -> Iterator[Path]:
    """A file system without a free byte."""
    with tmpfs(folder, options) as disk:
        fill(disk)
        yield disk


def use_up_inodes(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for number in range(100_000):
            (folder / f"inode{number}").touch()


@pytest.fixture
def small_tree(built_trees: dict[str, Tree], tmp_path: Path) -> Iterator[Tree]:
    """A fresh tree on a file system of its own."""
    with tmpfs(tmp_path / "small", "size=120m,nr_inodes=4000") as disk:
        tree = Tree(disk / "ort", defines=built_trees["Unix Makefiles"].defines)
        tree.configure()
        assert tree.doit("rebuild_fmha").status == 0
        yield tree


@needs_root
def test_34_a_full_tmpdir_refuses_the_build_and_nothing_is_touched(make_tree: Tree, tmp_path: Path) -> None:
    make_tree.edit()
    with exhausted(tmp_path / "tmp") as full:
        text = refused(make_tree, TMPDIR=str(full))
        assert f"TMPDIR ({full}): 0 B free" in text
        assert "TMPDIR=/path" in text
    assert make_tree.doit("rebuild_fmha").status == 0


@needs_root
def test_34_a_tmpdir_that_becomes_full_during_the_build_is_named_after_it(make_tree: Tree, tmp_path: Path) -> None:
    make_tree.edit()
    script = tmp_path / "build"
    with tmpfs(tmp_path / "tmp", "size=40m") as full:
        script.write_text(f"#!/bin/sh\nhead -c 100m /dev/zero > {full}/ballast\n"
                          f"exec {make_tree.root}/build.sh \"$@\"\n")
        script.chmod(0o755)
        command = f"{script} --build_dir {{build_root}} --config {{config}} --build"
        done = make_tree.doit("rebuild_fmha", env={"TMPDIR": str(full), "FMHA_BUILD_COMMAND": command})
    assert done.status == 1
    assert "no space or no inodes" in done.text
    assert f"full now: TMPDIR ({full}): 0 B free" in done.text
    assert make_tree.verdict() != "fresh"
    assert make_tree.doit("rebuild_fmha").status == 0


@needs_root
def test_35_a_full_checkout_refuses_the_build_and_nothing_is_touched(small_tree: Tree) -> None:
    small_tree.edit()
    fill(small_tree.root)
    text = refused(small_tree)
    # A file system is named by its first place.
    assert f"build directory, checkout ({small_tree.build_dir}): " in text
    (small_tree.root / "ballast").unlink()
    assert small_tree.doit("rebuild_fmha").status == 0


@needs_root
def test_36_no_inodes_refuse_the_build_and_nothing_is_touched(small_tree: Tree) -> None:
    small_tree.edit()
    use_up_inodes(small_tree.root)
    assert "0 inodes (files) free" in refused(small_tree)
    for path in small_tree.root.glob("inode*"):
        path.unlink()
    assert small_tree.doit("rebuild_fmha").status == 0


@needs_root
def test_a_build_directory_that_was_never_built_is_refused_without_a_trace(
        built_trees: dict[str, Tree], tmp_path: Path) -> None:
    with tmpfs(tmp_path / "small", "size=120m,nr_inodes=4000") as disk:
        tree = Tree(disk / "ort", defines=built_trees["Unix Makefiles"].defines)
        tree.configure()
        fill(disk)
        refused(tree)


@needs_root
def test_what_is_proved_needs_no_room(make_tree: Tree, tmp_path: Path) -> None:
    with exhausted(tmp_path / "tmp") as full:
        done = make_tree.doit("rebuild_fmha", env={"TMPDIR": str(full)})
    assert done.status == 0, done.text


def test_min_free_gb_is_asked_for_before_anything_is_touched(make_tree: Tree) -> None:
    make_tree.edit()
    assert "about 1000.0 TB needed" in refused(make_tree, FMHA_MIN_FREE_GB="1e6")


def test_a_dry_run_shows_the_command_and_what_would_be_compiled_and_leaves_no_trace(make_tree: Tree) -> None:
    make_tree.edit()
    for words in (("rebuild_fmha",), ("verify",), ("-s", "test_mea")):
        before = touched(make_tree)
        done = make_tree.doit(*words, "dry_run=1")
        assert done.status == 1
        assert "fmha_sm80: would be recompiled (kernel_forward.h changed" in done.text
        assert "build.sh --build_dir" in done.text
        assert "nothing was touched or built" in done.text
        assert touched(make_tree) == before


def test_a_dry_run_makes_no_state_folder(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "ort", defines=["MINIORT_HOST_ONLY=ON"])
    tree.configure()
    assert tree.doit("rebuild_fmha", "dry_run=1").status == 1
    assert not (tree.build_dir / ".fmha").exists()


def slow_command(tree: Tree, folder: Path) -> dict[str, str]:
    """A build that waits until it is allowed to go on."""
    script = folder / "slow"
    script.write_text(f"#!/bin/sh\necho $$ > {folder}/pid\nwhile [ ! -e {folder}/go ]; do sleep 0.1; done\n"
                      f"exec {tree.root}/build.sh \"$@\"\n")
    script.chmod(0o755)
    return {"FMHA_BUILD_COMMAND": f"{script} --build_dir {{build_root}} --config {{config}} --build --target"
                                  " onnxruntime_providers_cuda"}


def test_38_a_second_run_says_who_holds_the_build_directory_and_waits_if_asked(make_tree: Tree, tmp_path: Path) -> None:
    make_tree.edit()
    first = make_tree.start("rebuild_fmha", env=slow_command(make_tree, tmp_path))
    try:
        wait_for((tmp_path / "pid").exists)
        refused = make_tree.doit("rebuild_fmha")
        assert refused.status == 1
        assert f"doit (process {first.pid}) holds it since" in refused.text
        assert "wait=1" in refused.text
        second = make_tree.start("rebuild_fmha", "wait=1")
        (tmp_path / "go").touch()
        assert first.wait(120) == 0
        assert second.wait(120) == 0
        assert second.stdout is not None
        told = second.stdout.read()
        assert "waiting: doit (process" in told
        assert "touched" not in told, "what it saw before the wait counts no more"
    finally:
        end(first)
    assert make_tree.verdict() == "fresh"
    assert make_tree.is_current()


def test_39_after_a_kill_the_build_is_held_while_it_lives_and_the_next_verdict_is_right(
        make_tree: Tree, tmp_path: Path) -> None:
    make_tree.edit()
    first = make_tree.start("rebuild_fmha", env=slow_command(make_tree, tmp_path))
    wait_for((tmp_path / "pid").exists)
    end(first)
    try:
        held = make_tree.doit("rebuild_fmha")
        assert held.status == 1
        assert "is being built" in held.text
        assert make_tree.verdict() == "stale"
    finally:
        (tmp_path / "go").touch()
    assert make_tree.doit("rebuild_fmha", "wait=1").status == 0
    assert make_tree.is_current()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_whole_build_and_says_what_the_next_run_does(
        make_tree: Tree, tmp_path: Path, number: signal.Signals) -> None:
    make_tree.edit()
    first = make_tree.start("rebuild_fmha", env=slow_command(make_tree, tmp_path))
    wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    builder = int((tmp_path / "pid").read_text())
    first.send_signal(number)
    assert first.wait(60) == 1
    assert first.stdout is not None
    text = first.stdout.read()
    assert "interrupted; everything that the build started is ended." in text
    assert "The next run compiles fmha_sm50" in text
    assert "Traceback" not in text
    assert not Path(f"/proc/{builder}").exists()
    assert make_tree.verdict() == "stale"
    assert make_tree.doit("rebuild_fmha").status == 0


def test_a_half_written_object_of_an_interrupted_build_gets_no_receipt(make_tree: Tree, tmp_path: Path) -> None:
    half, whole = make_tree.object("fmha_sm80"), make_tree.object("fmha_sm75")
    make_tree.edit()
    script = tmp_path / "build"
    # What an assembler that is killed leaves: no header yet, or no section table.
    script.write_text(f"#!/bin/sh\n{make_tree.root}/build.sh \"$@\" || exit\nhead -c 300 {half} > {tmp_path}/half\n"
                      f"cat {tmp_path}/half > {half}\nexit 3\n")
    script.chmod(0o755)
    done = make_tree.doit("rebuild_fmha", env={
        "FMHA_BUILD_COMMAND": f"{script} --build_dir {{build_root}} --config {{config}} --build"})
    assert done.status == 1
    assert "exit status 3" in done.text
    verdicts = {unit["name"]: unit["verdict"] for unit in make_tree.judge()["units"]}
    assert verdicts["fmha_sm75"] == "fresh", whole
    assert verdicts["fmha_sm80"] != "fresh"
    assert make_tree.doit("rebuild_fmha").status == 0
    assert make_tree.is_current()


@pytest.mark.parametrize("name", ["doit.sqlite3", "report.json", "lock.json", "builds.json"])
def test_40_state_that_is_garbage_counts_as_none(make_tree: Tree, name: str) -> None:
    (make_tree.build_dir / ".fmha" / name).write_bytes(b"\x00garbage\xff" * 100)
    make_tree.edit()
    assert make_tree.verdict() == "stale"
    done = make_tree.doit("rebuild_fmha")
    assert done.status == 0, done.text
    if name == "doit.sqlite3":
        shown = make_tree.doit("status")
        assert shown.status == 0
        with contextlib.closing(sqlite3.connect(make_tree.build_dir / ".fmha" / name)) as connection:
            assert connection.execute("pragma quick_check").fetchone() == ("ok",)


def test_40_a_damaged_database_is_told_and_set_aside(make_tree: Tree) -> None:
    (make_tree.build_dir / ".fmha" / "doit.sqlite3").write_bytes(b"garbage" * 1000)
    done = make_tree.doit("rebuild_fmha")
    assert done.status == 0
    assert "doit's database was damaged" in done.text


def test_41_a_build_directory_of_another_checkout_is_refused_untouched(make_tree: Tree, tmp_path: Path) -> None:
    other = Tree(tmp_path / "other", defines=["MINIORT_HOST_ONLY=ON"])
    other.configure()
    before = touched(other)
    done = make_tree.doit("rebuild_fmha", env={"FMHA_BUILD_DIR": str(other.build_dir)})
    assert done.status == 1
    assert f"was configured for another checkout: its cache names '{other.root / 'cmake'}'" in done.text
    assert touched(other) == before
    assert not (other.build_dir / ".fmha").exists()


def test_the_build_of_a_compiler_that_is_killed_names_memory_and_jobs(make_tree: Tree, tmp_path: Path) -> None:
    make_tree.edit()
    script = tmp_path / "build"
    script.write_text(f"#!/bin/sh\n{make_tree.root}/build.sh \"$@\" &\n"
                      "for i in $(seq 200); do for p in $(pgrep -s 0 cc1plus); do kill -9 $p; done; sleep 0.02; done\n"
                      "wait $!\n")
    script.chmod(0o755)
    done = make_tree.doit("rebuild_fmha", env={
        "FMHA_BUILD_COMMAND": f"{script} --build_dir {{build_root}} --config {{config}} --build"})
    assert done.status == 1
    assert "most likely for memory" in done.text
    assert "jobs=1" in done.text
    assert make_tree.doit("rebuild_fmha").status == 0

