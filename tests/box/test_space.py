"""Is there room where the build writes? Small real file systems where mounting is allowed."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from pathlib import Path

import pytest

from tasks.box import space
from tasks.box.quota import decode
from tasks.box.space import estimate, human, require_space
from tasks.errors import UserError
from tests.box.world import World, bind, needs_root, tmpfs


def refused(world: World, environ: dict[str, str], expected=0, min_free_gb: float | None = None) -> UserError:
    before = sorted(world.root.rglob("*"))
    with pytest.raises(UserError) as caught:
        require_space(world.configured, world.root, environ, expected, min_free_gb)
    assert sorted(world.root.rglob("*")) == before
    assert 1 <= len(str(caught.value).splitlines()) <= 3
    return caught.value


def fill(folder: Path) -> None:
    with (folder / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"\0" * 65536)


def test_a_box_with_room_is_no_obstacle(world: World, tmp_path: Path) -> None:
    require_space(world.configured, world.root, {"TMPDIR": str(tmp_path), "HOME": str(tmp_path)}, 1000, None)


def test_the_check_takes_milliseconds(world: World) -> None:
    started = time.perf_counter()
    require_space(world.configured, world.root, dict(os.environ), 0, None)
    assert time.perf_counter() - started < 0.05


@needs_root
def test_34_a_full_tmpdir_refuses_the_build_though_its_own_disk_is_empty(world: World, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "tmp", "size=64m") as full:
        require_space(world.configured, world.root, {"TMPDIR": str(full)}, 0, None)
        fill(full)
        error = refused(world, {"TMPDIR": str(full)})
    assert f"TMPDIR ({full}): 0 B free" in error.cause
    assert "build directory" not in error.cause
    assert "TMPDIR=/path" in (error.mend or "")


@needs_root
def test_35_a_full_checkout_refuses_the_build_though_the_build_directory_has_room(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "ort", "size=64m") as disk:
        world = World(disk / "ort")
        fill(disk)
        with tmpfs(world.root / "build/Linux/Release", "size=64m"):
            error = refused(world, {})
    assert f"checkout ({world.root})" in error.cause
    assert "build directory" not in error.cause


@needs_root
def test_35_a_full_git_folder_elsewhere_is_found_through_the_worktrees_git_file(world: World, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "main", "size=1m") as disk:
        git = disk / ".git/worktrees/ort"
        git.mkdir(parents=True)
        (git / "commondir").write_text("../..\n")
        (world.root / ".git").write_text(f"gitdir: {git}\n")
        error = refused(world, {})
    assert f".git ({git}" in error.cause


@needs_root
@pytest.mark.parametrize("role", ["TMPDIR", "build directory", "checkout"])
def test_36_no_inodes_left_refuses_the_build_though_there_is_space(tmp_path: Path, role: str) -> None:
    with tmpfs(tmp_path / "disk", "size=900m,nr_inodes=200") as disk:
        world = World((disk if role != "TMPDIR" else tmp_path) / "ort")
        number = 0
        try:
            while True:
                (disk / f"file{number}").touch()
                number += 1
        except OSError:
            pass
        error = refused(world, {"TMPDIR": str(disk)} if role == "TMPDIR" else {})
    assert role in error.cause
    assert f"({disk}" in error.cause  # a file system is named by its first place
    assert "0 inodes (files) free" in error.cause


@needs_root
def test_places_on_one_file_system_are_asked_for_together(world: World, tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", "size=30m") as disk, bind(disk, world.configured):
        assert os.stat(world.configured).st_dev == os.stat(disk).st_dev
        require_space(world.configured, world.root, {}, 0, None)
        error = refused(world, {"TMPDIR": str(disk)})
    assert f"build directory, TMPDIR ({world.configured}): " in error.cause


@needs_root
def test_a_build_directory_that_is_mounted_read_only_refuses_and_a_checkout_does_not(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "ort", "size=64m") as disk:
        world = World(disk / "ort")
        os.system(f"mount -o remount,ro {disk}")
        assert "read-only" in refused(world, {}).cause
        with tmpfs(world.configured, "size=64m"):
            require_space(world.configured, world.root, {}, 0, None)


def test_min_free_gb_takes_the_place_of_the_estimate(world: World) -> None:
    error = refused(world, {}, 0, min_free_gb=1e6)
    assert "about 1000.0 TB needed" in error.cause
    assert "min_free_gb" in (error.mend or "")
    huge = 10**15
    refused(world, {}, huge)
    require_space(world.configured, world.root, {}, huge, min_free_gb=0.001)


def test_the_estimate_comes_from_this_directorys_own_sizes(tmp_path: Path) -> None:
    sizes = {"a.o": 100, "b.o": 300, "c.o": 200, "lib.so": 5000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    objects = [tmp_path / name for name in ("a.o", "b.o", "c.o", "missing.o")]
    assert estimate(objects, [tmp_path / "lib.so"], jobs=2) == {"build directory": 5600, "TMPDIR": 2000}


def test_a_missing_folder_is_asked_for_where_it_would_be_made(world: World, tmp_path: Path) -> None:
    roles = {need.role: need.folder for system in space.file_systems(
        world.configured / "later/folder", world.root, {"HOME": str(tmp_path / "new"), "TMPDIR": "/nowhere/at/all"}, 0)
        for need in system.needs}
    assert roles["build directory"] == world.configured
    assert roles["HOME's caches"] == tmp_path
    assert roles["TMPDIR"] == Path("/")


def test_a_quota_counts_where_it_is_tighter_than_the_disk(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "quota_left", lambda _: (5_000_000, None))
    assert "5.0 MB free by your quota" in refused(world, {}).cause
    monkeypatch.setattr(space, "quota_left", lambda _: (None, 3))
    assert "3 inodes (files) free by your quota" in refused(world, {}).cause


def quota_record(hard: int, soft: int, used: int, ihard: int, isoft: int, iused: int) -> bytes:
    return struct.pack("=8QI4x", hard, soft, used, ihard, isoft, iused, 0, 0, 63)


def test_a_quota_record_counts_limits_in_kib_and_space_in_bytes() -> None:
    assert decode(quota_record(100, 50, 1024, 10, 5, 3)) == (99 * 1024, 7)


def test_a_quota_without_hard_limits_counts_the_soft_ones_and_zero_is_none() -> None:
    assert decode(quota_record(0, 50, 1024, 0, 0, 3)) == (49 * 1024, None)


def test_a_quota_that_is_exceeded_leaves_nothing() -> None:
    assert decode(quota_record(1, 1, 9000, 1, 1, 3)) == (0, 0)


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "2 kB"), (12_340_000, "12.3 MB"),
                                            (123_400_000, "123 MB"), (999_900_000, "1.0 GB"), (4.2e12, "4.2 TB")])
def test_sizes_read_well(size: float, text: str) -> None:
    assert human(size) == text
