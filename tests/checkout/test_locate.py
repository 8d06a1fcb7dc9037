"""Finding the checkout and its build directory, and the lines that say why one is not it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks.checkout.locate import Location, locate, require_trust
from tasks.errors import UserError


class World:
    """A checkout of empty files, and build directories that are no more than their cache."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        for mark in ("tools/ci_build/build.py", "cmake/CMakeLists.txt"):
            (self.root / mark).parent.mkdir(parents=True, exist_ok=True)
            (self.root / mark).write_text("")

    def build_dir(self, name: str = "build/Linux/Release", **entries: str) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        given = {"CMAKE_HOME_DIRECTORY": str(self.root / "cmake"), "CMAKE_CACHEFILE_DIR": str(folder),
                 "onnxruntime_USE_CUDA": "ON", **entries}
        lines = [f"{key}:INTERNAL={value}\n" for key, value in given.items() if value != "-"]
        (folder / "CMakeCache.txt").write_text("".join(lines))
        return folder

    def locate(self, build_dir: Path | None = None, ort_root: Path | None = None,
               start: Path | None = None) -> Location:
        return locate(ort_root, build_dir, start or self.root)

    def refusal(self, build_dir: Path | None = None, ort_root: Path | None = None, start: Path | None = None) -> str:
        with pytest.raises(UserError) as told:
            self.locate(build_dir, ort_root, start)
        assert len(str(told.value).splitlines()) <= 3
        assert told.value.mend
        return str(told.value)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "ort")


def test_the_checkout_is_found_from_a_folder_below_it(world: World) -> None:
    world.build_dir()
    assert world.locate(start=world.root / "tools/ci_build").ort_root == world.root


def test_the_innermost_checkout_is_the_one(world: World) -> None:
    inner = World(world.root / "inner")
    inner.build_dir()
    assert world.locate(start=inner.root).ort_root == inner.root


def test_without_a_checkout_above_it_is_said_how_to_name_one(world: World, tmp_path: Path) -> None:
    assert "ort_root" in world.refusal(start=tmp_path)


def test_a_wrong_path_says_which_file_is_missing(world: World, tmp_path: Path) -> None:
    assert "tools/ci_build/build.py is missing" in world.refusal(ort_root=tmp_path / "none")


def test_a_checkout_behind_a_link_is_its_real_one(world: World, tmp_path: Path) -> None:
    world.build_dir()
    (tmp_path / "link").symlink_to(world.root)
    found = world.locate(ort_root=tmp_path / "link")
    assert (found.ort_root, found.build_dir) == (world.root, world.root / "build/Linux/Release")


def test_the_only_build_directory_is_found(world: World) -> None:
    folder = world.build_dir()
    assert world.locate().build_dir == folder


def test_a_build_directory_may_lie_right_in_build(world: World) -> None:
    assert world.build_dir("build") == world.locate().build_dir


def test_several_build_directories_are_listed(world: World) -> None:
    folders = [world.build_dir(f"build/Linux/{config}") for config in ("Debug", "Release")]
    assert all(str(folder) in world.refusal() for folder in folders)


def test_the_mending_command_for_several_survives_a_blank(tmp_path: Path) -> None:
    world = World(tmp_path / "o rt")
    for config in ("Debug", "Release"):
        world.build_dir(f"build/Linux/{config}")
    assert f"'build_dir={world.root}/build/Linux/Debug'" in world.refusal()


def test_a_link_to_a_build_directory_is_not_a_second_one(world: World) -> None:
    folder = world.build_dir()
    (world.root / "build/latest").symlink_to(folder)
    assert world.locate().build_dir == folder


def test_a_link_to_a_folder_above_ends(world: World) -> None:
    folder = world.build_dir()
    (world.root / "build/loop").symlink_to(world.root / "build")
    assert world.locate().build_dir == folder


def test_build_directories_of_dependencies_do_not_count(world: World) -> None:
    folder = world.build_dir()
    world.build_dir("build/Linux/Release/_deps/x-subbuild")
    assert world.locate().build_dir == folder


def test_a_build_directory_without_cuda_is_passed_over(world: World) -> None:
    world.build_dir("build/Linux/Debug", onnxruntime_USE_CUDA="OFF")
    folder = world.build_dir()
    assert world.locate().build_dir == folder


def test_where_none_fits_the_reason_is_said(world: World) -> None:
    world.build_dir(onnxruntime_USE_CUDA="OFF")
    assert "without CUDA" in world.refusal()


def test_without_any_build_directory_it_is_said_how_to_make_one(world: World) -> None:
    assert "build.sh" in world.refusal()


def test_a_named_build_directory_may_lie_elsewhere(world: World, tmp_path: Path) -> None:
    folder = world.build_dir("../elsewhere")
    assert world.locate(folder).build_dir == tmp_path / "elsewhere"


def test_a_named_build_directory_without_a_cache_is_refused(world: World) -> None:
    assert "no readable CMakeCache.txt" in world.refusal(world.root)


def test_a_build_directory_of_another_checkout_is_refused(world: World) -> None:
    folder = world.build_dir(CMAKE_HOME_DIRECTORY="/code/onnxruntime/cmake")
    told = world.refusal(folder)
    assert "/code/onnxruntime/cmake" in told
    assert "container" in told


def test_a_build_directory_without_memory_efficient_attention_is_refused(world: World) -> None:
    world.build_dir(onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION="OFF")
    assert "USE_MEMORY_EFFICIENT_ATTENTION=ON" in world.refusal()


def test_a_copied_build_directory_tells_where_it_was_made(world: World) -> None:
    folder = world.build_dir(CMAKE_CACHEFILE_DIR="/made/here")
    location = world.locate(folder)
    assert location.copied_from == Path("/made/here")
    with pytest.raises(UserError, match="copied or moved"):
        require_trust(location)


def test_a_cache_that_does_not_tell_where_it_was_made_is_no_copy(world: World) -> None:
    location = world.locate(world.build_dir(CMAKE_CACHEFILE_DIR="-"))
    assert location.copied_from is None
    require_trust(location)


def test_a_build_directory_of_another_user_is_not_trusted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    location = world.locate(world.build_dir())
    owner = location.build_dir.stat().st_uid
    if os.getuid() == 0:
        os.chown(location.build_dir, 12345, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(UserError, match="belongs to user"):
        require_trust(location)
