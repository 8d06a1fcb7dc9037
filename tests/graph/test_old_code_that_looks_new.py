"""An edit is in the objects and the provider, or the verdict says that it is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import FMHA, FOUR_UNITS, MINIORT, Tree, end, run, wait_for


def test_an_edit_of_a_nested_header_recompiles_the_four_units_and_nothing_else(tree: Tree) -> None:
    before = tree.identities()
    revision = tree.edit("kernel_forward")
    assert tree.verdict() == "stale"
    done = tree.doit("rebuild_fmha")
    assert done.status == 0, done.text
    assert tree.remade(before) == FOUR_UNITS
    assert {tree.built_revisions()[unit]["kernel_forward"] for unit in FOUR_UNITS} == {revision}


def test_an_edit_of_the_interface_header_recompiles_the_units_outside_the_folder_too(tree: Tree) -> None:
    before = tree.identities()
    reaching = {Path(unit["source"]).name.partition(".")[0] for unit in tree.judge()["units"]}
    tree.edit("memory_efficient_attention")
    assert tree.doit("verify").status == 0
    assert tree.remade(before) == reaching
    assert {"attention", "attention_impl", "group_query_attention_impl", "multihead_attention"} < reaching
    assert tree.is_current()


def test_a_second_run_recompiles_nothing(tree: Tree) -> None:
    tree.edit()
    assert tree.doit("rebuild_fmha").status == 0
    before = tree.identities()
    done = tree.doit("rebuild_fmha")
    assert done.status == 0
    assert tree.remade(before) == set()
    assert "-- build" in done.out


def test_the_plain_build_is_caught_leaving_old_code_where_it_does_not_know_the_headers(tree: Tree) -> None:
    tree.edit()
    done = tree.make()
    assert done.status == 0
    assert not tree.is_current(), "the gap is not there: this tree proves nothing"
    assert tree.verdict() == "stale"


def test_a_header_with_an_mtime_from_2001_is_recompiled(tree: Tree) -> None:
    tree.edit()
    os.utime(tree.header("kernel_forward"), (1e9, 1e9))
    assert tree.verdict() == "stale"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_new_content_of_the_same_size_and_mtime_is_recompiled(tree: Tree) -> None:
    header = tree.header("kernel_forward")
    tree.set_revision("kernel_forward", 5)
    assert tree.doit("rebuild_fmha").status == 0
    stat = header.stat()
    tree.set_revision("kernel_forward", 6)
    os.utime(header, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert header.stat().st_size == stat.st_size
    assert tree.verdict() == "stale"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_content_reverted_to_what_was_built_is_still_fresh_and_recompiles_nothing(tree: Tree) -> None:
    header = tree.header("kernel_forward")
    built = header.read_bytes()
    before = tree.identities()
    tree.edit()
    assert tree.verdict() == "stale"
    header.write_bytes(built)
    assert tree.verdict() == "fresh"
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.remade(before) == set()


def test_an_object_replaced_from_outside_is_unproven_and_recompiled(tree: Tree) -> None:
    obj = tree.object("fmha_sm80")
    shutil.copy(tree.object("fmha_sm75"), obj)
    judged = tree.judge()
    assert judged["verdict"] == "unproven"
    assert {u["name"] for u in judged["units"] if u["verdict"] != "fresh"} == {"fmha_sm80"}
    before = tree.identities()
    assert tree.doit("verify").status == 0
    assert tree.remade(before) == {"fmha_sm80"}
    assert tree.is_current()


def test_an_object_replaced_by_old_code_with_the_size_and_mtime_of_the_new_is_noticed(tree: Tree) -> None:
    obj = tree.object("fmha_sm80")
    kept = obj.with_name("kept.o")
    shutil.copy2(obj, kept)
    tree.edit()
    assert tree.doit("rebuild_fmha").status == 0
    stat = obj.stat()
    shutil.copyfile(kept, obj)
    os.utime(obj, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    kept.unlink()
    assert tree.verdict() == "unproven"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_a_build_by_hand_is_unproven_and_ended_by_one_recompile(tree: Tree) -> None:
    tree.edit()
    for unit in FOUR_UNITS:
        (tree.root / "onnxruntime/contrib_ops/cuda/bert/cutlass_fmha" / f"{unit}.cu").touch()
    assert tree.make().status == 0
    assert tree.is_current()
    assert tree.verdict() == "unproven"
    before = tree.identities()
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.remade(before) == FOUR_UNITS
    before = tree.identities()
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.remade(before) == set()


def test_a_build_by_hand_of_something_else_does_not_matter(tree: Tree) -> None:
    before = tree.identities()
    assert tree.make().status == 0
    assert tree.verdict() == "fresh"
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.remade(before) == set()


def wrapper(tree: Tree, body: str) -> str:
    """A build command of the user's: a script around the real one."""
    script = tree.root / "wrapped_build.sh"
    script.write_text(f"#!/bin/bash\n{body}\n")
    script.chmod(0o755)
    return (f"{script} --build_dir {tree.build_dir.parent} --config {{config}} --build --parallel {{jobs}}"
            " --target onnxruntime_providers_cuda")


