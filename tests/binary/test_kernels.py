"""The kernels of an image, with NVIDIA's own tools as the second opinion."""

from __future__ import annotations

import re
import sysconfig
import time
from pathlib import Path

import pytest

from tasks.binary.image import device_image
from tasks.binary.kernels import Kernel, kernels
from tasks.binary.limits import block_limit, complaint, oversized
from tasks.binary.names import demangle, short, stable, stable_bytes
from tests.binary.toolkit import ARCHS, SOURCE, Toolkit, run

# Needs more registers than it may have: they are spilled to the stack.
HEAVY = """\
extern __shared__ float dynamic[];
__global__ void __launch_bounds__(1024, 2) heavy(float* p, int n) {
  float a[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) a[i] = p[i];
  for (int k = 0; k < n; ++k) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i + 7) % 64] + dynamic[i];
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) p[i] = a[i];
}
"""


@pytest.mark.cuda
def test_kernels_registers_stack_and_shared_memory_are_those_of_cuobjdump(toolkit: Toolkit, cuobjdump: Path) -> None:
    paths = [toolkit.compile(HEAVY, *ARCHS, name="heavy"), toolkit.compile(SOURCE, *ARCHS),
             toolkit.compile(SOURCE, "-G", "-arch=sm_80")]
    for path in paths:
        ours = {(k.arch, k.name, k.registers, k.stack, k.shared) for k in kernels(device_image(path))
                if k.arch.startswith("sm_")}
        theirs = set()
        arch = name = ""
        for line in run(cuobjdump, "-res-usage", path).splitlines():
            if line.startswith("arch = "):
                arch = line[7:].strip()
            elif found := re.match(r" Function (.*):$", line):
                name = found[1]
            elif found := re.match(r"  REG:(\d+) STACK:(\d+) SHARED:(\d+)", line):
                theirs.add((arch, name, *(int(number) for number in found.groups())))
        kernels_only = {row for row in theirs if any(row[:2] == other[:2] for other in ours)}
        assert ours
        assert ours == kernels_only
        # What is left are the device functions that -G does not inline.
        assert all("tomicAdd" in str(row[1]) for row in theirs - ours)


@pytest.mark.cuda
def test_containers_and_architectures_are_those_of_cuobjdump(toolkit: Toolkit, cuobjdump: Path) -> None:
    paths = [toolkit.compile(SOURCE, *ARCHS), toolkit.compile(HEAVY, *ARCHS, name="heavy")]
    provider = toolkit.link(paths, "-shared")
    listed = run(cuobjdump, "-lelf", "-lptx", provider)
    theirs = sorted(re.findall(r"\.(sm_\w+)\.(cubin|ptx)", listed))
    ours = sorted((e.arch.replace("compute", "sm"), "cubin" if e.kind == "elf" else e.kind)
                  for c in device_image(provider).containers for e in c.entries)
    assert ours == theirs
    assert len(ours) == 4


@pytest.mark.cuda
def test_a_kernel_is_listed_once_an_architecture_and_ptx_leaves_most_open(toolkit: Toolkit) -> None:
    listed = kernels(device_image(toolkit.compile(SOURCE, *ARCHS)))
    names = {"(anonymous namespace)::hidden(float*)", "count(int*)", "void scale<double, 32>(double*, double)",
             "void scale<float, 64>(float*, float)"}
    assert [(k.arch, k.demangled) for k in listed if k.arch == "compute_90"] == [
        ("compute_90", k.demangled) for k in listed if k.arch == "sm_90a"]
    assert {k.demangled for k in listed} == names
    assert len(listed) == 8
    ptx = {k.demangled: k for k in listed if k.arch == "compute_90"}
    hidden = ptx["(anonymous namespace)::hidden(float*)"]
    assert hidden == Kernel(hidden.name, "compute_90", None, None, 0, None)
    assert ptx["void scale<double, 32>(double*, double)"].shared == 256


@pytest.mark.cuda
def test_the_kernels_of_some_containers_are_listed_alone(toolkit: Toolkit) -> None:
    one, two = toolkit.compile(SOURCE, *ARCHS), toolkit.compile(HEAVY, *ARCHS, name="heavy")
    image = device_image(toolkit.link([one, two], "-shared"))
    assert {k.demangled for k in kernels(image, image.containers[1:])} == {"heavy(float*, int)"}


@pytest.mark.parametrize(("mangled", "name"), [
    ("_Z5scaleIfLi64EEvPT_S0_", "void scale<float, 64>(float*, float)"),
    ("__nv_static_22__704178c0_4_k_cu_table__Z2stPi", "st(int*)"),
    ("_ZN33_GLOBAL__N__704178c0_4_k_cu_table6hiddenEPf", "(anonymous namespace)::hidden(float*)"),
    ("plain_c_name", "plain_c_name"), ("_Znonsense", "_Znonsense"), ("", ""),
    ("__nv_static_9999_x", "__nv_static_9999_x"),
    ("_Z" + "9" * 40000, "_Z" + "9" * 40000)])
def test_names_are_written_as_in_the_source_where_they_are_mangled(mangled: str, name: str) -> None:
    assert demangle(mangled) == name


LARGE = """\
extern __shared__ float dynamic[];
__global__ void large(float* x) {
  __shared__ float s[SIZE]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[threadIdx.x ^ 1] + dynamic[0];
}
"""


