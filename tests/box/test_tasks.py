"""`doit disk` and `doit disk_clean`, as a user runs them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.box.world import World, age_all
from tests.support import PROJECT, Run, clean_environment, run


def doit(world: World, task: str, *words: str, **env: str) -> Run:
    return run([sys.executable, "-m", "doit", "-f", PROJECT / "dodo.py", *task.split(), f"ort_root={world.root}",
                f"build_dir={world.configured}", *words], cwd=Path("/"), env=env)


@pytest.fixture(autouse=True)
def seen_whole() -> None:
    """These run against the real process table."""
    from tasks.box.processes import see_processes

    see = see_processes()
    if see.hidden or see.inside or any(process.foreign for process in see.seen):
        pytest.skip("some process of this machine cannot be inspected, so nothing here is clearly unused")


def test_disk_lists_sizes_ages_and_the_sum_at_80_columns_changes_nothing_and_exits_0(world: World) -> None:
    world.add("Linux/Debug", 45)
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in world.root.rglob("*"))
    done = doit(world, "disk")
    assert done.status == 0, done.text
    assert "45 d  stale and regenerable" in done.out
    assert "build/Linux/Debug" in done.out
    assert "could be won from 1 folder" in done.out
    assert "free of" in done.out
    assert [line for line in done.out.replace(str(world.root), "ROOT").splitlines() if len(line) > 80] == []
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in world.root.rglob("*")) == before


def test_disk_prints_one_json_document_and_nothing_else(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    done = doit(world, "disk --json")
    assert done.status == 0
    document = json.loads(done.out)
    assert (document["schema"], document["task"]) == (1, "disk")
    row = next(row for row in document["folders"] if row["path"] == str(folder))
    assert (row["verdict"], row["reasons"], row["configuration"]) == ("stale and regenerable", [], "Debug")
    assert row["age_days"] == pytest.approx(45, abs=0.1)
    assert row["bytes"] == row["gain_bytes"] == document["gain_bytes"] > 14000


def test_disk_exits_0_without_any_build_folder(world: World) -> None:
    subprocess.run(["rm", "-r", world.root / "build"], check=True)
    words = [sys.executable, "-m", "doit", "-f", PROJECT / "dodo.py", "disk", f"ort_root={world.root}"]
    done = run(words, cwd=Path("/"))
    assert done.status == 0, done.text
    assert "no build folder" in done.out


def test_stale_after_days_is_a_setting(world: World) -> None:
    world.add("Linux/Debug", 45)
    assert "nothing to clean" in doit(world, "disk", "stale_after_days=60").out
    assert "not built for 40 days" in doit(world, "disk", FMHA_STALE_AFTER_DAYS="40").out


def test_disk_clean_without_a_terminal_lists_removes_nothing_and_exits_1(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    done = doit(world, "disk_clean")
    assert done.status == 1
    assert folder.exists()
    assert "build/Linux/Debug" in done.out
    assert "yes=1" in done.text
    assert "Traceback" not in done.text


def test_disk_clean_exits_0_where_there_is_nothing_to_remove_and_names_what_is_unclear(world: World) -> None:
    (world.root / "build/wheels").mkdir()
    done = doit(world, "disk_clean")
    assert done.status == 0, done.text
    assert "unclear" in done.out
    assert "build/wheels" in done.out


def test_disk_clean_with_yes_removes_the_stale_and_keeps_everything_else(world: World) -> None:
    stale, recent = world.add("Linux/Debug", 45), world.add("Linux/Recent", 5)
    done = doit(world, "disk_clean", "yes=1")
    assert done.status == 0, done.text
    assert not stale.exists()
    assert recent.exists()
    assert world.configured.exists()
    assert f"removed {stale}" in done.out


def test_the_configured_build_directory_is_never_removed_however_old(world: World) -> None:
    age_all(world.configured, 400)
    assert "build directory" in doit(world, "disk_clean", "yes=1").out
    found = run([sys.executable, "-m", "doit", "-f", PROJECT / "dodo.py", "disk_clean", "yes=1"], cwd=world.root)
    assert (found.status, world.configured.exists()) == (0, True), found.text


def test_yes_counts_on_the_command_line_only(world: World, tmp_path: Path) -> None:
    folder = world.add("Linux/Debug", 45)
    config = tmp_path / "own.toml"
    config.write_text("yes = true\n")
    assert doit(world, "disk_clean", FMHA_YES="1").status == 1
    assert doit(world, "disk_clean", FMHA_CONFIG=str(config)).status == 1
    assert doit(world, "disk_clean", "yes=0").status == 1
    assert folder.exists()


def test_disk_clean_in_json_asks_nobody_and_tells_what_went(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    listed = doit(world, "disk_clean --json")
    assert listed.status == 1
    assert json.loads(listed.out)["removable"] == [str(folder)]
    assert json.loads(listed.out)["removed"] == []
    done = doit(world, "disk_clean --json", "yes=1")
    assert done.status == 0
    document = json.loads(done.out)
    assert document["removed"] == [str(folder)]
    assert document["won_bytes"] > 14000
    assert not folder.exists()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("", 1), ("\x03", 1)])
def test_disk_clean_on_a_terminal_asks(world: World, answer: str, status: int) -> None:
    folder = world.add("Linux/Debug", 45)
    words = [sys.executable, "-m", "doit", "-f", str(PROJECT / "dodo.py"), "disk_clean", f"ort_root={world.root}",
             f"build_dir={world.configured}"]
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job's are ignored
        os.chdir("/")
        os.execvpe(words[0], words, clean_environment())
    text, answered, deadline = b"", False, time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            text += os.read(terminal, 4096)
        except OSError:
            break
        if b"[y/N]" in text and not answered:
            answered = True
            # Python loses a signal between the prompt and the read; nobody types that fast.
            time.sleep(0.3)
            os.write(terminal, (answer + ("" if answer in ("\x04", "\x03") else "\n")).encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    assert answered, text
    assert code == status, text
    assert folder.exists() == (status != 0)
    assert b"Traceback" not in text


def test_a_folder_that_somebody_works_in_stays_and_is_named(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    with subprocess.Popen(["sleep", "60"], cwd=folder) as child:
        try:
            done = doit(world, "disk_clean", "yes=1")
        finally:
            child.kill()
    assert done.status == 0
    assert folder.exists()
    assert f"sleep (process {child.pid}" in done.out


def test_settings_are_checked_first(world: World) -> None:
    done = doit(world, "disk_clean", "stale_after_day=3", "yes=1")
    assert done.status == 1
    assert "stale_after_days" in done.text