def test_a_header_edited_while_it_compiles_is_not_called_fresh_and_recompiled_next_time(tree: Tree) -> None:
    header = tree.header("kernel_forward")
    tree.edit()
    # The edit comes after the compile has read the header, before the build ends.
    command = wrapper(tree, f'"{tree.root}/build.sh" "$@" && sed -i "s/REVISION [0-9]*/REVISION 77/" "{header}"')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 1
    assert "edited" in done.text
    assert tree.verdict() != "fresh"
    assert tree.doit("verify").status == 0
    assert {tree.built_revisions()[unit]["kernel_forward"] for unit in FOUR_UNITS} == {77}


def test_an_edit_undone_while_the_compiler_reads_is_not_called_fresh(tree: Tree) -> None:
    header = tree.header("kernel_forward")
    kept = header.with_suffix(".kept")
    tree.edit()
    wanted = tree.revision("kernel_forward")
    command = wrapper(tree, f'cp -p "{header}" "{kept}"; sed -i "s/REVISION [0-9]*/REVISION 66/" "{header}"\n'
                            f'"{tree.root}/build.sh" "$@"; status=$?\n'
                            f'cat "{kept}" > "{header}"; touch -r "{kept}" "{header}"; rm "{kept}"; exit $status')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 1
    assert tree.revision("kernel_forward") == wanted, "the content is what it was"
    assert tree.built_revisions()["fmha_sm80"]["kernel_forward"] == 66
    assert tree.verdict() != "fresh"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_an_object_of_an_edit_that_was_undone_is_proved_by_its_bytes_where_it_was_before(tree: Tree) -> None:
    """The unit is compiled though it need not be, from what is undone by now; its bytes are those of the proved one."""
    source = tree.unit_files()["multihead_attention"]["source"]
    kept = tree.root / "kept"
    before = tree.identities()
    tree.object("fmha_sm80").unlink()
    command = wrapper(tree, f'cp -p "{source}" "{kept}"; echo "// a moment" >> "{source}"\n'
                            f'"{tree.root}/build.sh" "$@"; status=$?\n'
                            f'cat "{kept}" > "{source}"; touch -r "{kept}" "{source}"; rm "{kept}"; exit $status')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 0, done.text
    assert tree.remade(before) == {"fmha_sm80", "multihead_attention"}
    assert tree.verdict() == "fresh"


def test_an_edit_undone_between_two_compiles_of_one_build_is_proved_by_the_bytes_from_before_both(
        tree: Tree, tmp_path: Path) -> None:
    """The build writes a header of its own at first, so it compiles twice: from the edit, and from what was there."""
    source = tree.unit_files()["multihead_attention"]["source"]
    written, kept = tree.build_dir / "onnxruntime_config.h", tmp_path / "kept"
    before = tree.identities()
    tree.object("fmha_sm80").unlink()
    command = wrapper(tree, f'if [ ! -e "{kept}" ]; then cp -p "{source}" "{kept}"; echo "int more;" >> "{source}"\n'
                            f'cat "{written}" > "{kept}.h"; cat "{kept}.h" > "{written}"\n'
                            f'else cat "{kept}" > "{source}"; fi\n'
                            f'"{tree.root}/build.sh" "$@"')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert "once more" in done.out, done.text
    assert done.status == 0, done.text
    assert {"fmha_sm80", "multihead_attention"} <= tree.remade(before)
    assert tree.is_current()
    assert tree.judge()["links"][1]["verdict"] == "fresh"
    shutil.rmtree(tree.build_dir / ".fmha")  # it would be known for good that a build writes that header


