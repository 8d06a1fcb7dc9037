"""What the build tool recorded, or lost, on a real build: what the audit says is what an edit and a build then do."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from .conftest import MAKE, NINJA, PROVIDER, Built, Project, agrees, kinds


@pytest.mark.parametrize("define", ["OBJECTS=OFF", "OBJECTS=ON", "folder_kind=SYSTEM",
                                    "CMAKE_DEPENDS_USE_COMPILER=OFF"])
def test_a_header_in_the_records_is_tracked(built: Built, define: str) -> None:
    project = built(define)
    document = project.audit()
    assert project.cell(document)["state"] == "tracked"
    assert document["tracked"]
    agrees(project, document, lambda: project.edit(2), stale=False)


def test_the_build_tool_itself_agrees_once_its_records_are_settled(built: Built) -> None:
    project = built("folder_kind=SYSTEM").build()
    (project.build_dir / ".fmha").mkdir()
    cells = [cell for row in project.audit()["units"] for cell in row["cells"]]
    assert [cell["confirmed"] for cell in cells] == [True] * 4
    # The copies that ninja was asked on are gone; what a look keeps of the build files stays.
    assert {path.name for path in (project.build_dir / ".fmha").iterdir()} == {"closures", "outline"}


def test_the_target_of_a_linked_header_is_tracked(project: Project) -> None:
    real = project.root / "kernel_forward_real.h"
    project.header.rename(real)
    project.header.symlink_to(real)
    project.configure().build()
    agrees(project, project.audit(), lambda: project.edit(2, real), stale=False)


def test_user_headers_only_leaves_out_a_system_folder(built: Built) -> None:
    project = built("USER_ONLY=ON", "folder_kind=SYSTEM")
    document = project.audit()
    assert kinds(document) == {"system-headers"}
    assert project.cell(document)["state"] == "not tracked"
    agrees(project, document, lambda: project.edit(2), stale=True)


def test_without_a_depfile_flag_nothing_is_known(built: Built) -> None:
    project = built("NO_DEPFILE=ON")
    document = project.audit()
    assert kinds(document) == {"no-depfile-flag"}
    assert project.cell(document)["state"] == "nothing known"
    agrees(project, document, lambda: project.edit(2), stale=True)


def test_a_depfile_that_no_build_tool_reads_is_told_from_one_that_is_used(built: Built) -> None:
    project = built("NO_DEPFILE=ON", "CMAKE_CXX_FLAGS=-MD")
    document = project.audit()
    row = document["units"][0]["record"]
    assert (row["depfile"], row["depfile_used"], row["files"]) == ("whole", False, None)
    assert kinds(document) == {"depfile-not-read"}
    agrees(project, document, lambda: project.edit(2), stale=True)


def _with_old_time(project: Project) -> None:
    project.edit(2)
    os.utime(project.header, (978307200, 978307200))


def test_an_edit_under_an_old_time_is_not_seen(built: Built) -> None:
    project = built().build()
    _with_old_time(project)
    document = project.audit()
    assert kinds(document) == {"inode-changed"}
    agrees(project, document, lambda: None, stale=True)


def test_a_receipt_decides_whether_an_unmoved_time_hides_another_content(built: Built,
                                                                         write_receipts: Callable) -> None:
    project = built().build()
    write_receipts(project)
    project.header.chmod(0o600)
    document = project.audit()
    assert document["tracked"]
    _with_old_time(project)
    document = project.audit()
    assert kinds(document) == {"old-mtime"}
    agrees(project, document, lambda: None, stale=True)


def test_a_link_set_to_an_older_file_is_not_seen(project: Project) -> None:
    for number in (1, 2):
        project.edit(number, project.root / f"r{number}.h")
    project.header.unlink()
    project.header.symlink_to(project.root / "r1.h")
    project.configure().build()
    project.header.unlink()
    project.header.symlink_to(project.root / "r2.h")
    document = project.audit()
    assert kinds(document) == {"link-repointed"}
    agrees(project, document, lambda: None, stale=True)


def test_a_new_header_that_shadows_the_recorded_one_is_not_seen(built: Built) -> None:
    project = built().build()
    shadow = project.root / "shadow" / "contrib_ops" / "cuda" / "bert" / "cutlass_fmha"
    shadow.mkdir(parents=True)
    document = project.audit()
    assert document["tracked"]
    project.edit(2, shadow / "kernel_forward.h")
    document = project.audit()
    assert kinds(document) == {"shadowed"}
    assert str(shadow) in document["causes"][0]["text"]
    agrees(project, document, lambda: None, stale=True)


def test_a_depfile_deleted_before_make_took_it_over_leaves_nothing_known(built: Built) -> None:
    project = built()
    for path in project.build_dir.rglob("*.o.d"):
        path.unlink()
    document = project.audit()
    assert project.cell(document)["state"] == ("nothing known" if project.is_make else "tracked")
    assert kinds(document) == ({"records-deleted"} if project.is_make else set())
    agrees(project, document, lambda: project.edit(2), stale=project.is_make)


@pytest.mark.parametrize("content", [b"", b"x.o: \\\n  /nowhere/", b"no rule at all\n"],
                         ids=["empty", "truncated", "malformed"])
@MAKE
def test_a_depfile_that_is_no_whole_one_leaves_nothing_known(built: Built, content: bytes) -> None:
    project = built()
    for path in project.build_dir.rglob("*.o.d"):
        path.write_bytes(content)
    document = project.audit()
    assert project.cell(document)["state"] == "nothing known"
    assert kinds(document) == {"depfile-unusable"}
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
    assert kinds(document) == ({"make-stops"} if project.is_make else {"records-deleted"})
    # make stops; ninja compiles what it has no record of.
    agrees(project, document, lambda: project.edit(2), stale=project.is_make)


@MAKE
def test_what_make_reads_counts_and_not_what_cmake_keeps_for_itself(built: Built) -> None:
    project = built().build()
    for path in project.record_files("compiler_depend.make"):
        path.write_text("# emptied\n")
    document = project.audit()
    assert project.cell(document)["state"] == "nothing known"
    agrees(project, document, lambda: project.edit(2), stale=True)


@NINJA
def test_an_object_that_is_newer_than_its_record_is_compiled_again(built: Built) -> None:
    project = built()
    assert [row["due"] for row in project.audit()["units"]] == [None, None]
    for path in project.objects():
        os.utime(path)
    touched = [path.stat().st_mtime_ns for path in project.objects()]
    assert all("newer than ninja's record" in row["due"] for row in project.audit()["units"])
    project.build()
    assert all(path.stat().st_mtime_ns > time for path, time in zip(project.objects(), touched, strict=True))


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
    assert "not-folded" in kinds(project.audit(), "findings")
    project.edit(2)
    project.run("make", f"{PROVIDER}/fast")
    assert project.revision() == 1
    project.build()
    assert project.revision() == 2
    project.build()
    assert "not-folded" not in kinds(project.audit(), "findings")
