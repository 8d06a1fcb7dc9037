"""An edit of what the build makes build files and headers from counts, whatever its time says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import FMHA, Tree, end, run, wait_for

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
    changed = "onnxruntime_providers_cuda.cmake changed since CMake wrote the build files"
    assert first["evidence"][0] == changed
    assert first["remedy"].startswith("doit rebuild_fmha")
    assert f"  {changed}\nfmha_sm80 would not be recompiled" in kept.doit("why", "fmha_sm80").out
    assert json.loads(kept.doit("why", "--json", "fmha_sm80").out)["pending"] == [changed]
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
    append(provider_script(kept), "# nothing new\n")
    assert kept.doit("verify").status == 0
    provider_script(kept).touch()
    assert kept.verdict() == "fresh"
    assert "-- build" in kept.doit("rebuild_fmha").out


def test_touched_build_files_hide_no_edit(kept: Tree) -> None:
    append(provider_script(kept), "# nothing new\n")
    for name in ("Makefile", "build.ninja", "CMakeFiles/cmake.check_cache"):
        if (kept.build_dir / name).exists():
            (kept.build_dir / name).touch()
    assert link(kept, 1)["verdict"] == "unproven"


def test_files_put_back_from_a_copy_with_their_times_are_no_change(kept: Tree) -> None:
    append(provider_script(kept), "# nothing new\n")
    assert kept.doit("verify").status == 0
    made = kept.build_dir / ("build.ninja" if kept.generator == "Ninja" else "Makefile")
    for path in (made, provider_script(kept)):
        aside = path.with_suffix(".aside")
        shutil.copy2(path, aside)
        aside.replace(path)
    assert kept.verdict() == "fresh"


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



def test_an_edit_while_cmake_runs_stays_an_open_question(kept: Tree) -> None:
    begun = kept.root / "begun"
    append(provider_script(kept), f'file(WRITE "{begun}" "")\nexecute_process(COMMAND sleep 2)\n')
    run = kept.start("verify")
    wait_for(begun.exists)
    # What CMake has read by now; the build files that it writes after this are newer.
    append(provider_script(kept), "target_compile_definitions(${onnxruntime_providers_cuda_target} PRIVATE NEW=1)\n")
    out = run.communicate(timeout=120)[0]
    assert run.returncode == 1, out
    first = link(kept, 1)
    assert first["verdict"] == "unproven"
    assert first["evidence"][0] == "onnxruntime_providers_cuda.cmake changed since CMake wrote the build files"
    before = kept.identities()
    assert kept.doit("verify").status == 0
    assert "fmha_sm80" in kept.remade(before)
    begun.unlink()


def test_a_cmake_that_is_gone_is_told_with_the_command_that_takes_another(tree: Tree, tmp_path: Path) -> None:
    other = Tree(tmp_path / "ort", tree.generator, tree.defines)
    other.configure()
    cache = other.build_dir / "CMakeCache.txt"
    path = next(line for line in cache.read_text().splitlines() if line.startswith("CMAKE_COMMAND:")).partition("=")[2]
    # As CMake itself writes them where it is installed there.
    for name in ("CMakeCache.txt", "CMakeFiles/rules.ninja", "Makefile", "build.ninja"):
        if (file := other.build_dir / name).exists():
            file.write_text(file.read_text().replace(path, "/opt/cmake-3.31/bin/cmake"))
            time.sleep(0.02)
    # Only make asks CMake at every build.
    if tree.generator == "Ninja":
        append(provider_script(other), "# nothing new\n")
        assert link(other, 1)["remedy"].startswith("cmake -S ")
    done = other.doit("verify")
    assert done.status == 1
    assert "/opt/cmake-3.31/bin/cmake made the build files, and is gone" in done.text
    assert run(shlex.split(done.text.splitlines()[-1]), other.root).status == 0
    done = other.doit("verify")
    assert done.status == 0, done.text


def test_a_generator_that_failed_half_way_is_run_again(kept: Tree) -> None:
    source = with_generated_header(kept, "copy")
    generator = kept.root / "cmake" / "generate.sh"
    generator.write_text('cp "$1" "$2"; exit $(grep -c broken "$1")\n')
    text = provider_script(kept).read_text()
    provider_script(kept).write_text(text.replace('${CMAKE_COMMAND} -E copy "', f'sh {generator} "'))
    assert kept.doit("verify").status == 0
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 12 // broken\n")
    os.utime(source, OLD)
    assert kept.doit("rebuild_fmha").status == 1
    # Whatever lies there now, and however new it is.
    append(kept.build_dir / "made" / "first.h", "// half\n")
    assert link(kept, 1)["verdict"] == "unproven"
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 12\n")
    os.utime(source, OLD)
    assert kept.doit("verify").status == 0
    assert "half" not in (kept.build_dir / "made" / "first.h").read_text()
    assert kept.verdict() == "fresh"


def with_unbuilt_header(tree: Tree, included: bool) -> Path:
    source = tree.root / "cmake" / "third.h.in"
    source.write_text("// 1\n")
    append(provider_script(tree), """