def test_an_edit_undone_after_a_compile_that_had_not_seen_it_leaves_the_object_proved_by_its_bytes(tree: Tree) -> None:
    source = Path(tree.unit_files()["multihead_attention"]["source"])
    text, before = source.read_text(), tree.identities()
    tree.object("fmha_sm80").unlink()
    command = wrapper(tree, f'touch "{source}"; "{tree.root}/build.sh" "$@" && echo "int more;" >> "{source}"')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 1, done.text
    assert "edited while multihead_attention was being compiled" in done.text
    assert tree.remade(before) == {"fmha_sm80", "multihead_attention"}
    assert tree.unit_files()["multihead_attention"]["verdict"] == "stale"
    source.write_text(text)
    assert tree.verdict() == "fresh"


def test_a_unit_that_is_compiled_again_by_the_repeated_link_is_judged_by_that_compile(
        make_tree: Tree, tmp_path: Path) -> None:
    """Make compiles a source from the future in every build, and links nothing into a provider from there."""
    tree = make_tree
    source, header = Path(tree.unit_files()["fmha_sm80"]["source"]), tree.header("kernel_forward")
    provider, kept = tree.build_dir / "libonnxruntime_providers_cuda.so", tmp_path / "kept"
    ahead = time.time() + 10_000
    os.utime(source, (ahead, ahead))
    tree.object("fmha_sm75").unlink()
    command = wrapper(tree, f'if [ ! -e "{kept}" ]; then cp -p "{header}" "{kept}"\n'
                            f'sed -i "s/REVISION [0-9]*/REVISION 66/" "{header}"\n'
                            f'else cat "{kept}" > "{header}"; touch -r "{kept}" "{header}"; fi\n'
                            f'"{tree.root}/build.sh" "$@"')
    os.utime(provider, (ahead, ahead))
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert "linked again" in done.out, done.text
    os.utime(source)
    assert tree.built_revisions()["fmha_sm80"]["kernel_forward"] == tree.revision("kernel_forward")
    assert tree.unit_files()["fmha_sm80"]["verdict"] == "fresh", done.text


def test_a_build_command_that_hides_a_failed_compile_is_found_out(tree: Tree) -> None:
    with tree.header("kernel_forward").open("a") as file:
        file.write("\n#error kernel_is_broken\n")
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": wrapper(tree, f'"{tree.root}/build.sh" "$@"; exit 0')})
    assert done.status == 1
    assert "kernel_is_broken" in done.text
    assert tree.report()["verdict"] == "stale"


def test_a_failed_compile_shows_its_first_error_and_the_log(tree: Tree) -> None:
    with tree.header("kernel_forward").open("a") as file:
        file.write("\n#error kernel_is_broken\n")
    done = tree.doit("verify")
    assert done.status == 1
    assert "kernel_is_broken" in done.text
    assert ".fmha/logs/" in done.text
    assert tree.report()["task"] == "verify"
    assert tree.report()["verdict"] == "stale"


