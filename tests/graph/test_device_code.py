"""Link 3 with real device code: what nvcc compiled lies in the provider, or the verdict says that it does not."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import FMHA, FOUR_UNITS, Tree, run

pytestmark = pytest.mark.cuda

PROVIDER = "libonnxruntime_providers_cuda.so"
DEVICE_LINK = "CMakeFiles/onnxruntime_providers_cuda.dir/cmake_device_link.o"
# Nothing here is run: the compiler need not optimize.
QUICK = "CMAKE_CUDA_FLAGS_RELEASE=-O0 -Xcicc -O0 -Xptxas -O0"
SCALE = "kScoreScaleNumerator = "


@pytest.fixture(scope="session")
def cuda_trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    """Whole-program code (a cubin and PTX) built by make, relocatable code of one by Ninja; each built once."""
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc on PATH")
    folder = tmp_path_factory.mktemp("cuda")
    trees = {
        "plain": Tree(folder / "plain", "Unix Makefiles", ["CMAKE_CUDA_ARCHITECTURES=80-real;90-virtual", QUICK]),
        "relocatable": Tree(folder / "relocatable", "Ninja",
                            ["CMAKE_CUDA_ARCHITECTURES=80-real", "MINIORT_RDC=ON", QUICK]),
    }
    for tree in trees.values():
        tree.configure()
        done = tree.doit("verify")
        assert done.status == 0, done.text
    return trees


@pytest.fixture(params=["plain", "relocatable"])
def each(request: pytest.FixtureRequest, cuda_trees: dict[str, Tree]) -> Tree:
    """A fresh tree of each kind; its sources are as the test before left them."""
    return fresh(cuda_trees[request.param])


@pytest.fixture
def plain(cuda_trees: dict[str, Tree]) -> Tree:
    return fresh(cuda_trees["plain"])


@pytest.fixture
def relocatable(cuda_trees: dict[str, Tree]) -> Tree:
    return fresh(cuda_trees["relocatable"])


def fresh(tree: Tree) -> Tree:
    if tree.verdict() != "fresh":
        done = tree.doit("verify")
        assert done.status == 0, done.text
    return tree


def replace(tree: Tree, header: str, old: str, new: str) -> None:
    text = tree.header(header).read_text()
    assert text.count(old) == 1
    tree.header(header).write_text(text.replace(old, new))


def other_scale(tree: Tree) -> None:
    """Edit the kernels' code."""
    one = f"{SCALE}1.0f"
    is_one = one in tree.header("kernel_forward").read_text()
    replace(tree, "kernel_forward", *((one, f"{SCALE}2.0f") if is_one else (f"{SCALE}2.0f", one)))


def wrapper(tree: Tree, body: str) -> dict[str, str]:
    """A build command of the user's: a script around the real one."""
    script = tree.root / "wrapped_build.sh"
    script.write_text(f'#!/bin/bash\nset -e\nbuild() {{ "{tree.root}/build.sh" "$@"; }}\n{body}\n')
    script.chmod(0o755)
    return {"FMHA_BUILD_COMMAND": f"{script} --build_dir {tree.build_dir.parent} --config {{config}} --build "
                                  "--parallel {jobs} --target onnxruntime_providers_cuda"}


def verdicts(judged: dict[str, Any]) -> list[str]:
    return [link["verdict"] for link in judged["links"][:3]]


def evidence(judged: dict[str, Any], link: int) -> str:
    return "\n".join(judged["links"][link - 1]["evidence"])


def mended_by_a_link_alone(tree: Tree) -> None:
    before = tree.identities()
    done = tree.doit("verify")
    assert done.status == 0, done.text
    assert {name for name in tree.remade(before) if name != "cmake_device_link"} == set()
    assert verdicts(tree.judge()) == ["fresh", "fresh", "fresh"]


