"""One walk over large folders: what several processes count together."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tasks.box.processes import see_processes
from tasks.box.tally import Tally
from tasks.box.walk import Walk, walk
from tasks.errors import UserError
from tests.box.world import World

FOLDERS, FILES = 400, 40


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with more directories than one process walks, and one file with a name in two of them."""
    top = tmp_path_factory.mktemp("large").resolve()
    for number in range(FOLDERS):
        inner = top / f"CMakeFiles/{number % 80}.dir/{number}"
        inner.mkdir(parents=True)
        for name in range(FILES):
            (inner / f"{name}.o").write_bytes(b"x" * (number % 7) * 1000)
    os.link(top / "CMakeFiles/3.dir/3/0.o", top / "CMakeFiles/79.dir/79/again.o")
    newest = top / "CMakeFiles/41.dir/41/7.o"
    os.utime(newest, (4e9, 4e9))
    return top


def test_several_processes_count_what_du_counts(large: Path) -> None:
    tally = walk({"": str(large)}, os.geteuid())[""]
    told = subprocess.run(["du", "-s", "--block-size=1", large], capture_output=True, text=True, check=True).stdout
    assert tally.bytes == tally.gain == int(told.split()[0])
    assert tally.files == FOLDERS * FILES + 1
    assert (tally.newest, tally.newest_path) == (4e9, str(large / "CMakeFiles/41.dir/41/7.o"))
    assert tally.doubts == {}


def test_progress_grows_to_the_whole(large: Path) -> None:
    seen: list[tuple[int, int]] = []

    def progress(total: Tally) -> None:
        seen.append((total.files, total.bytes))

    with Walk({"a": str(large), "b": str(large)}, os.geteuid(), progress) as walking:
        tallies = walking.tallies()
    assert seen == sorted(seen)
    assert seen[-1][0] == 2 * tallies["a"].files == 2 * tallies["b"].files


def test_the_processes_that_walk_a_folder_are_not_told_as_its_users(large: Path) -> None:
    with Walk({"": str(large)}, os.geteuid()) as walking:
        mine = walking.processes
        assert mine
        seen = see_processes()
        assert mine <= {process.pid for process in seen.seen}
        assert not mine & {process.pid for process in seen.without(mine).seen}
        walking.tallies()
    assert not any(Path(f"/proc/{pid}").exists() for pid in mine)


def test_a_large_folder_that_nobody_uses_is_not_active(world: World) -> None:
    folder = world.add("Linux/Debug", 0)
    for number in range(200):
        (folder / f"CMakeFiles/{number}.dir").mkdir()
    assert world.judged(folder, see_processes).holders == ()


def test_a_walking_process_that_is_killed_ends_the_walk_with_one_line(
        large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walking = Walk({"": str(large)}, os.geteuid())
    monkeypatch.setattr("tasks.box.walk.count", lambda *_: time.sleep(60))
    with walking:
        for pid in walking.processes:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(UserError, match="ended from outside"):
            walking.tallies()
