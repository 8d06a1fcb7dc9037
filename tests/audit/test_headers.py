"""Headers of every kind: odd names, conditions, links, other suffixes, files that are gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import FOLDER, Project
from .test_surroundings import edit_while_compiling

Built = Callable[..., Project]
ODD = ("sp ace", "do$lar", "ha#sh", "co:lon")


@pytest.mark.parametrize("name", ODD)
def test_a_folder_with_an_odd_name_is_audited_as_the_build_tool_reads_it(project: Project, name: str) -> None:
    odd = project.folder / name
    odd.mkdir()
    (odd / "inner.h").write_text("#define REVISION 1\n")
    project.header.write_text(f'#include "{name}/inner.h"\n')
    project.configure().build()
    (project.build_dir / ".fmha").mkdir()
    headers = f"{FOLDER}/**/*.h"
    document = project.audit(headers=f"'{headers}'")
    before = project.cell(document, header="inner.h")
    project.edit(2, odd / "inner.h")
    project.build(check=False)
    assert before["recompiles"] == (project.revision() == 2), before
    settled = project.audit(headers=f"'{headers}'")
    cell = project.cell(settled, header="inner.h")
    project.edit(3, odd / "inner.h")
    project.build(check=False)
    assert cell["recompiles"] == (project.revision() == 3), cell


def test_a_source_that_another_source_includes_counts_as_a_header(project: Project) -> None:
    inner = project.folder / "inner.cu"
    project.edit(1, inner)
    project.header.write_text('#include "inner.cu"\n')
    project.configure().build()
    document = project.audit(headers=f"{FOLDER}/inner.cu {FOLDER}/*.h")
    assert project.cell(document, header="inner.cu")["state"] == "tracked"
    project.edit(2, inner)
    assert project.build().revision() == 2


def test_a_checkout_behind_a_link_is_audited_as_without(project: Project) -> None:
    link = project.root.with_name("link")
    link.symlink_to(project.root)
    project.root = link
    project.build_dir = link / "build" / "Linux" / "Release"
    project.configure().build().build()
    (project.build_dir / ".fmha").mkdir()
    document = project.audit()
    assert document["tracked"]
    assert project.cell(document)["confirmed"] is True
    project.edit(2)
    assert project.build().revision() == 2


def test_a_new_include_is_told_from_a_lost_record(built: Built) -> None:
    project = built().build()
    project.edit(1, project.folder / "brand_new.h")
    project.header.write_text('#include "brand_new.h"\n')
    document = project.audit()
    cell = project.cell(document, header="brand_new.h")
    assert (cell["state"], cell["recompiles"], cell["cause"]) == ("not tracked", True, "new-include")
    project.build()
    assert project.cell(header="brand_new.h")["state"] == "tracked"


def test_a_header_that_a_condition_leaves_out_is_settled_by_the_compiler(built: Built, project: Project) -> None:
    (project.folder / "sm90.h").write_text("// Hopper only\n")
    project.header.write_text('#define REVISION 1\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n'
                              '#include "sm90.h"\n#endif\n')
    built().build()
    cell = project.cell(header="sm90.h")
    assert (cell["state"], cell["recompiles"], cell["cause"]) == ("not tracked", False, "not-opened")
    document = project.audit(compiler="1")
    assert document["tracked"]
    surplus = [found for found in document["findings"] if found["kind"] == "closure-surplus"]
    assert {header for found in surplus for header in found["headers"]} == {str(project.folder / "sm90.h")}


def test_the_compiler_finds_no_fault_in_the_closures(built: Built) -> None:
    project = built()
    document = project.audit(compiler="1")
    assert {found["kind"] for found in document["findings"]} & {"closure-fault", "compiler-failed",
                                                                "closure-surplus"} == set()


def test_a_header_that_the_closure_misses_is_told_as_a_fault_of_ours(project: Project, tmp_path: Path) -> None:
    hidden = project.folder / "hidden.h"
    hidden.write_text("// a compiler that is a script brings it in: no build file says so\n")
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nexec g++ -include {hidden} "$@"\n')
    compiler.chmod(0o755)
    project.configure(f"CMAKE_CXX_COMPILER={compiler}").build()
    plain = project.audit()
    assert not any(cell["header"].endswith("hidden.h") for row in plain["units"] for cell in row["cells"])
    document = project.audit(compiler="1")
    faults = [found for found in document["findings"] if found["kind"] == "closure-fault"]
    assert {header for found in faults for header in found["headers"]} == {str(hidden)}
    assert project.cell(document, header="hidden.h")["state"] == "tracked"


def test_a_unit_that_does_not_compile_is_told_and_changes_nothing_else(built: Built, project: Project) -> None:
    built().build()
    (project.folder / "fmha_sm50.cu").write_text('#include "fmha_launch_template.h"\n#include "gone.h"\n')
    document = project.audit(compiler="1")
    failed = [found for found in document["findings"] if found["kind"] == "compiler-failed"]
    assert [found["units"] for found in failed] == [["fmha_sm50"]]
    assert "gone.h" in failed[0]["text"]


def test_a_record_of_nothing_but_a_file_that_is_gone_says_nothing(built: Built) -> None:
    project = built()
    for path in project.build_dir.rglob("*.o.d"):
        path.write_text("x.o: /tmp/tmpxft_0000_gone.cpp1.ii\n")
    document = project.audit()
    if project.is_make:
        assert project.cell(document)["state"] == "nothing known"
        # make remakes what depends on a missing file.
        assert project.cell(document)["recompiles"]
    else:
        assert document["tracked"]
    project.edit(2)
    assert project.build().revision() == 2


def test_a_missing_file_beside_the_headers_in_a_record_is_not_fatal(project: Project) -> None:
    project.header.write_text('#line 1 "nowhere.h"\n#define REVISION 1\n')
    project.configure().build()
    document = project.audit(compiler="1")
    assert project.cell(document)["state"] == "tracked"
    project.edit(2)
    assert project.build().revision() == 2


def test_before_the_first_build_nothing_is_known_and_all_is_compiled(project: Project) -> None:
    project.configure()
    document = project.audit()
    cell = project.cell(document)
    assert (cell["state"], cell["recompiles"], cell["cause"]) == ("nothing known", True, "not-compiled")


@pytest.mark.cuda
@pytest.mark.parametrize("generator", ["Unix Makefiles"])
def test_nvcc_writes_the_depfile_early_so_that_make_users_see_a_late_edit(project: Project) -> None:
    lists = project.root / "cmake" / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("LANGUAGES CXX)", "LANGUAGES CXX CUDA)", 1)
                     .replace("PROPERTIES LANGUAGE CXX", "PROPERTIES LANGUAGE CUDA")
                     .replace("${fmha}/fmha_sm50.cu ", ""))
    with (project.folder / "fmha_sm80.cu").open("a") as unit:
        unit.write("#include <functional>\n#include <map>\n__global__ void kernel(float* x) { *x *= REVISION; }\n"
                   "void launch(float* x) { std::map<int, std::function<void()>> found; found[0] = [=] {"
                   " kernel<<<1, 1>>>(x); }; found[0](); }\n")
    project.configure("CMAKE_CUDA_ARCHITECTURES=80")
    depfile = project.build_dir.joinpath("CMakeFiles", "onnxruntime_providers_cuda.dir",
                                         *(project.folder / "fmha_sm80.cu.o.d").parts[1:])
    edit_while_compiling(project, depfile, 0.1)
    cell = project.cell()
    assert (cell["state"], cell["recompiles"], cell["cause"]) == ("not tracked", False, "edited-while-compiling")
    assert project.build().revision() == 1