@pytest.mark.parametrize("how", ["touch", "remove"])
@pytest.mark.parametrize("kept", ["before the build", "between the rounds"])
def test_an_old_object_that_a_script_puts_back_in_the_repeat_round_is_noticed(
        plain: Tree, tmp_path: Path, how: str, kept: str) -> None:
    saved, made, source = tmp_path / "old.o", plain.build_dir / "made.h", plain.root / FMHA / "fmha_sm80.cu"
    made.write_text("// by the test\n")
    text = source.read_text()
    source.write_text(f'#include "{made}"\n{text}')
    if kept == "before the build":
        shutil.copy(plain.object("fmha_sm80"), saved)
    env = wrapper(plain, f"""build "$@"
        [ -e "{saved}" ] || cp "{plain.object('fmha_sm80')}" "{saved}"
        if [ -e "{tmp_path}/second" ]; then cp "{saved}" "{plain.object('fmha_sm80')}"; else
        touch "{tmp_path}/second"; echo "// by the build" >> "{made}"; fi""")
    done = plain.doit("rebuild_fmha", f"force={how}", env=env)
    source.write_text(text)
    assert done.status == 1, done.text
    assert "compiling the units that see them once more" in done.text
    assert "put an old object there" in done.text
    assert plain.verdict() != "fresh"


def test_an_old_provider_in_place_of_the_repeated_link_is_noticed_though_that_compiled_the_unit_again(
        plain: Tree, tmp_path: Path) -> None:
    """What the second compile is held against is the object before the build, not that of the first."""
    source, provider, saved = plain.root / FMHA / "fmha_sm80.cu", plain.build_dir / PROVIDER, tmp_path / "old.so"
    shutil.copy(provider, saved)
    text, ahead = source.read_text(), time.time() + 10_000
    source.write_text(f"{text}\n__global__ void more(float* out) {{ *out = 7.0f; }}\n")
    os.utime(source, (ahead, ahead))
    os.utime(provider, (ahead, ahead))
    env = wrapper(plain, f"""build "$@"
        if [ -e "{tmp_path}/second" ]; then cp "{saved}" "{provider}"; else touch "{tmp_path}/second"; fi""")
    done = plain.doit("verify", "force=remove", env=env)
    source.write_text(text)
    assert done.out.count("Building CUDA object fmha_sm80.cu.o") == 2, done.text
    assert "linked again" in done.out, done.text
    assert done.status == 1, done.text
    assert "its device code from before the last recompile lies in the provider" in done.text


def test_an_edited_comment_is_recompiled_and_no_machine_code_changed(plain: Tree) -> None:
    before = plain.identities()
    with plain.header("kernel_forward").open("a") as file:
        file.write("// only a comment\n")
    done = plain.doit("verify")
    assert done.status == 0, done.text
    assert plain.remade(before) == FOUR_UNITS
    for unit in FOUR_UNITS:
        assert re.search(rf"^   (\S+, )*{unit}(, \S+)*: no machine code changed for compute_90, sm_80$", done.text,
                         re.M)
    judged = plain.judge()
    # Beside them may stand units that a test before compiled anew with the same outcome.
    (told,) = re.findall(r"last compile of (.*): no machine code changed for compute_90, sm_80$",
                         evidence(judged, 2), re.M)
    assert set(told.split(", ")) >= FOUR_UNITS
    assert judged["verdict"] == "fresh"
    units = {unit["name"]: unit for unit in judged["units"]}
    assert units["fmha_sm80"]["device_code"] == "unchanged"
    assert units["fmha_sm80"]["by_arch"] == dict.fromkeys(("compute_90", "sm_80"), "no machine code changed")


def test_an_edit_for_one_architecture_names_it_and_its_kernels(plain: Tree) -> None:
    replace(plain, "kernel_forward", "    if (!is_query) return;\n",
            "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n    row_sum *= 3.0f;\n#endif\n"
            "    if (!is_query) return;\n")
    done = plain.doit("rebuild_fmha")
    assert done.status == 0, done.text
    assert "\n   fmha_sm80: compute_90: device code changed (2 kernels" in done.text
    assert "; sm_80: no machine code changed\n" in done.text
    assert "      attention_kernel_batched<AttentionKernel<float, cutlass::arch::Sm80, 16, 32>>\n" in done.text
    unit = next(unit for unit in plain.report()["units"] if unit["name"] == "fmha_sm80")
    assert unit["device_code"] == "changed"
    assert len(unit["kernels"]) == 2
    assert unit["by_arch"]["sm_80"] == "no machine code changed"