def test_a_provider_put_back_from_before_the_edit_is_not_fresh_at_link_3(tree: Tree) -> None:
    provider = tree.build_dir / "libonnxruntime_providers_cuda.so"
    old = provider.read_bytes()
    tree.edit()
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.verdict() == "fresh"
    provider.write_bytes(old)
    judged = tree.judge()
    assert judged["verdict"] == "unproven"
    assert [link["verdict"] for link in judged["links"][:3]] == ["fresh", "fresh", "unproven"]
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_a_link_that_fails_is_stale_at_link_3_although_the_objects_are_proved(tree: Tree) -> None:
    tree.edit()
    # Every object is compiled, then the build ends in front of the link.
    target = "/".join(("CMakeFiles", "onnxruntime_providers_cuda.dir"))
    body = (f'cd "{tree.build_dir}"\n'
            + (f'make -f {target}/build.make -j2 $(grep -o "^{target}/[^:]*\\.o" {target}/build.make | sort -u | '
               "grep fmha_sm)\n" if tree.generator != "Ninja" else
               f'ninja $(ninja -t targets all | grep -o "^{target}/.*fmha_sm.*\\.o")\n') + "exit 1")
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": wrapper(tree, body)})
    assert done.status == 1
    judged = tree.judge()
    assert [link["verdict"] for link in judged["links"][:3]] == ["fresh", "fresh", "stale"]
    before = tree.identities()
    assert tree.doit("verify").status == 0
    assert tree.remade(before) == set(), "objects are never touched for a link"
    assert tree.is_current()


def test_three_of_four_objects_recompiled_names_the_fourth(tree: Tree) -> None:
    tree.edit()
    obj = tree.object("fmha_sm70")
    # The wrapper puts the old object back, as a cache that was told a lie would.
    command = wrapper(tree, f'cp -p "{obj}" "{obj}.kept"; rm -f "{obj}.none"; "{tree.root}/build.sh" "$@"; s=$?\n'
                            f'mv "{obj}.kept" "{obj}"; exit $s')
    done = tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 1
    report = tree.report()
    broken = {unit["name"]: unit["verdict"] for unit in report["units"] if unit["verdict"] != "fresh"}
    assert set(broken) == {"fmha_sm70"}
    assert "fmha_sm70" in done.text
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_a_comment_is_recompiled_and_fresh(tree: Tree) -> None:
    before = tree.identities()
    with tree.header("kernel_forward").open("a") as file:
        file.write("\n// only a comment\n")
    done = tree.doit("verify")
    assert done.status == 0, done.text
    assert tree.remade(before) == FOUR_UNITS
    for unit in FOUR_UNITS:
        assert re.search(rf"^   (\S+, )*{unit}(, \S+)*: no machine code changed$", done.text, re.M)


def test_the_test_executable_is_not_relinked_for_a_shared_provider_and_that_is_fresh(tree: Tree) -> None:
    executable = tree.build_dir / "onnxruntime_provider_test"
    before = executable.stat().st_mtime_ns
    tree.edit()
    assert tree.doit("verify").status == 0
    assert executable.stat().st_mtime_ns == before


def test_a_copied_build_directory_proves_nothing(tree: Tree) -> None:
    copy = tree.build_dir.parent / "Copied"
    shutil.rmtree(copy, ignore_errors=True)
    run(["cp", "-a", tree.build_dir, copy], tree.root)
    try:
        done = tree.doit("-s", "verify", env={"FMHA_BUILD_DIR": str(copy)})
        assert done.status == 1
        assert "unproven" in done.text
        assert tree.verdict() == "fresh"
    finally:
        shutil.rmtree(copy)


@pytest.mark.parametrize("variable", ["CPATH", "NVCC_APPEND_FLAGS"])
def test_an_environment_that_changes_the_compile_is_not_fresh(make_tree: Tree, tmp_path: Path, variable: str) -> None:
    value = {"CPATH": str(tmp_path), "NVCC_APPEND_FLAGS": "-DX=1"}[variable]
    assert make_tree.verdict(env={variable: value}) == "stale"
    assert make_tree.verdict() == "fresh"


def add_flag(tree: Tree) -> None:
    lists = tree.root / "cmake" / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace("option(onnxruntime_USE_CUDA",
                                               "add_compile_definitions(NEW_FLAG=1)\noption(onnxruntime_USE_CUDA", 1))


def test_a_new_flag_in_the_build_files_recompiles(tree: Tree) -> None:
    add_flag(tree)
    tree.configure()
    judged = tree.judge()
    assert judged["verdict"] == "stale"
    assert "compile line" in judged["units"][0]["reason"]
    before = tree.identities()
    assert tree.doit("verify").status == 0
    assert tree.remade(before) >= FOUR_UNITS
    shutil.copy(MINIORT / "cmake" / "CMakeLists.txt", tree.root / "cmake" / "CMakeLists.txt")
    tree.configure()


