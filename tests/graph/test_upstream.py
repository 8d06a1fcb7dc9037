"""An edit of what the build makes build files and headers from counts, whatever its time says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import FMHA, Tree

OLD = (1e9, 1e9)


def provider_script(tree: Tree) -> Path:
    return tree.root / "cmake" / "onnxruntime_providers_cuda.cmake"


def append(path: Path, text: str, times: tuple[float, float] | None = None) -> None:
    path.write_text(path.read_text() + text)
    if times:
        os.utime(path, times)


def link(tree: Tree, number: int) -> dict[str, Any]:
    return dict(tree.judge()["links"][number - 1])


@pytest.fixture
def kept(tree: Tree) -> Iterator[Tree]:
    """The tree, with its build files put back afterwards: the next test starts from the same ones."""
    yield tree
    tree.pristine()
    tree.configure()


@pytest.mark.parametrize("times", [None, OLD], ids=["now", "2001"])
def test_a_definition_added_in_a_cmake_file_is_compiled_in(kept: Tree, times: tuple[float, float] | None) -> None:
    before = kept.identities()
    append(provider_script(kept), "target_compile_definitions(${onnxruntime_providers_cuda_target} PRIVATE NEW=1)\n",
           times)
    first = link(kept, 1)
    assert first["verdict"] == "unproven"
    assert first["evidence"][0] == "onnxruntime_providers_cuda.cmake changed since CMake wrote the build files"
    assert first["remedy"].startswith("doit rebuild_fmha")
    done = kept.doit("rebuild_fmha")
    assert done.status == 0, done.text
    assert "once more" not in done.text
    assert {Path(unit["source"]).stem for unit in kept.judge()["units"]} <= kept.remade(before)
    assert kept.verdict() == "fresh"
    again = kept.identities()
    assert "-- build" in kept.doit("rebuild_fmha").out
    assert kept.remade(again) == set()


def test_a_comment_in_a_cmake_file_recompiles_nothing(kept: Tree) -> None:
    before = kept.identities()
    append(provider_script(kept), "# nothing new\n", OLD)
    assert kept.verdict() == "unproven"
    assert kept.doit("verify").status == 0
    assert kept.remade(before) == set()
    assert kept.verdict() == "fresh"


def test_a_touched_cmake_file_is_no_change(kept: Tree) -> None:
    provider_script(kept).touch()
    assert kept.verdict() == "fresh"
    assert "-- build" in kept.doit("rebuild_fmha").out


def test_touched_build_files_hide_no_edit(kept: Tree) -> None:
    append(provider_script(kept), "# nothing new\n")
    for name in ("Makefile", "build.ninja", "CMakeFiles/cmake.check_cache"):
        if (kept.build_dir / name).exists():
            (kept.build_dir / name).touch()
    assert link(kept, 1)["verdict"] == "unproven"


def test_cmake_run_by_hand_after_the_edit_leaves_nothing_open(kept: Tree) -> None:
    append(provider_script(kept), "# nothing new\n")
    kept.configure()
    assert kept.verdict() == "fresh"


def test_an_edit_of_a_configured_headers_input_is_compiled_in(kept: Tree) -> None:
    source = kept.root / "cmake" / "onnxruntime_config.h.in"
    append(source, "#define ANOTHER 1\n", OLD)
    assert kept.verdict() == "unproven"
    assert kept.doit("verify").status == 0
    assert "ANOTHER" in (kept.build_dir / "onnxruntime_config.h").read_text()
    assert kept.verdict() == "fresh"


def test_a_cmake_file_with_an_error_is_told_and_leaves_the_question_open(kept: Tree) -> None:
    append(provider_script(kept), "message(FATAL_ERROR \"no more\")\n")
    done = kept.doit("rebuild_fmha")
    assert done.status == 1
    assert "no more" in done.text
    assert kept.verdict() == "unproven"


GENERATED = """
add_custom_command(OUTPUT made/first.h made/second.h
  COMMAND ${CMAKE_COMMAND} -E make_directory made
  COMMAND ${CMAKE_COMMAND} -E %s "${PROJECT_SOURCE_DIR}/first.h.in" made/first.h
  COMMAND ${CMAKE_COMMAND} -E touch made/second.h
  DEPENDS "${PROJECT_SOURCE_DIR}/first.h.in")
