"""Each known condition on a real build: what the audit says is what an edit and a build then do."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import PROVIDER, Project

Built = Callable[..., Project]
# What exists for one generator alone: ninja takes a depfile over right after the compile.
MAKE = pytest.mark.parametrize("generator", ["Unix Makefiles"])
NINJA = pytest.mark.parametrize("generator", ["Ninja"])


def _agrees(project: Project, document: dict, edit: Callable[[], object], stale: bool) -> None:
    """The audit's cells, then the edit and the build: both say `stale`."""
    cell = project.cell(document)
    edit()
    project.build(check=False)
    held = project.revision()
    assert (held != 2) == stale, f"the build holds revision {held}"
    assert cell["recompiles"] == (not stale), cell
    assert cell["state"] != ("tracked" if stale else "not tracked"), cell
    assert cell["confirmed"] is not False, cell
    for row in document["units"]:
        assert {c["state"] for c in row["cells"] if c["header"] == cell["header"]} == {cell["state"]}


def _kinds(document: dict, where: str = "causes") -> set[str]:
    return {found["kind"] for found in document[where]}


@pytest.mark.parametrize("define", ["OBJECTS=OFF", "OBJECTS=ON", "folder_kind=SYSTEM",
                                    "CMAKE_DEPENDS_USE_COMPILER=OFF"])
def test_a_header_in_the_records_is_tracked(built: Built, define: str) -> None:
    project = built(define)
    document = project.audit()
    assert project.cell(document)["state"] == "tracked"
    assert document["tracked"]
    _agrees(project, document, lambda: project.edit(2), stale=False)


def test_the_build_tool_itself_agrees_once_its_records_are_settled(built: Built) -> None:
    project = built("folder_kind=SYSTEM").build()
    (project.build_dir / ".fmha").mkdir()
    cells = [cell for row in project.audit()["units"] for cell in row["cells"]]
    assert [cell["confirmed"] for cell in cells] == [True] * 4
    assert list((project.build_dir / ".fmha").iterdir()) == []


def test_the_target_of_a_linked_header_is_tracked(project: Project) -> None:
    real = project.root / "kernel_forward_real.h"
    project.header.rename(real)
    project.header.symlink_to(real)
    project.configure().build()
    _agrees(project, project.audit(), lambda: project.edit(2, real), stale=False)


def test_user_headers_only_leaves_out_a_system_folder(built: Built) -> None:
    project = built("USER_ONLY=ON", "folder_kind=SYSTEM")
    document = project.audit()
    assert _kinds(document) == {"system-headers"}
    assert project.cell(document)["state"] == "not tracked"
    _agrees(project, document, lambda: project.edit(2), stale=True)


def test_without_a_depfile_flag_nothing_is_known(built: Built) -> None:
    project = built("NO_DEPFILE=ON")
    document = project.audit()
    assert _kinds(document) == {"no-depfile-flag"}
    assert project.cell(document)["state"] == "nothing known"
    _agrees(project, document, lambda: project.edit(2), stale=True)


def test_a_depfile_that_no_build_tool_reads_is_told_from_one_that_is_used(built: Built) -> None:
    project = built("NO_DEPFILE=ON", "CMAKE_CXX_FLAGS=-MD")
    document = project.audit()
    row = document["units"][0]["record"]
    assert (row["depfile"], row["depfile_used"], row["files"]) == ("whole", False, None)
    assert _kinds(document) == {"depfile-not-read"}
    _agrees(project, document, lambda: project.edit(2), stale=True)


def _with_old_time(project: Project) -> None:
    project.edit(2)
    os.utime(project.header, (978307200, 978307200))


def test_an_edit_under_an_old_time_is_not_seen(built: Built) -> None:
    project = built().build()
    _with_old_time(project)
    document = project.audit()
    assert _kinds(document) == {"inode-changed"}
    _agrees(project, document, lambda: None, stale=True)


def test_a_receipt_decides_whether_an_unmoved_time_hides_another_content(built: Built,
                                                                         write_receipts: Callable) -> None:
    project = built().build()
    write_receipts(project)
    project.header.chmod(0o600)
    document = project.audit()
    assert document["tracked"]
    _with_old_time(project)
    document = project.audit()
    assert _kinds(document) == {"old-mtime"}
    _agrees(project, document, lambda: None, stale=True)


def test_a_link_set_to_an_older_file_is_not_seen(project: Project) -> None:
    for number in (1, 2):
        project.edit(number, project.root / f"r{number}.h")
    project.header.unlink()
    project.header.symlink_to(project.root / "r1.h")
    project.configure().build()
    project.header.unlink()
    project.header.symlink_to(project.root / "r2.h")
    document = project.audit()
    assert _kinds(document) == {"link-repointed"}
    _agrees(project, document, lambda: None, stale=True)


