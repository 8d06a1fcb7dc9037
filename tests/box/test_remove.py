"""Removing: what was judged is what goes, and a mistake of timing is undone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tasks.box.judge import Folder
from tasks.box.processes import Processes, see_processes
from tasks.box.remove import KeptError, remove
from tasks.box.survey import Box
from tasks.box.tally import ASIDE_PREFIX
from tests.box.world import NOBODY, World, age_all, as_nobody, bind, needs_root, tmpfs, unused


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def stale(world: World) -> tuple[Path, Folder, Box]:
    path = world.add("Linux/Debug", 45)
    box = world.look()
    return path, box.stale[0], box


class Meanwhile:
    """A look at the processes during which something happens: the first before the move, the second after it."""

    def __init__(self, world: World, before=None, after=None) -> None:
        self.world, self.steps = world, [before, after]

    def aside(self) -> Path:
        return next(self.world.root.glob("build/Linux/.fmha-removing-*/Debug"))

    def __call__(self) -> Processes:
        step = self.steps.pop(0) if self.steps else None
        return (step() if step is not None else None) or unused()


def kept(folder: Folder, box: Box, see) -> str:
    with pytest.raises(KeptError) as caught:
        remove(folder, box, see)
    return str(caught.value)


def test_a_stale_folder_goes_whole_and_nothing_else_does(world: World) -> None:
    before = listing(world.root)
    path, folder, box = stale(world)
    remove(folder, box, see_processes)
    assert listing(world.root) == before
    assert not path.exists()


def test_links_are_removed_and_not_followed(world: World) -> None:
    path = world.add("Linux/Debug", 45)
    (path / "inner").symlink_to("CMakeFiles")
    (path / "dangling").symlink_to("nothing")
    age_all(path, 45)
    remove(world.look().stale[0], world.look(), unused)
    assert not path.exists()
    assert world.configured.exists()


def test_a_link_that_leads_out_and_came_too_late_to_be_seen_is_not_followed(world: World, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    (treasure / "deep").mkdir(parents=True)
    (treasure / "deep/gold").touch()
    path, folder, box = stale(world)
    see = Meanwhile(world, after=lambda: (see.aside() / "CMakeFiles/x").symlink_to(treasure))
    remove(folder, box, see)
    assert (treasure / "deep/gold").exists()
    assert not path.exists()


def test_folders_that_may_not_be_written_are_removed_all_the_same() -> None:
    def work(place: Path) -> str:
        world = World(place / "ort")
        path = world.add("Linux/Debug", 45)
        (path / "CMakeFiles").chmod(0o555)
        remove(world.judged(path), world.look(), unused)
        return f"gone: {not path.exists()}"

    if os.geteuid() != 0:
        pytest.skip("drops root to have an unwritable folder")
    assert as_nobody(work) == "gone: True"


def test_another_folder_in_its_place_is_kept(world: World) -> None:
    path, folder, box = stale(world)
    os.rename(path, path.with_name("moved"))
    world.add("Linux/Debug", 45)
    assert "another file or folder stands in its place" in kept(folder, box, unused)
    assert path.exists()


def test_a_link_in_its_place_is_kept(world: World, tmp_path: Path) -> None:
    path, folder, box = stale(world)
    os.rename(path, tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    assert "is a link" in kept(folder, box, unused)
    assert (tmp_path / "moved/CMakeCache.txt").exists()


def test_a_link_in_its_place_that_came_after_the_last_look_is_kept(
        world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, box = stale(world)
    os.rename(path, tmp_path / "moved")
    path.symlink_to(tmp_path / "moved")
    monkeypatch.setattr("tasks.box.remove._still_unused", lambda *_: None)
    assert "another file or folder" in kept(folder, box, unused)
    assert (tmp_path / "moved/CMakeCache.txt").exists()


def test_a_link_above_it_is_not_walked_through(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, box = stale(world)
    os.rename(path.parent, tmp_path / "Linux")
    path.parent.symlink_to(tmp_path / "Linux")
    monkeypatch.setattr("tasks.box.remove._still_unused", lambda *_: None)
    assert "cannot be moved aside" in kept(folder, box, unused)
    assert (tmp_path / "Linux/Debug/CMakeCache.txt").exists()


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_comes_in_late_keeps_the_folder_in_its_place(world: World, moment: str) -> None:
    path, folder, box = stale(world)
    content = listing(path)
    children = []

    def enter() -> Processes:
        place = path if moment == "before" else see.aside()
        children.append(subprocess.Popen(["sleep", "60"], cwd=place))
        return see_processes()

    see = Meanwhile(world, **{moment: enter})
    try:
        assert "works in" in kept(folder, box, see)
    finally:
        children[0].kill()
        children[0].wait()
    assert listing(path) == content
    assert not list(path.parent.glob(".fmha*"))


def _other_home(folder: Path) -> None:
    """Neither a size nor the newest file gives it away."""
    cache = folder / "CMakeCache.txt"
    then = cache.stat().st_mtime - 100
    cache.write_text(cache.read_text().replace("/cmake\n", "/other\n"))
    os.utime(cache, (then, then))


CHANGES = {
    "another checkout in its cache and nothing else": _other_home,
    "a new object": lambda aside: (aside / "CMakeFiles/new.o").touch(),
    "a rewritten object": lambda aside: (aside / "CMakeFiles/provider.dir/fmha_sm80.cu.o").write_bytes(b"x" * 5001),
    "its cache names another checkout": lambda aside: (aside / "CMakeCache.txt").write_text(
        "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/cmake\n"),
    "its cache is gone": lambda aside: (aside / "CMakeCache.txt").unlink(),
    "a repository": lambda aside: (aside / "src/.git").mkdir(parents=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_the_look_and_the_removal_keeps_the_folder(world: World, change: str) -> None:
    path, folder, box = stale(world)
    CHANGES[change](path)
    content = listing(path)
    kept(folder, box, unused)
    assert listing(path) == content
    assert not list(path.parent.glob(".fmha*"))


@needs_root
def test_a_mount_that_came_after_the_look_keeps_the_folder(world: World, tmp_path: Path) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    (treasure / "gold").touch()
    path, folder, box = stale(world)
    with bind(treasure, path / "CMakeFiles"):
        assert "mounted in it" in kept(folder, box, unused)
        assert (treasure / "gold").exists()


def at_the_last_moment(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], object]) -> None:
    """`happens` comes after all looks at the folder in its place and before it is moved aside."""
    mkdir = os.mkdir

    def hooked(*args: object, **kwargs: object) -> None:
        mkdir(*args, **kwargs)  # type: ignore[arg-type]
        if str(args[0]).startswith(ASIDE_PREFIX):
            happens()

    monkeypatch.setattr(os, "mkdir", hooked)


def test_another_folder_that_took_its_place_at_the_last_moment_is_put_back(
        world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, box = stale(world)

    def swap() -> None:
        os.rename(path, tmp_path / "moved")
        shutil.copytree(tmp_path / "moved", path)

    at_the_last_moment(monkeypatch, swap)
    assert "another file or folder" in kept(folder, box, unused)
    assert listing(path) == listing(tmp_path / "moved")
    assert not list(path.parent.glob(".fmha*"))


@needs_root
def test_a_mount_that_came_at_the_last_moment_goes_back_with_the_folder(
        world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "treasure").mkdir()
    (tmp_path / "treasure/gold.o").touch()
    path, folder, box = stale(world)
    with ExitStack() as stack:
        inner = path / "CMakeFiles/provider.dir"
        monkeypatch.setattr("tasks.box.remove.walk", lambda *_: {"": folder.tally})
        at_the_last_moment(monkeypatch, lambda: stack.enter_context(bind(tmp_path / "treasure", inner)))
        assert f"{inner.relative_to(path)} is mounted in it" in kept(folder, box, unused)
        assert (inner / "gold.o").exists()


@needs_root
@pytest.mark.parametrize("kind", ["bind", "tmpfs"])
def test_a_mount_that_came_after_the_last_look_is_not_entered(
        world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    treasure = tmp_path / "treasure"
    treasure.mkdir()
    path, folder, box = stale(world)
    monkeypatch.setattr("tasks.box.remove._still_unused", lambda *_: None)
    monkeypatch.setattr("tasks.box.remove._still_stale", lambda *_: None)
    with bind(treasure, path / "CMakeFiles") if kind == "bind" else tmpfs(path / "CMakeFiles") as mounted:
        (mounted / "gold").touch()
        told = kept(folder, box, unused)
        rest = next(path.parent.glob(".fmha-removing-*/Debug"))
        assert (rest / "CMakeFiles/gold").exists()
    assert "partly removed, the rest is" in told
    assert ("is a mount point" if kind == "bind" else "another user or file system") in told


@needs_root
def test_a_file_of_someone_else_that_came_after_the_last_look_stops_the_removal(
        world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder, box = stale(world)
    monkeypatch.setattr("tasks.box.remove._still_stale", lambda *_: None)
    os.chown(path / "CMakeFiles/provider.dir/fmha_sm80.cu.o", NOBODY, NOBODY)
    assert "belongs to another user" in kept(folder, box, unused)
    assert next(path.parent.glob(".fmha-removing-*/Debug/CMakeFiles/provider.dir/fmha_sm80.cu.o"))


def test_where_something_new_has_its_name_the_folder_is_kept_aside_and_named(world: World) -> None:
    path, folder, box = stale(world)

    def replace() -> Processes:
        path.mkdir()
        return Processes(hidden=("make (process 7, bob)",), mounts=unused().mounts)

    see = Meanwhile(world, after=replace)
    told = kept(folder, box, see)
    assert f"kept as {see.aside()}" in told
    assert list(path.iterdir()) == []


def test_an_interrupt_before_the_first_deleted_file_puts_the_folder_back(world: World) -> None:
    path, folder, box = stale(world)
    content = listing(path)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        remove(folder, box, Meanwhile(world, after=interrupt))
    assert listing(path) == content
    assert not list(path.parent.glob(".fmha*"))


def test_what_a_killed_cleaning_left_is_found_and_removed_by_the_next(world: World) -> None:
    path = world.add("Linux/Debug", 45)
    code = ("import os, sys; from pathlib import Path; from tests.box.world import World, unused\n"
            "from tasks.box import remove\n"
            "w = World.__new__(World); w.root, w.configured = Path(sys.argv[1]), Path(sys.argv[2])\n"
            "b = w.look(); rmdir = os.rmdir\n"
            "os.rmdir = lambda name, dir_fd: os._exit(9) if name == 'CMakeFiles' else rmdir(name, dir_fd=dir_fd)\n"
            "remove.remove(b.stale[0], b, unused)\n")
    done = subprocess.run([sys.executable, "-c", code, world.root, world.configured], check=False,
                          cwd=Path(__file__).parents[2])
    assert done.returncode == 9
    rest = next(path.parent.glob(".fmha-removing-*/Debug"))
    assert not (rest / "CMakeFiles/provider.dir").exists()
    assert (rest / "CMakeCache.txt").exists()
    box = world.look()
    assert [folder.path for folder in box.stale] == [rest]
    remove(box.stale[0], box, unused)
    assert [entry.name for entry in path.parent.iterdir()] == ["Release"]