def test_a_host_only_edit_in_a_provider_that_was_not_relinked_is_not_fresh_at_link_3(each: Tree) -> None:
    constant = "constexpr int kQueriesPerBlock = "
    now = 32 if f"{constant}32;" in each.header("fmha_launch_template").read_text() else 16
    replace(each, "fmha_launch_template", f"{constant}{now};", f"{constant}{48 - now};")
    kept = each.root / "kept.so"
    # Device code cannot tell: the provider that is put back holds all of it.
    done = each.doit("verify", env=wrapper(
        each, f'cp -p "{each.build_dir / PROVIDER}" "{kept}" || true\nbuild "$@"\n'
              f'cp -p "{kept}" "{each.build_dir / PROVIDER}"'))
    assert done.status == 1
    judged = each.judge()
    assert verdicts(judged)[:2] == ["fresh", "fresh"]
    assert verdicts(judged)[2] in ("stale", "unproven")
    assert "host code only" in evidence(judged, 2)
    if each.generator == "Unix Makefiles":
        assert "the device code of 7 objects lies in the provider" in evidence(judged, 3)
    mended_by_a_link_alone(each)


def test_a_provider_stripped_in_place_still_holds_the_code_but_is_no_more_what_was_linked(each: Tree) -> None:
    done = run(["strip", "--strip-unneeded", each.build_dir / PROVIDER], each.root)
    assert done.status == 0, done.text
    judged = each.judge()
    assert verdicts(judged) == ["fresh", "fresh", "unproven"]
    assert "the device code of 7 objects lies in the provider" in evidence(judged, 3)
    mended_by_a_link_alone(each)


def test_a_provider_from_before_the_edit_is_stale_at_link_3_and_linked_anew(each: Tree) -> None:
    kept = each.root / "kept.so"
    shutil.copy(each.build_dir / PROVIDER, kept)
    other_scale(each)
    assert each.doit("rebuild_fmha").status == 0
    shutil.copyfile(kept, each.build_dir / PROVIDER)
    judged = each.judge()
    assert verdicts(judged) == ["fresh", "fresh", "stale"]
    assert "fmha_sm80: its device code is not in the provider" in evidence(judged, 3)
    mended_by_a_link_alone(each)


def test_a_device_link_of_the_former_objects_is_stale_at_link_3_and_mended(relocatable: Tree) -> None:
    tree = relocatable
    kept = tree.root / "kept_device_link.o"
    shutil.copy(tree.build_dir / DEVICE_LINK, kept)
    other_scale(tree)
    # Objects and provider are the build's, written in the right order; the device link between them is the former.
    done = tree.doit("verify", env=wrapper(
        tree, f'build "$@"\ncp "{kept}" "{tree.build_dir / DEVICE_LINK}"\nrm "{tree.build_dir / PROVIDER}"\n'
              'build "$@"'))
    assert done.status == 1
    judged = tree.judge()
    assert verdicts(judged) == ["fresh", "fresh", "stale"]
    assert "the device link in" in evidence(judged, 3)
    assert judged["links"][2]["remedy"] == "doit rebuild_fmha"
    mended_by_a_link_alone(tree)


BROKEN = {"cut short": 'truncate -s -4096 "$file"', "random": 'head -c 100000 /dev/urandom > "$file"',
          "empty": ': > "$file"'}