def test_a_new_header_that_shadows_the_recorded_one_is_not_seen(built: Built) -> None:
    project = built().build()
    shadow = project.root / "shadow" / "contrib_ops" / "cuda" / "bert" / "cutlass_fmha"
    shadow.mkdir(parents=True)
    document = project.audit()
    assert document["tracked"]
    project.edit(2, shadow / "kernel_forward.h")
    document = project.audit()
    assert _kinds(document) == {"shadowed"}
    assert str(shadow) in document["causes"][0]["text"]
    _agrees(project, document, lambda: None, stale=True)


def test_a_depfile_deleted_before_make_took_it_over_leaves_nothing_known(built: Built) -> None:
    project = built()
    for path in project.build_dir.rglob("*.o.d"):
        path.unlink()
    document = project.audit()
    assert project.cell(document)["state"] == ("nothing known" if project.is_make else "tracked")
    assert _kinds(document) == ({"records-deleted"} if project.is_make else set())
    _agrees(project, document, lambda: project.edit(2), stale=project.is_make)


@pytest.mark.parametrize("content", [b"", b"x.o: \\\n  /nowhere/", b"no rule at all\n"],
                         ids=["empty", "truncated", "malformed"])
@MAKE
def test_a_depfile_that_is_no_whole_one_leaves_nothing_known(built: Built, content: bytes) -> None:
    project = built()
    for path in project.build_dir.rglob("*.o.d"):
        path.write_bytes(content)
    document = project.audit()
    assert project.cell(document)["state"] == "nothing known"
    assert _kinds(document) == {"depfile-unusable"}
    cell = project.cell(document)
    project.edit(2)
    project.build(check=False)
    assert (project.revision() == 2) == cell["recompiles"]


def test_deleted_records_leave_nothing_known(built: Built) -> None:
    project = built().build()
    if project.is_make:
        for path in project.record_files("compiler_depend.make", "compiler_depend.internal"):
            path.unlink()
    else:
        (project.build_dir / ".ninja_deps").unlink()
    document = project.audit()
    assert project.cell(document)["state"] == "nothing known"
    assert _kinds(document) == ({"make-stops"} if project.is_make else {"records-deleted"})
    # make stops; ninja compiles what it has no record of.
    _agrees(project, document, lambda: project.edit(2), stale=project.is_make)


@NINJA
def test_a_log_of_ninja_that_is_cut_counts_as_far_as_ninja_reads_it(built: Built) -> None:
    project = built()
    log = project.build_dir / ".ninja_deps"
    log.write_bytes(log.read_bytes()[:-6])
    document = project.audit()
    states = sorted(project.cell(document, unit)["state"] for unit in ("fmha_sm50", "fmha_sm80"))
    assert states == ["nothing known", "tracked"]
    size = log.stat().st_size
    project.audit()
    assert log.stat().st_size == size
    project.edit(2)
    project.build()
    assert [project.revision(unit=unit) for unit in ("fmha_sm50", "fmha_sm80")] == [2, 2]


@MAKE
def test_a_fast_target_does_not_see_what_is_not_folded_in_yet(built: Built) -> None:
    project = built()
    assert "not-folded" in _kinds(project.audit(), "findings")
    project.edit(2)
    project.run("make", f"{PROVIDER}/fast")
    assert project.revision() == 1
    project.build()
    assert project.revision() == 2
    project.build()
    assert "not-folded" not in _kinds(project.audit(), "findings")


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
    assert _kinds(document) == ({"copied"} if project.is_make else set())
    _agrees(project, document, lambda: None, stale=project.is_make)


@pytest.mark.parametrize("depends", [False, True])
def test_a_test_target_that_leaves_the_provider_alone_is_told(built: Built, depends: bool) -> None:
    project = built(f"TEST_DEPENDS={'ON' if depends else 'OFF'}")
    document = project.audit()
    assert ("test-target" in _kinds(document, "findings")) == (not depends)
    project.edit(2)
    project.build("onnxruntime_provider_test")
    assert project.revision() == (2 if depends else 1)
    assert document["tracked"]


def test_a_copy_that_another_target_makes_after_its_build_is_told_when_it_is_old(built: Built) -> None:
    project = built().build("python_module")
    copy = project.build_dir / "capi" / f"lib{PROVIDER}.so"
    assert "post-build-copy" not in _kinds(project.audit(), "findings")
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
    assert _kinds(document) == {"launcher"}
    assert "ccache" in document["causes"][0]["text"]
    _agrees(project, document, lambda: project.edit(2), stale=True)


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
    assert all(path.stat().st_mtime_ns > project.header.stat().st_mtime_ns for path in project.objects()), "too late"


@NINJA
def test_an_edit_while_the_compile_runs_is_doubted(project: Project, tmp_path: Path) -> None:
    for name in ("fmha_sm50", "fmha_sm80"):
        (project.folder / f"{name}.cu").write_text(_SLOW.format(name=name))
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
