"""The build command: the user's own, build.sh's, or CMake's."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tasks.builder.command import assemble, default_jobs, shown
from tasks.errors import UserError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with a build.sh, under a path that a shell would take apart."""
    folder = tmp_path / "o rt $x"
    (folder / "build/Linux/Release").mkdir(parents=True)
    (folder / "build.sh").write_text("#!/bin/sh\n")
    (folder / "build.sh").chmod(0o755)
    return folder


def commands(root: Path, *template: str, targets: tuple[str, ...] = ("provider", "test"),
             build_dir: str = "build/Linux/Release") -> list[list[str]]:
    return assemble(root, root / build_dir, "Release", targets, 3, template or None)


def test_build_sh_is_run_once_for_each_target(root: Path) -> None:
    first, second = commands(root)
    assert first[-1 if os.geteuid() else -2] == "provider"
    assert second[-1 if os.geteuid() else -2] == "test"


def test_build_sh_is_told_folder_configuration_and_jobs(root: Path) -> None:
    (words,) = commands(root, targets=("provider",))
    assert words[:8] == [str(root / "build.sh"), "--build_dir", str(root / "build/Linux"), "--config", "Release",
                         "--build", "--parallel", "3"]


def test_only_root_is_announced_to_build_sh(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--allow_running_as_root" in commands(root)[0]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--allow_running_as_root" not in commands(root)[0]


def test_a_folder_that_is_not_named_like_its_configuration_is_built_by_cmake(root: Path) -> None:
    (root / "out").mkdir()
    (words,) = commands(root, build_dir="out")
    assert Path(words[0]).name == "cmake"
    assert words[1:] == ["--build", str(root / "out"), "--parallel", "3", "--target", "provider", "test"]


def test_without_build_sh_cmake_builds(root: Path) -> None:
    (root / "build.sh").unlink()
    assert Path(commands(root)[0][0]).name == "cmake"


def test_a_users_command_is_run_once_with_all_targets_as_words(root: Path) -> None:
    (words,) = commands(root, "./build.sh", "--t", "{targets}")
    assert Path(words[0]) == root / "build.sh"
    assert words[1:] == ["--t", "provider", "test"]


def test_targets_within_a_word_are_joined(root: Path) -> None:
    assert commands(root, "./build.sh", "--t={targets}")[0][1] == "--t=provider test"


def test_a_users_command_without_targets_is_run_as_it_is(root: Path) -> None:
    (words,) = commands(root, "./build.sh", "all")
    assert words[1:] == ["all"]


def test_all_places_are_filled(root: Path) -> None:
    words = commands(root, "./build.sh", "{build_dir}", "{build_root}", "-j{jobs}", "{config}/{config}")[0][1:]
    assert words == [str(root / "build/Linux/Release"), str(root / "build/Linux"), "-j3", "Release/Release"]


def test_what_is_filled_in_is_not_filled_again(root: Path) -> None:
    folder = root / "{jobs}" / "Release"
    folder.mkdir(parents=True)
    (words,) = assemble(root, folder, "Release", ("t",), 3, ("./build.sh", "{config}", "{unknown}"))
    assert words[1:] == ["Release", "{unknown}"]


def test_a_users_program_is_found_on_the_path(root: Path) -> None:
    assert Path(commands(root, "cmake", "--build", "x")[0][0]).is_absolute()


def test_an_empty_command_is_refused(root: Path) -> None:
    with pytest.raises(UserError, match="empty"):
        assemble(root, root / "build/Linux/Release", "Release", ("t",), 3, ())


def test_a_missing_program_is_named(root: Path) -> None:
    for program in ("./none.sh", "no-such-program"):
        with pytest.raises(UserError, match="does not exist") as told:
            commands(root, program)
        assert "build_command" in str(told.value)


def test_a_program_that_may_not_run_is_told_with_the_command_that_mends_it(root: Path) -> None:
    (root / "build.sh").chmod(0o644)
    with pytest.raises(UserError, match="not executable") as told:
        commands(root)
    assert shlex.split(str(told.value.mend)) == ["chmod", "+x", str(root / "build.sh")]


def test_a_folder_is_no_program(root: Path) -> None:
    with pytest.raises(UserError, match="not executable"):
        commands(root, "./build")


def test_the_shown_command_can_be_pasted(root: Path) -> None:
    assert shlex.split(shown(commands(root)[0])) == commands(root)[0]


def test_there_is_at_least_one_job_and_no_more_than_cores() -> None:
    assert 1 <= default_jobs() <= len(os.sched_getaffinity(0))


def test_little_memory_means_one_job(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    class _Memory:
        available = 1_000_000_000

    monkeypatch.setattr(psutil, "virtual_memory", _Memory)
    assert default_jobs() == 1