add_custom_command(OUTPUT made/third.h
  COMMAND ${CMAKE_COMMAND} -E make_directory made
  COMMAND ${CMAKE_COMMAND} -E copy "${PROJECT_SOURCE_DIR}/third.h.in" made/third.h
  DEPENDS "${PROJECT_SOURCE_DIR}/third.h.in")
add_custom_target(others DEPENDS made/third.h)
target_include_directories(${onnxruntime_providers_cuda_target} SYSTEM PRIVATE "${PROJECT_BINARY_DIR}")
""")
    tree.configure()
    assert tree.make("others").status == 0
    append(tree.header("kernel_forward"), f"#if {int(included)}\n#include <made/third.h>\n#endif\n")
    assert tree.doit("verify").status == 0
    return source


@pytest.mark.parametrize("included", [False, True], ids=["seen", "compiled"])
def test_a_header_of_a_target_that_is_not_built_is_put_back_and_told(kept: Tree, included: bool) -> None:
    source = with_unbuilt_header(kept, included)
    source.write_text("// 2\n")
    os.utime(source, OLD)
    # An edit beside it: the compiler looks for the header.
    kept.edit()
    done = kept.doit("rebuild_fmha")
    assert done.status == 1
    assert "third.h: outdated, and this build does not make it." in done.text
    assert kept.is_current()
    links = kept.judge()["links"]
    assert [found["verdict"] for found in links[:3]] == ["unproven", "fresh", "fresh"]
    source.touch()
    assert kept.make("others").status == 0
    assert kept.doit("verify").status == 0
    assert "-- build" in kept.doit("rebuild_fmha").out


def test_a_header_that_a_killed_build_had_set_aside_is_put_back(kept: Tree) -> None:
    source = with_unbuilt_header(kept, included=True)
    made = kept.build_dir / "made" / "third.h"
    source.write_text("// 2\n")
    kept.edit()
    begun = kept.root / "begun"
    killed = kept.start("rebuild_fmha", env={"FMHA_BUILD_COMMAND": f"sh -c 'touch {begun}; sleep 3'"})
    wait_for(begun.exists)
    end(killed)
    begun.unlink()
    assert not made.exists()
    assert kept.verdict() != "fresh"
    done = kept.doit("rebuild_fmha", "wait=1")
    assert "put back, since a build that moved them was killed: third.h" in done.text
    assert made.read_text() == "// 1\n"
    assert "third.h: outdated, and this build does not make it." in done.text
    assert kept.is_current()
    # What is told makes it, by a build of ours; one by hand, of the same content again, would prove nothing.
    source.write_text("// 1\n")
    mend = shlex.split(done.text.splitlines()[-1])
    done = kept.doit(*mend[1:])
    assert done.status == 0, done.text
    assert kept.verdict() == "fresh"


def test_inputs_that_are_folders_or_never_there_leave_nothing_open(kept: Tree) -> None:
    source = with_generated_header(kept, "copy_if_different")
    folder = kept.root / "cmake" / "templates"
    folder.mkdir()
    # What runs at every build must not write at every build: else no compile is ever of what lies there.
    text = provider_script(kept).read_text().replace("-E touch made/second.h",
                                                     "-E copy_if_different made/first.h made/second.h")
    provider_script(kept).write_text(text.replace(
        '  DEPENDS "${PROJECT_SOURCE_DIR}/first.h.in")',
        '  DEPENDS "${PROJECT_SOURCE_DIR}/first.h.in" "${PROJECT_SOURCE_DIR}/templates" always)\n'
        "add_custom_command(OUTPUT always COMMAND ${CMAKE_COMMAND} -E echo always)\n"
        "set_source_files_properties(always PROPERTIES SYMBOLIC ON)\n"
        'set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/templates")'))
    done = kept.doit("verify")
    assert done.status == 0, done.text
    assert "-- build" in kept.doit("rebuild_fmha").out
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 12\n")
    assert kept.doit("verify").status == 0
    (folder / "another").write_text("")
    assert kept.verdict() == "unproven"
    assert kept.doit("verify").status == 0
    assert kept.verdict() == "fresh"
    shutil.rmtree(folder)


def test_through_a_link_cmake_is_run_by_the_names_that_it_knows(built_trees: dict[str, Tree], tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tree = Tree(tmp_path / "link" / "ort", "Ninja", built_trees["Ninja"].defines)
    tree.configure()
    append(provider_script(tree), 'file(GLOB more CONFIGURE_DEPENDS "${bert}/cutlass_fmha/more_*.cu")\n')
    assert tree.doit("verify").status == 0
    cache = (tree.build_dir / "CMakeCache.txt").read_text()
    assert f"CMAKE_CACHEFILE_DIR:INTERNAL={tree.build_dir}\n" in cache
    (tree.root / FMHA / "more_units.cu").write_text("")
    assert "more_units.cu" in link(tree, 1)["evidence"][0]


def by_hand_with_another(source: Path, text: str, build: Callable[[], object]) -> None:
    """Something is made by hand from other content of `source`, which gets its content and its time back then."""
    kept = source.with_name("kept")
    shutil.copy2(source, kept)
    source.write_text(text)
    build()
    kept.replace(source)


def test_build_files_made_by_hand_from_what_was_taken_back_are_made_again(kept: Tree) -> None:
    script = provider_script(kept)
    by_hand_with_another(script, script.read_text()
                         + "target_compile_definitions(${onnxruntime_providers_cuda_target} PRIVATE NEW=1)\n",
                         kept.configure)
    assert link(kept, 1)["verdict"] == "unproven"
    assert kept.doit("verify").status == 0
    assert not any(b"NEW=1" in path.read_bytes() for path in kept.build_dir.rglob("*")
                   if path.name in ("flags.make", "build.ninja"))
    assert kept.verdict() == "fresh"


def test_a_header_made_by_hand_from_what_was_taken_back_is_made_again(kept: Tree) -> None:
    source = with_generated_header(kept, "copy")
    by_hand_with_another(source, "#define MINIORT_KERNEL_FORWARD_REVISION 12\n",
                         lambda: kept.make("onnxruntime_providers_cuda"))
    made = kept.build_dir / "made" / "first.h"
    assert "REVISION 12" in made.read_text()
    assert "first.h.in changed since first.h was made from it" in link(kept, 1)["evidence"]
    assert kept.doit("verify").status == 0
    assert "REVISION 11" in made.read_text()
    assert kept.verdict() == "fresh"


def test_a_linked_folder_that_a_glob_takes_for_a_file_leaves_nothing_open(kept: Tree) -> None:
    elsewhere = kept.root / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    linked = kept.root / FMHA / "linked.cu"
    linked.symlink_to(elsewhere)
    append(provider_script(kept), 'file(GLOB_RECURSE unused CONFIGURE_DEPENDS "${bert}/cutlass_fmha/*.cu")\n')
    done = kept.doit("verify")
    linked.unlink()
    assert done.status == 0, done.text
    # Not a glob that nobody asks.
    assert "linked.cu" in link(kept, 1)["evidence"][0]


def test_ctrl_c_while_cmake_runs_says_that_the_next_run_begins_with_it(kept: Tree) -> None:
    begun = kept.root / "begun"
    append(provider_script(kept), f'file(WRITE "{begun}" "")\nexecute_process(COMMAND sleep 5)\n')
    run = kept.start("rebuild_fmha")
    wait_for(begun.exists)
    run.send_signal(signal.SIGINT)
    out = run.communicate(timeout=60)[0]
    begun.unlink()
    assert run.returncode == 1, out
    assert ("onnxruntime_providers_cuda.cmake changed since CMake wrote the build files: the next run makes that first."
            in " ".join(out.split()))
    assert "links the provider" not in out


def test_build_files_that_do_not_list_what_cmake_read_are_no_proof(tree: Tree, tmp_path: Path) -> None:
    silent = Tree(tmp_path / "ort", tree.generator, tree.defines)
    silent.configure()
    assert silent.script("--update", "--cmake_extra_defines", "CMAKE_SUPPRESS_REGENERATION=ON").status == 0
    assert silent.doit("rebuild_fmha").status == 1
    first = link(silent, 1)
    assert first["verdict"] == "unproven"
    assert "do not list what CMake read (CMAKE_SUPPRESS_REGENERATION leaves that out)" in first["evidence"][0]
    done = silent.doit("rebuild_fmha")
    assert done.status == 1
    assert first["remedy"] in done.text
    assert run(shlex.split(first["remedy"]), silent.root).status == 0
    done = silent.doit("verify")
    assert done.status == 0, done.text
    append(provider_script(silent), "target_compile_definitions(${onnxruntime_providers_cuda_target} PRIVATE NEW=1)\n")
    assert silent.verdict() == "unproven"


@pytest.mark.parametrize("content", ["same", "$(date +%N)"], ids=["same", "another"])
def test_a_header_that_every_build_writes_anew_is_told_with_what_mends_it(kept: Tree, content: str) -> None:
    script = kept.root / "cmake" / "write.sh"
    append(provider_script(kept), f"""
