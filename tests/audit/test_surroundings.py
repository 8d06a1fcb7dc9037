"""Around the records: copies, other targets, launchers, edits while a compile runs; each against a real build."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import NINJA, PROVIDER, Built, Project, agrees, kinds


def _copy_with_new_times(project: Project) -> None:
    aside = project.build_dir.with_name("aside")
    project.build_dir.rename(aside)
    time.sleep(0.02)
    shutil.copytree(aside, project.build_dir, copy_function=shutil.copyfile, symlinks=True)
    for path in project.build_dir.rglob("*"):
        if os.access(aside / path.relative_to(project.build_dir), os.X_OK):
            path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_copied_build_directory_hides_an_earlier_edit_from_make(built: Built, write_receipts: Callable) -> None:
    project = built().build()
    write_receipts(project)
    project.edit(2)
    _copy_with_new_times(project)
    # Copied last, as `cp -r` does by chance: else make compiles for the new flags.make.
    for path in (*project.objects(), project.build_dir / f"lib{PROVIDER}.so"):
        os.utime(path)
    document = project.audit()
    assert kinds(document) == ({"copied"} if project.is_make else set())
    agrees(project, document, lambda: None, stale=project.is_make)


@pytest.mark.parametrize("depends", [False, True])
def test_a_test_target_that_leaves_the_provider_alone_is_told(built: Built, depends: bool) -> None:
    project = built(f"TEST_DEPENDS={'ON' if depends else 'OFF'}")
    document = project.audit()
    assert ("test-target" in kinds(document, "findings")) == (not depends)
    project.edit(2)
    project.build("onnxruntime_provider_test")
    assert project.revision() == (2 if depends else 1)
    assert document["tracked"]


def test_a_copy_that_another_target_makes_after_its_build_is_told_when_it_is_old(built: Built) -> None:
    project = built().build("python_module")
    copy = project.build_dir / "capi" / f"lib{PROVIDER}.so"
    assert "post-build-copy" not in kinds(project.audit(), "findings")
    project.edit(2)
    project.build()
    assert (project.revision(), project.revision(copy)) == (2, 1)
    found = next(f for f in project.audit()["findings"] if f["kind"] == "post-build-copy")
    project.run("sh", "-c", found["mend"])
    assert project.revision(copy) == 2


def test_a_launcher_that_restores_an_object_without_its_depfile_is_told(project: Project, tmp_path: Path) -> None:
    launcher = tmp_path / "ccache"
    # Keeps each object by its name and the compile's flags, and gives it back without a depfile.
    launcher.write_text('#!/bin/sh\nfor w; do [ "$p" = -o ] && o=$w; p=$w; done\nk=/CACHE/$(basename "$o")\n'
                        'case "$o" in *fmha*) ;; *) exec "$@";; esac\n'
                        '[ -f "$k" ] && exec cp "$k" "$o"\n"$@" && cp "$o" "$k"\n'.replace("/CACHE", str(tmp_path)))
    launcher.chmod(0o755)
    project.configure(f"CMAKE_CXX_COMPILER_LAUNCHER={launcher}").build()
    shutil.rmtree(project.build_dir)
    project.configure(f"CMAKE_CXX_COMPILER_LAUNCHER={launcher}").build()
    document = project.audit()
    assert kinds(document) == {"launcher"}
    assert "ccache" in document["causes"][0]["text"]
    agrees(project, document, lambda: project.edit(2), stale=True)


# Reads the header at once, then needs a while; says when it begins.
_SLOW = """#include "fmha_launch_template.h"
#include <functional>
#include <map>
#include <regex>
#include <string>
extern "C" int {name}() {{
  std::map<std::string, std::function<bool(const std::string&)>> found;
  found["a"] = [](const std::string& text) {{ return std::regex_search(text, std::regex("a+")); }};
  return found["a"]("a") ? REVISION : 0;
}}
"""


def edit_while_compiling(project: Project, begun: Path, after_s: float) -> None:
    """Start a build, and edit the header a while after `begun` is there."""
    command = ["cmake", "--build", str(project.build_dir), "--target", PROVIDER, "--parallel", "2"]
    building = subprocess.Popen(command, env=project.environ, stdout=subprocess.DEVNULL)
    while not begun.exists():
        assert building.poll() is None
        time.sleep(0.01)
    time.sleep(after_s)
    project.edit(2)
    assert building.wait() == 0
    made = next(path for path in project.objects() if "sm80" in path.name)
    assert made.stat().st_mtime_ns > project.header.stat().st_mtime_ns, "too late"


@NINJA
def test_an_edit_while_the_compile_runs_is_doubted(project: Project, tmp_path: Path) -> None:
    (project.folder / "fmha_sm80.cu").write_text(_SLOW.format(name="fmha_sm80"))
    launcher, begun = tmp_path / "launcher", tmp_path / "begun"
    launcher.write_text(f'#!/bin/sh\ntouch "{begun}"\nexec "$@"\n')
    launcher.chmod(0o755)
    project.configure(f"CMAKE_CXX_COMPILER_LAUNCHER={launcher}", "CMAKE_BUILD_TYPE=Debug")
    edit_while_compiling(project, begun, 0.3)
    document = project.audit()
    cell = project.cell(document)
    project.build()
    # ninja 1.12 and newer note when the compile began and see the edit; older ones do not.
    assert cell["recompiles"] == (project.revision() == 2)
    if not cell["recompiles"]:
        assert cell["cause"] == "edited-while-compiling"
