"""Globs are asked without CMake, and find what CMake finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.checkout.globs import FileGlob
from tests.support import run


@pytest.mark.parametrize("folders", [False, True], ids=["files", "folders"])
@pytest.mark.parametrize("links", [False, True], ids=["as files", "followed"])
def test_at_any_depth_it_finds_what_cmake_finds_through_links_too(tmp_path: Path, links: bool, folders: bool) -> None:
    for name in ("a/b.cu/y.cu", "a/x.cu", "a/.hidden.cu", "a/x.txt", "other/in/w.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name, target in {"a/named.cu": "../other", "a/plain": "../other", "a/b.cu/up": "..", "a/lost.cu": "no"}.items():
        (tmp_path / name).symlink_to(target)
    pattern = f"{tmp_path}/a/*.cu"
    script = tmp_path / "find.cmake"
    script.write_text(f'file(GLOB_RECURSE found {"FOLLOW_SYMLINKS" if links else ""} '
                      f'LIST_DIRECTORIES {str(folders).lower()} "{pattern}")\n'
                      'file(WRITE "${CMAKE_CURRENT_LIST_DIR}/found" "${found}")\n')
    assert run(["cmake", "-P", script], tmp_path).status == 0
    found = (tmp_path / "found").read_text().split(";")
    assert len(found) > 3
    assert FileGlob(pattern, True, folders, links, tuple(found)).changes() == []