def test_a_build_that_begins_by_running_cmake_again_is_proved_in_one_run(tree: Tree) -> None:
    add_flag(tree)
    tree.edit()
    done = tree.doit("verify")
    assert done.status == 0, done.text
    assert tree.is_current()
    shutil.copy(MINIORT / "cmake" / "CMakeLists.txt", tree.root / "cmake" / "CMakeLists.txt")
    tree.configure()


LISTED = '"${bert}/cutlass_fmha/fmha_sm80.cu"'


@pytest.mark.parametrize("globbed", [False, True], ids=["listed", "globbed"])
def test_a_unit_that_the_build_itself_adds_is_compiled_under_our_eyes(tree: Tree, globbed: bool) -> None:
    lists = tree.root / "cmake" / "onnxruntime_providers_cuda.cmake"
    text = lists.read_text()
    assert text.count(LISTED) == 1
    if globbed:
        lists.write_text(text.replace("set(onnxruntime_providers_cuda_srcs\n",
                                      'file(GLOB more CONFIGURE_DEPENDS "${bert}/cutlass_fmha/fmha_sm9*.cu")\n'
                                      "set(onnxruntime_providers_cuda_srcs ${more}\n"))
        tree.configure()
        assert tree.doit("verify").status == 0
    old = tree.root / FMHA / "fmha_sm80.cu"
    new, staged = old.with_name("fmha_sm90.cu"), tree.root / "staged"
    staged.mkdir(exist_ok=True)
    (staged / "unit").write_text(old.read_text().replace("attention_sm80", "attention_sm90"))
    (staged / "lists").write_text(text.replace(LISTED, f'{LISTED}\n  {LISTED.replace("80", "90")}'))
    adding = f'cp "{staged}/unit" "{new}"' + ("" if globbed else f'; cp "{staged}/lists" "{lists}"')
    tree.set_revision("kernel_forward", 90 + globbed)  # an object of the same bytes would be proved already
    command = wrapper(tree, f'[ -e "{new}" ] || {{ {adding}; }}\nexec "{tree.root}/build.sh" "$@"')
    done = tree.doit("verify", env={"FMHA_BUILD_COMMAND": command})
    assert "new since this build began, so compiled once more: fmha_sm90\n" in done.text
    # A CMake file that was edited during the build may have been read before or after.
    assert done.status == (0 if globbed else 1), done.text
    assert globbed or "onnxruntime_providers_cuda.cmake changed since CMake wrote the build files" in done.text
    assert tree.built_revisions()["fmha_sm90"]["kernel_forward"] == tree.revision("kernel_forward")
    before = tree.identities()
    assert tree.doit("verify").status == 0
    assert tree.remade(before) == set()
    lists.write_text(text)
    tree.configure()


# -- the state ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", [0.05, 0.3, 0.8])
def test_a_run_that_is_killed_leaves_a_right_verdict(make_tree: Tree, moment: float) -> None:
    tree = make_tree
    tree.edit()
    process = tree.start("rebuild_fmha")
    time.sleep(0.25 + moment)
    end(process)
    judged = tree.judge()
    assert judged["verdict"] != "fresh" or tree.is_current()
    done = tree.doit("verify", "wait=1")
    assert done.status == 0, done.text
    assert tree.is_current()