target_sources(${onnxruntime_providers_cuda_target} PRIVATE "${PROJECT_BINARY_DIR}/made/first.h")
target_include_directories(${onnxruntime_providers_cuda_target} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}")
"""


def with_generated_header(tree: Tree, how: str) -> Path:
    source = tree.root / "cmake" / "first.h.in"
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 11\n")
    append(provider_script(tree), GENERATED % how)
    header = tree.header("kernel_forward")
    lines = header.read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("#define MINIORT_KERNEL_FORWARD_REVISION"))
    lines[at] = "#include <made/first.h>"
    header.write_text("\n".join([*lines, "#include <made/second.h>", ""]))
    done = tree.doit("verify")
    assert done.status == 0, done.text
    return source


@pytest.mark.parametrize("how", ["copy", "copy_if_different"])
@pytest.mark.parametrize("times", [None, OLD], ids=["now", "2001"])
def test_an_edit_of_what_a_header_is_generated_from_is_compiled_in(kept: Tree, how: str,
                                                                   times: tuple[float, float] | None) -> None:
    source = with_generated_header(kept, how)
    assert kept.verdict() == "fresh"
    assert "-- build" in kept.doit("rebuild_fmha").out
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 12\n")
    if times:
        os.utime(source, times)
    first = link(kept, 1)
    assert first["verdict"] == "unproven"
    assert "first.h.in changed since first.h was made from it" in first["evidence"]
    done = kept.doit("verify")
    assert done.status == 0, done.text
    assert kept.built_revisions()["fmha_sm80"]["kernel_forward"] == 12
    assert kept.verdict() == "fresh"
    # The same content once more: whatever the build tool thinks of its time, nothing is open.
    source.touch()
    assert kept.verdict() == "fresh"


def test_a_generator_that_fails_leaves_the_header_and_the_question(kept: Tree) -> None:
    source = with_generated_header(kept, "copy")
    source.unlink()
    assert kept.verdict() == "unproven"
    assert kept.doit("rebuild_fmha").status == 1
    assert (kept.build_dir / "made" / "first.h").exists()
    assert kept.verdict() == "unproven"


def test_a_source_that_a_glob_of_cmake_would_find_is_a_unit_after_the_build(kept: Tree) -> None:
    append(provider_script(kept), 'file(GLOB more CONFIGURE_DEPENDS "${bert}/cutlass_fmha/more_*.cu")\n'
                                  'set_source_files_properties(${more} PROPERTIES LANGUAGE CXX)\n'
                                  'target_sources(${onnxruntime_providers_cuda_target} PRIVATE ${more})\n')
    assert kept.doit("verify").status == 0
    assert kept.verdict() == "fresh"
    unit = kept.root / FMHA / "more_units.cu"
    unit.write_text('#include "contrib_ops/cuda/bert/cutlass_fmha/memory_efficient_attention.h"\n')
    first = link(kept, 1)
    assert first["verdict"] == "unproven"
    assert "more_units.cu" in first["evidence"][0]
    done = kept.doit("verify")
    assert done.status == 0, done.text
    assert "more_units" in {row["name"] for row in kept.judge()["units"]}
    assert kept.verdict() == "fresh"
    unit.unlink()
    assert kept.verdict() == "unproven"
    assert kept.doit("verify").status == 0


def test_a_glob_that_is_gone_from_cmake_asks_for_nothing(kept: Tree) -> None:
    text = provider_script(kept).read_text()
    append(provider_script(kept), 'file(GLOB more CONFIGURE_DEPENDS "${bert}/cutlass_fmha/*.cu")\n')
    assert kept.doit("verify").status == 0
    provider_script(kept).write_text(text)
    assert kept.doit("verify").status == 0
    (kept.root / FMHA / "unused.cu").write_text("")
    assert kept.verdict() == "fresh"


def test_a_dry_run_says_what_cmake_would_run_for(kept: Tree) -> None:
    append(provider_script(kept), "# nothing new\n")
    done = kept.doit("rebuild_fmha", "dry_run=1")
    assert "onnxruntime_providers_cuda.cmake changed since CMake wrote the build files" in done.text
    assert kept.verdict() == "unproven"