add_custom_target(stamp ALL COMMAND sh {script} BYPRODUCTS made/stamp.h WORKING_DIRECTORY "${{PROJECT_BINARY_DIR}}")
add_dependencies(${{onnxruntime_providers_cuda_target}} stamp)
target_include_directories(${{onnxruntime_providers_cuda_target}} SYSTEM PRIVATE "${{PROJECT_BINARY_DIR}}")
""")
    append(kept.header("kernel_forward"), "#include <made/stamp.h>\n")
    script.write_text('mkdir -p made\ntest -e made/stamp.h || touch made/stamp.h\n')
    assert kept.doit("verify").status == 0
    append(kept.header("kernel_forward"), "// no object changes its bytes\n")
    script.write_text(f'mkdir -p made\necho "// {content}" > made/stamp.h\n')
    for _ in range(2):
        done = kept.doit("rebuild_fmha")
        assert done.status == 1
        told = " ".join(done.text.split())
        assert "stamp.h was written during this build and the one before" in told
        assert "copy_if_different" in told
        second = link(kept, 2)
        assert second["verdict"] == "unproven"
        assert "fmha_sm80: unproven: stamp.h was written while it was compiled" in second["evidence"]
    assert "stamp.h was written while the unit was compiled" in kept.doit("why", "fmha_sm80").text
    script.write_text('echo "// once" > made/new\ncmp -s made/new made/stamp.h || cp made/new made/stamp.h\n')
    assert kept.doit("verify").status == 0


def test_a_header_that_a_build_writes_without_naming_it_is_current_only_by_a_build(kept: Tree) -> None:
    source = kept.root / "elsewhere" / "first.h"
    source.parent.mkdir(exist_ok=True)
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 11\n")
    with_generated_header(kept, "copy")
    append(provider_script(kept), f"""
include(ExternalProject)
ExternalProject_Add(another SOURCE_DIR "{source.parent}" CONFIGURE_COMMAND "" INSTALL_COMMAND "" BUILD_ALWAYS ON
  BUILD_COMMAND ${{CMAKE_COMMAND}} -E copy_if_different "{source}" "${{PROJECT_BINARY_DIR}}/found/first.h")
file(MAKE_DIRECTORY "${{PROJECT_BINARY_DIR}}/found")
add_dependencies(${{onnxruntime_providers_cuda_target}} another)
""")
    header = kept.header("kernel_forward")
    header.write_text(header.read_text().replace("made/first.h", "found/first.h"))
    done = kept.doit("verify")
    assert done.status == 0, done.text
    first = link(kept, 1)
    assert first["verdict"] == "unproven"
    assert first["evidence"][0].startswith("first.h: the build writes it by a command that does not name it")
    before = kept.identities()
    assert kept.doit("verify").status == 0
    assert kept.remade(before) == set()
    source.write_text("#define MINIORT_KERNEL_FORWARD_REVISION 12\n")
    assert kept.verdict() == "unproven"
    assert kept.doit("verify").status == 0
    assert kept.built_revisions()["fmha_sm80"]["kernel_forward"] == 12