@pytest.mark.cuda
def test_static_shared_memory_that_no_gpu_allows_is_found_in_ptx_which_no_assembler_has_seen(toolkit: Toolkit) -> None:
    fits, large = (toolkit.compile(LARGE.replace("SIZE", size), "-gencode", "arch=compute_90,code=compute_90", name="x")
                   for size in ("12288", "12289"))
    assert oversized(kernels(device_image(fits))) == []
    found = oversized(kernels(device_image(large)))
    assert [complaint(kernel) for kernel in found] == [
        "large has 49156 bytes of static shared memory, compute_90 allows 49152: it cannot run there"]


@pytest.mark.cuda
def test_the_most_that_the_assembler_allows_is_not_complained_of(toolkit: Toolkit) -> None:
    full = toolkit.compile(LARGE.replace("SIZE", "12288"), "-gencode", "arch=compute_80,code=sm_80",
                           "-gencode", "arch=compute_90,code=sm_90", name="full")
    listed = kernels(device_image(full))
    # The second with the kilobyte that the system reserves.
    assert [kernel.shared for kernel in listed] == [49152, 50176]
    assert oversized(listed) == []


@pytest.mark.parametrize(("arch", "shared", "too_large"), [
    ("sm_80", 49152, False), ("sm_80", 49153, True), ("sm_90a", 50176, False), ("sm_90a", 50177, True),
    ("compute_90", 49153, True), ("sm_120", 50176, False), ("lto_90", 99999, False), ("sm_80", None, False)])
def test_the_static_limit_is_48_kb_and_what_the_system_reserves(arch: str, shared: int | None, too_large: bool) -> None:
    assert bool(oversized([Kernel("k", arch, 1, 0, shared, 1)])) is too_large


def test_the_block_limits_are_those_that_nvidias_own_headers_compute(toolkit: Toolkit) -> None:
    """CCCL's `arch_traits.h`: shared memory of a multiprocessor without what is reserved for a block."""
    folders = (toolkit.nvcc.resolve().parent.parent, *Path(sysconfig.get_path("purelib")).glob("nvidia/cu*"))
    header = next((found for folder in folders for found in folder.glob("**/cuda/__device/arch_traits.h")), None)
    if header is None:
        pytest.skip("this toolkit has no cuda/__device/arch_traits.h")
    for block in header.read_text().split("arch_traits<arch_id::sm_")[1:]:
        own = re.search(r"max_shared_memory_per_multiprocessor\s*= (\d+) \* 1024", block)
        number = re.match(r"(\d+)>", block)
        if own and number and int(number[1]) >= 70:
            taken = 1024 if int(number[1]) >= 80 else 0
            assert block_limit(f"sm_{number[1]}") == int(own[1]) * 1024 - taken, number[1]


ID = "b4d19867_12_fmha_sm80_cu_4cd3d5c3"


@pytest.mark.parametrize(("one", "other", "name"), [
    (f"_ZN50_GLOBAL__N__{ID}_92986hiddenEPf", f"_ZN52_GLOBAL__N__{ID}_1234566hiddenEPf",
     "(anonymous namespace)::hidden(float*)"),
    (f"_ZN50_INTERNAL_{ID}_92981fEv", f"_ZN50_INTERNAL_{ID.replace('4cd3', '4cd4')}_92991fEv", None),
    (f"__nv_static_39__{ID}_9298__Z2stPi", f"__nv_static_41__{ID}_123456__Z2stPi", "st(int*)"),
    (f"__fatbinwrap_{ID}_9298", f"__fatbinwrap_{ID}_12345", None),
    ("__fatbinwrap_b4d19867_4_k_cu_table", "__fatbinwrap_b4d19868_4_k_cu_table", None),
    ("_ZN36_GLOBAL__N__92d58cc9_4_u_cu_d589cb605tableE", "_ZN36_GLOBAL__N__92d58cc9_4_u_cu_d589cb615tableE",
     "(anonymous namespace)::table"),
    ("__nv_static_25__92d58cc9_4_u_cu_d589cb60_x", "__nv_static_25__92d58cc9_4_u_cu_d589cb61_x", None)])
def test_a_name_is_the_same_whatever_process_compiled_it(one: str, other: str, name: str | None) -> None:
    assert stable(one) == stable(other)
    if name is not None:
        assert demangle(stable(one)) == name


@pytest.mark.parametrize("name", [
    f"_ZN9_GLOBAL__N__{ID}_9298", f"_ZN999_GLOBAL__N__{ID}_9298", "_GLOBAL__N__b4d19867_9999_x",
    f"__nv_static_0__{ID}_9298", "_INTERNAL_b4d19867_0__00000000_7", f"__nv_static_{'9' * 5000}__{ID}_1"])
def test_a_name_whose_lengths_are_lies_is_no_error(name: str) -> None:
    assert stable(name)


def test_a_section_full_of_digits_takes_no_time() -> None:
    began = time.monotonic()
    for name in (b"", b"NV_MODULE_ID_"):
        assert stable_bytes(b"1" * 1_000_000 + name) == b"1" * 1_000_000 + name
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(("mangled", "name"), [
    ("_Z5scaleIfLi64EEvPT_S0_", "scale<float, 64>"), ("_Z5counti", "count"), ("plain_c_name", "plain_c_name"),
    ("_ZN33_GLOBAL__N__704178c0_4_k_cu_table6hiddenEPf", "(anonymous namespace)::hidden")])
def test_short_names_have_no_parameters(mangled: str, name: str) -> None:
    assert short(mangled) == name
