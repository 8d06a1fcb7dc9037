"""A disk that is full and a run that died while it wrote leave the old truth or no claim, and never a traceback."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import Tree, run

PAGE = 4096
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]


class SmallDisk:
    """A file system of its own, mounted on a folder whose content it takes over."""

    def __init__(self, folder: Path, kilobytes: int) -> None:
        self.folder = folder
        kept = folder.with_name(f"{folder.name}.kept")
        shutil.copytree(folder, kept, symlinks=True)
        options = f"size={kilobytes}k,uid={os.getuid()},gid={os.getgid()}"
        done = run([*AS_ROOT, "mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], Path("/"))
        if done.status != 0:
            pytest.skip(f"no file system can be mounted here: {done.text.strip()}")
        run(["cp", "-a", f"{kept}/.", folder], Path("/"))
        shutil.rmtree(kept)

    def fill(self, pages_left: int) -> None:
        """Leave this many pages of 4096 bytes."""
        filling = self.folder / "filling"
        with filling.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * PAGE) == PAGE:
                    pass
            except OSError:
                pass
        os.truncate(filling, max(0, filling.stat().st_size - pages_left * PAGE))

    def free(self) -> None:
        (self.folder / "filling").unlink()

    def unmount(self) -> None:
        kept = self.folder.with_name(f"{self.folder.name}.kept")
        shutil.copytree(self.folder, kept, symlinks=True)
        subprocess.run([*AS_ROOT, "umount", self.folder], check=True)
        run(["cp", "-a", f"{kept}/.", self.folder], Path("/"))
        shutil.rmtree(kept)


@pytest.fixture
def state_disk(make_tree: Tree) -> Iterator[SmallDisk]:
    """The state folder of a fresh tree, on a disk of its own."""
    disk = SmallDisk(make_tree.build_dir / ".fmha", 4096)
    yield disk
    disk.unmount()


# Of 4096 bytes: nothing can be withdrawn; the first receipts can; all but the database; everything.
@pytest.mark.parametrize("pages", [0, 1, 2, 3, 5, 200])
def test_a_full_disk_leaves_the_truth_or_no_claim(make_tree: Tree, state_disk: SmallDisk, pages: int) -> None:
    make_tree.edit()
    state_disk.fill(pages)
    done = make_tree.doit("rebuild_fmha")
    assert done.status in (0, 1), done.text
    assert ("free space" in done.text) == (pages < 200), done.text
    for _ in range(2):
        verdict = make_tree.verdict()
        assert verdict == ("fresh" if done.status == 0 else verdict), "a rebuild that succeeded"
        assert verdict != "fresh" or make_tree.is_current()
        if (state_disk.folder / "filling").exists():
            state_disk.free()
    assert make_tree.doit("verify").status == 0
    assert make_tree.is_current()


def test_what_was_fresh_stays_so_on_a_full_disk(make_tree: Tree, state_disk: SmallDisk) -> None:
    state_disk.fill(0)
    assert make_tree.verdict() == "fresh"
    assert make_tree.doit("-s", "verify").status == 0
    done = make_tree.doit("rebuild_fmha")
    assert done.status == 0, done.text


def test_a_mark_that_cannot_be_written_is_not_told_as_written(make_tree: Tree, state_disk: SmallDisk) -> None:
    state_disk.fill(0)
    done = make_tree.doit("ignore", "object:fmha_sm80")
    assert done.status == 1, done.text
    assert "free space" in done.text


def test_without_a_database_a_full_disk_is_no_error_of_doits(make_tree: Tree, state_disk: SmallDisk) -> None:
    (state_disk.folder / "doit.sqlite3").unlink()
    state_disk.fill(0)
    assert make_tree.doit("list").status == 0
    assert make_tree.doit("rebuild_fmha").status == 0


def test_a_compile_that_finds_the_disk_full_is_told_so(make_tree: Tree) -> None:
    objects = make_tree.object("fmha_sm80").parent
    make_tree.edit()
    with make_tree.header("kernel_forward").open("a") as file:
        file.write("\n__attribute__((used)) static char larger[300000] = {1};\n")
    disk = SmallDisk(objects, 2048)
    try:
        disk.fill(0)
        done = make_tree.doit("rebuild_fmha")
        assert done.status == 1
        assert "no space or no inodes" in done.text
        assert make_tree.verdict() != "fresh"
        disk.free()
        assert make_tree.doit("verify").status == 0
        assert make_tree.is_current()
    finally:
        disk.unmount()


def leave_a_journal(database: Path) -> None:
    """As a process leaves it that is killed while it writes: half of a transaction, and the journal that undoes it."""
    kept = {path: path.with_name(f"kept-{path.name}")
            for path in (database, database.with_name(database.name + "-journal"))}
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("pragma cache_size=1")
        for number in range(500):
            connection.execute("insert or replace into doit values (?, ?)", (f"filler:{number}", f'{{"a": "{0:080}"}}'))
        for path, copy in kept.items():
            shutil.copy(path, copy)
        connection.rollback()
    for path, copy in kept.items():
        copy.replace(path)


def test_a_journal_of_a_killed_run_is_rolled_back_and_the_database_used_again(make_tree: Tree) -> None:
    database = make_tree.build_dir / ".fmha" / "doit.sqlite3"
    assert make_tree.doit("ignore", "object:fmha_sm80").status == 0
    leave_a_journal(database)
    done = make_tree.doit("rebuild_fmha")
    assert done.status == 1
    assert "doit forget object:fmha_sm80" in done.text, "what stood in it counts"
    assert not database.with_name(database.name + "-journal").exists()
    assert make_tree.doit("forget", "object:fmha_sm80").status == 0