@pytest.mark.parametrize("what", ["provider", "object"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_build_that_leaves_a_broken_file_is_not_fresh_at_link_3_and_mended(plain: Tree, what: str, how: str) -> None:
    file = plain.build_dir / PROVIDER if what == "provider" else plain.object("fmha_sm80")
    before = plain.identities()
    other_scale(plain)
    broken = wrapper(plain, f'build "$@"\nfile="{file}"\n{BROKEN[how]}')
    done = plain.doit("rebuild_fmha" if what == "object" else "verify", env=broken)
    assert done.status == 1
    if what == "object":
        # GNU ld takes an empty file for a script, the other two it names itself when it is made to link again.
        told = ("fmha_sm80: the build succeeded, but left an object that is cut short, or is none." if how == "empty"
                else "fmha_sm80.cu.o:")
        assert told in done.text
    assert "fmha_sm80" in plain.remade(before)
    judged = plain.judge()
    # An object that no linker takes must be compiled again: a receipt would stand in the way.
    assert verdicts(judged)[1:] == (["fresh", "unproven"] if what == "provider" else ["unproven", "unproven"])
    assert f"device code cannot be read: {file}: " in evidence(judged, 3)
    done = plain.doit("verify")
    assert done.status == 0, done.text


@contextmanager
def old_code_linked_in(tree: Tree, unit: str) -> Iterator[None]:
    """Every link takes the unit's device code of this moment beside the objects."""
    old = tree.root / "old_code.o"
    assert run(["objcopy", "-j", ".nv_fatbin", tree.object(unit), old], tree.root).status == 0
    link = tree.build_dir / "CMakeFiles/onnxruntime_providers_cuda.dir/link.txt"
    right = link.read_text()
    link.write_text(right.rstrip() + f" {old}\n")
    yield
    link.write_text(right)


def test_old_code_linked_beside_the_new_is_not_fresh_and_linked_anew(plain: Tree) -> None:
    with old_code_linked_in(plain, "fmha_sm80"):
        other_scale(plain)
        done = plain.doit("verify")
        assert done.status == 1
        judged = plain.judge()
        assert verdicts(judged) == ["fresh", "fresh", "unproven"]
        assert judged["links"][2]["evidence"][0] == (
            "fmha_sm80: its device code from before the last recompile lies in the provider")
    mended_by_a_link_alone(plain)


@contextmanager
def sources(tree: Tree, *names: str) -> Iterator[list[Path]]:
    """These sources (paths below `onnxruntime/`), as they were again in the end."""
    paths = [tree.root / "onnxruntime" / name for name in names]
    texts = [path.read_text() for path in paths]
    try:
        yield paths
    finally:
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)


SM70 = "contrib_ops/cuda/bert/cutlass_fmha/fmha_sm70.cu"
UNWATCHED = "core/providers/cuda/activation/activations_impl.cu"


def test_a_unit_that_was_emptied_and_restored_is_fresh_beside_another_without_kernels(each: Tree) -> None:
    with sources(each, SM70, UNWATCHED) as (unit, other):
        text = unit.read_text()
        for source in (unit, other):
            source.write_text(f"#if 0\n{source.read_text()}\n#endif\n")
        done = each.doit("verify")
        assert done.status == 0, done.text
        # The container without a kernel that the unit had lies in the provider: it is the other's.
        unit.write_text(text)
        done = each.doit("verify")
        assert done.status == 0, done.text
        assert "linked again" not in done.text
        assert verdicts(each.judge()) == ["fresh", "fresh", "fresh"]


# Weak, so that two units may have it.
KERNEL = """\
template <int kFactor> __global__ void Times(float* x) { *x *= kFactor; }
template __global__ void Times<2>(float*);
"""


def test_a_kernel_that_moved_to_an_unwatched_unit_is_not_taken_for_old_code(plain: Tree) -> None:
    with sources(plain, SM70, UNWATCHED) as (unit, other):
        text = unit.read_text()
        unit.write_text(f"#if 0\n{text}\n#endif\n{KERNEL}")
        assert plain.doit("verify").status == 0
        unit.write_text(text)
        other.write_text(KERNEL)
        done = plain.doit("verify")
        assert done.status == 0, done.text
        assert verdicts(plain.judge()) == ["fresh", "fresh", "fresh"]


def test_old_code_linked_beside_the_new_is_not_fresh_where_an_unwatched_unit_has_the_same(plain: Tree) -> None:
    with sources(plain, SM70, UNWATCHED) as (unit, other):
        text = unit.read_text()
        unit.write_text(f"#if 0\n{text}\n#endif\n{KERNEL}")
        other.write_text(KERNEL)
        assert plain.doit("verify").status == 0
        with old_code_linked_in(plain, "fmha_sm70"):
            unit.write_text(text)
            assert plain.doit("verify").status == 1
            judged = plain.judge()
            assert verdicts(judged) == ["fresh", "fresh", "unproven"]
            assert judged["links"][2]["evidence"][0] == (
                "fmha_sm70: its device code from before the last recompile lies in the provider")
        mended_by_a_link_alone(plain)


def test_the_kernels_are_listed_with_what_they_need_and_whether_the_provider_holds_them(each: Tree) -> None:
    document = json.loads(each.doit("kernels", "--json").out)
    unit = next(unit for unit in document["units"] if unit["name"] == "fmha_sm80")
    assert unit["status"] == "contained"
    # Two tiles of 16 keys of 32 numbers.
    sizes = {(kernel["arch"], kernel["shared"]) for kernel in unit["kernels"]}
    archs = ("sm_80", "compute_90") if each.generator == "Unix Makefiles" else ("sm_80",)
    assert sizes == {(arch, size) for arch in archs for size in (2048, 4096)}
    assert all(kernel["registers"] > 0 and kernel["code"] > 0 for kernel in unit["kernels"]
               if kernel["arch"] == "sm_80")
    assert document["too_large"] == []
    assert document["limits"]["sm_80"] == {"static": 49152, "block": 166912}
    plain_text = each.doit("kernels").out
    assert "fmha_sm80: contained: " in plain_text
    assert "attention_kernel_batched<AttentionKernel<float, cutlass::arch::Sm80, 16, 32>>" in plain_text
    assert "dynamic shared memory is asked for at each launch and known at run time only" in plain_text


def test_kernels_without_a_provider_say_so(plain: Tree) -> None:
    provider = plain.build_dir / PROVIDER
    provider.rename(provider.with_suffix(".away"))
    document = json.loads(plain.doit("kernels", "--json").out)
    provider.with_suffix(".away").rename(provider)
    assert {unit["status"] for unit in document["units"]} == {"no provider"}


def test_a_kernel_with_more_static_shared_memory_than_a_gpu_has_is_told_before_anyone_runs_it_there(
        plain: Tree, programs: Path) -> None:
    right = plain.header("kernel_forward").read_text()
    replace(plain, "kernel_forward", "shared_key[AK::kTileElements];", "shared_key[AK::kTileElements * KEY_TILES];")
    # ptxas would refuse it for sm_90; PTX is compiled on the machine with the GPU.
    with plain.header("kernel_forward").open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write("#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n#define KEY_TILES 64\n#else\n"
                   f"#define KEY_TILES 1\n#endif\n{text}")
    shutil.copy(programs / "scripted", plain.build_dir / "scripted")
    plain.doit("test_mea", "test_binary=scripted", "test_filter=AttentionTest.*",
               env={"FAKE_TESTS": "AttentionTest.One_MEA: open; mea"})
    told = ("fmha_sm80: attention_kernel_batched<AttentionKernel<float, cutlass::arch::Sm80, 16, 32>> has 133120 bytes"
            " of static shared memory, compute_90 allows 49152: it cannot run there")
    report = plain.report()
    assert verdicts(report) == ["fresh", "fresh", "fresh"]
    assert told in report["links"][6]["evidence"]
    done = plain.doit("kernels")
    assert told in done.out
    assert done.out.count("too large") == 5, "one a kernel of which the key's tiles alone are over 48 KB"
    plain.header("kernel_forward").write_text(right)


def test_an_update_of_the_host_compiler_that_the_environment_names_makes_the_objects_stale(
        plain: Tree, tmp_path: Path) -> None:
    compiler = tmp_path / "gcc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("gcc")} "$@"\n')
    compiler.chmod(0o755)
    named = {"NVCC_CCBIN": str(tmp_path)}
    assert plain.doit("verify", env=named).status == 0
    assert plain.verdict(named) == "fresh"
    compiler.write_text(compiler.read_text().replace("exec", "export UPDATED=1; exec"))
    judged = plain.judge(named)
    assert judged["verdict"] == "stale"
    assert any(unit["reason"].startswith("gcc changed since") for unit in judged["units"])