@pytest.mark.parametrize("garbage", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_corrupt_database_is_set_aside_and_nothing_is_lost(make_tree: Tree, garbage: bytes) -> None:
    state = make_tree.build_dir / ".fmha"
    before = make_tree.identities()
    (state / "doit.sqlite3").write_bytes(garbage)
    (state / "report.json").write_bytes(garbage)
    done = make_tree.doit("rebuild_fmha")
    assert done.status == 0, done.text
    assert make_tree.remade(before) == set()
    if garbage:
        assert "damaged" in done.text
        assert list(state.glob("doit.sqlite3.bad-*"))
    assert make_tree.report()["verdict"] == "fresh"


def test_a_database_with_a_row_that_is_no_json_is_set_aside(make_tree: Tree) -> None:
    import sqlite3

    database = make_tree.build_dir / ".fmha" / "doit.sqlite3"
    with sqlite3.connect(database) as connection:
        connection.execute("update doit set task_data = '{broken'")
    # What only looks does not read it.
    assert make_tree.doit("status").status == 0
    done = make_tree.doit("verify")
    assert done.status == 0, done.text
    assert "damaged" in done.text


def test_corrupt_receipts_are_no_receipts(make_tree: Tree) -> None:
    for receipt in (make_tree.build_dir / ".fmha" / "receipts").glob("*.json"):
        receipt.write_text('{"format": 1, "unit": ')
    assert make_tree.verdict() == "unproven"
    assert make_tree.doit("verify").status == 0
    assert make_tree.verdict() == "fresh"


def test_an_ignored_unit_makes_verify_and_test_mea_refuse(make_tree: Tree) -> None:
    tree = make_tree
    assert tree.doit("ignore", "object:fmha_sm80").status == 0
    tree.edit()
    for task in ("rebuild_fmha", "verify", "test_mea"):
        done = tree.doit(task)
        assert done.status == 1, done.text
        assert "doit forget object:fmha_sm80" in done.text
    assert not tree.is_current()
    assert tree.doit("forget", "object:fmha_sm80").status == 0
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_a_verdict_cannot_be_ignored_itself(make_tree: Tree) -> None:
    assert make_tree.doit("ignore", "verify").status == 0
    make_tree.edit()
    done = make_tree.doit("-s", "verify")
    assert done.status == 1
    assert "cannot be ignored" in done.text


@pytest.mark.parametrize("command", [("reset-dep",), ("forget",), ("forget", "build")])
def test_doits_own_state_decides_nothing(make_tree: Tree, command: tuple[str, ...]) -> None:
    tree = make_tree
    before = tree.identities()
    tree.doit(*command)
    assert tree.doit("rebuild_fmha").status == 0
    assert tree.remade(before) == set(), "nothing was stale"
    tree.edit()
    tree.doit(*command)
    assert tree.verdict() == "stale"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_parallel_doit_is_refused(make_tree: Tree) -> None:
    make_tree.edit()
    done = make_tree.doit("-n", "2", "rebuild_fmha")
    assert done.status == 1
    assert "leave out -n" in done.text


def test_an_interrupt_ends_the_build_and_tells_it_in_one_line(make_tree: Tree) -> None:
    import signal

    tree = make_tree
    tree.edit()
    marker = tree.root / "running"
    marker.unlink(missing_ok=True)
    command = wrapper(tree, f'touch "{marker}"; sleep 300 & wait')
    process = tree.start("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    wait_for(marker.exists)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 1, out
    assert "interrupted" in out
    assert "Traceback" not in out
    assert subprocess.run(["pgrep", "-f", str(tree.root / "wrapped_build.sh")], check=False).returncode == 1
    assert tree.verdict() == "stale" or tree.verdict() == "unproven"
    assert tree.doit("verify").status == 0
    assert tree.is_current()


def test_a_second_build_is_told_who_holds_the_directory_and_waits_if_asked(make_tree: Tree) -> None:
    tree = make_tree
    tree.edit()
    marker, go = tree.root / "running", tree.root / "go"
    marker.unlink(missing_ok=True)
    go.unlink(missing_ok=True)
    command = wrapper(tree, f'touch "{marker}"; while ! [ -e "{go}" ]; do sleep 0.05; done\n'
                            f'"{tree.root}/build.sh" "$@"')
    first = tree.start("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    wait_for(marker.exists)
    done = tree.doit("rebuild_fmha")
    assert done.status == 1
    assert f"process {first.pid}" in done.text
    second = tree.start("rebuild_fmha", "wait=1")
    time.sleep(0.5)
    go.touch()
    out, _ = first.communicate(timeout=60)
    assert first.returncode == 0, out
    out, _ = second.communicate(timeout=60)
    assert second.returncode == 0, out
    assert tree.is_current()
