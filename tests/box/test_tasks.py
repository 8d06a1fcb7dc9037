"""`doit disk` and `doit disk_clean`, as a user runs them."""

from __future__ import annotations

import json
import os
import pty
import select
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


def answer_at_once(words: list[str], answer: str, ignored: bool = False, limit_s: float = 30) -> tuple[int, bytes]:
    """(exit status, screen) of a program on a terminal that is answered as soon as its question is there."""
    child, terminal = pty.fork()
    if child == 0:
        # A background job's are ignored, so neither is left to how the tests were started.
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)
        os.chdir("/")
        os.execvpe(words[0], words, clean_environment())
    text, answered, deadline = b"", False, time.monotonic() + limit_s
    try:
        while time.monotonic() < deadline:
            if not select.select([terminal], [], [], 0.1)[0]:
                continue
            try:
                text += os.read(terminal, 4096)
            except OSError:
                return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text
            if b"[y/N]" in text and not answered:
                answered = True
                os.write(terminal, answer.encode())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError(f"not ended by {answer!r} within {limit_s} s: {text!r}")
    finally:
        os.close(terminal)


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("\n", 1), ("\x04", 1), ("\x03", 1)])
def test_disk_clean_on_a_terminal_asks(world: World, answer: str, status: int, ignored: bool) -> None:
    folder = world.add("Linux/Debug", 45)
    words = [sys.executable, "-m", "doit", "-f", str(PROJECT / "dodo.py"), "disk_clean", f"ort_root={world.root}",
             f"build_dir={world.configured}"]
    code, text = answer_at_once(words, answer, ignored)
    assert b"[y/N]" in text
    assert code == status, text
    if status:
        assert b"\r\ndisk_clean: Nothing was removed." in text  # not behind the question, nor behind ^C
    assert folder.exists() == (status != 0)
    assert b"Traceback" not in text


def test_no_ctrl_c_is_lost_between_the_question_and_the_wait_for_its_answer() -> None:
    program = (f"import sys; sys.path.insert(0, {str(PROJECT)!r})\nfrom tasks.report.question import ask\n"
               "try: ask('Remove it for good? [y/N] ')\nexcept KeyboardInterrupt: sys.exit(7)")
    for _ in range(25):  # `input` loses it every other time
        assert answer_at_once([sys.executable, "-c", program], "\x03", limit_s=5)[0] == 7


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
