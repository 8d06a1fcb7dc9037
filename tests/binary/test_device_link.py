"""The device link (relocatable device code): a stale one is told from the linked code alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tasks.binary.containment import Containment, contains
from tasks.binary.fingerprint import compare, fingerprint
from tasks.binary.image import device_image
from tasks.binary.kernels import kernels
from tasks.binary.names import demangle
from tests.binary.toolkit import Toolkit

pytestmark = pytest.mark.cuda

CALLER = """\
#include <cstdio>
extern __device__ float mix(float, int);
extern __device__ float blend(float, int);
__device__ int counter = 7;
template <int N> __global__ void both(float* x) {
  __shared__ float s[N]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[N - 1];
}
__global__ void caller(float* x) { x[threadIdx.x] = mix(x[0], 3); atomicAdd(&counter, 1); printf("one %f\\n", x[0]); }
void first(float* x) { caller<<<1, 4>>>(x); both<64><<<1, 64>>>(x); }
"""
CALLEE = """\
#include <cstdio>
extern __device__ int counter;
__constant__ float table[2] = {9.f, 8.f};
template <int N> __global__ void both(float* x) {
  __shared__ float s[N]; s[threadIdx.x] = x[0]; __syncthreads(); x[1] = s[N - 1];
}
__device__ __noinline__ float mix(float a, int b) { return a * b + 2.5f; }
__device__ __noinline__ float blend(float a, int b) { return a - b; }
__device__ float (*chosen)(float, int) = mix;
__global__ void callee(float* x) { x[0] = chosen(x[1], counter) + table[threadIdx.x & 1]; printf("two %f\\n", x[0]); }
void second(float* x) { callee<<<1, 4>>>(x); both<64><<<1, 64>>>(x); }
"""
ARCHS = ("-gencode", "arch=compute_80,code=sm_80")
SM120 = ("-gencode", "arch=compute_120,code=sm_120")


class Linked:
    """Two relocatable objects, their device link, and the provider of the three."""

    def __init__(self, toolkit: Toolkit, *flags: str) -> None:
        self._toolkit = toolkit
        self._flags = flags
        self.objects = toolkit.compile_all([(CALLER, "caller"), (CALLEE, "callee")], *flags, "-dc")
        self.device_link = toolkit.device_link(self.objects, *flags)
        self.provider = self.link(self.objects)

    def compile(self, source: str, name: str) -> Path:
        return self._toolkit.compile(source, *self._flags, "-dc", name=name)

    def link(self, objects: list[Path]) -> Path:
        """A provider of these objects with the device link of the former ones."""
        return self._toolkit.link([*objects, self.device_link], "-shared")

    def judge(self, provider: Path, objects: list[Path]) -> list[Containment]:
        found = contains(device_image(provider), {str(n): device_image(path) for n, path in enumerate(objects)})
        return list(found.values())

    def link_anew(self, objects: list[Path]) -> Path:
        """A provider of these objects with their own device link."""
        return self._toolkit.link([*objects, self._toolkit.device_link(objects, *self._flags)], "-shared")


EDITS = {
    "a device function": ("2.5f", "3.5f", r"mix\(float, int\) has other code"),
    "a constant": ("9.f", "7.f", "variable table has another content"),
    "a string literal": ("two", "TWO", r"variable \$str has another content"),
    "a function pointer's target": ("(float, int) = mix", "(float, int) = blend", "variable chosen"),
    "a kernel's name": ("void callee", "void renamed", r"kernel renamed\(float\*\) is missing"),
}


def _edited(what: str) -> str:
    old, new, _ = EDITS[what]
    return CALLEE.replace(old, new).replace("callee<<<", "renamed<<<" if "renamed" in new else "callee<<<")


@pytest.fixture(scope="module")
def linked(toolkit: Toolkit) -> Linked:
    toolkit.compile_all([(_edited(what), "callee") for what in EDITS], *ARCHS, "-dc")
    return Linked(toolkit, *ARCHS)


def test_relocatable_objects_are_contained_when_the_device_link_was_made_from_them(linked: Linked) -> None:
    for one in linked.judge(linked.provider, linked.objects):
        assert one.status == "contained"
        assert "its device link holds this object's code for sm_80" in one.evidence


def test_neither_debug_information_nor_the_architecture_hides_the_device_link(toolkit: Toolkit) -> None:
    linked = Linked(toolkit, "-G", *SM120)
    assert [one.status for one in linked.judge(linked.provider, linked.objects)] == ["contained", "contained"]
    edited = [linked.objects[0], linked.compile(CALLEE.replace("2.5f", "3.5f"), "callee")]
    assert [one.status for one in linked.judge(linked.link(edited), edited)] == ["contained", "missing"]


@pytest.mark.parametrize("what", EDITS)
def test_a_stale_device_link_is_told_after_an_edit_of(linked: Linked, what: str) -> None:
    edited = [linked.objects[0], linked.compile(_edited(what), "callee")]
    first, second = linked.judge(linked.link(edited), edited)
    assert first.status == "contained"
    assert second.status == "missing"
    assert re.search(EDITS[what][2], second.evidence), second.evidence


def test_a_call_of_another_function_is_told_where_the_code_differs_in_nothing_else(linked: Linked) -> None:
    edited = [linked.compile(CALLER.replace("= mix(", "= blend("), "caller"), linked.objects[1]]
    first, second = linked.judge(linked.link(edited), edited)
    assert (first.status, second.status) == ("missing", "contained")
    assert "caller(float*) has other code" in first.evidence
    change = compare(fingerprint(linked.objects[0]), fingerprint(edited[0]))
    assert [demangle(name) for name in change.kernels["sm_80"]] == ["caller(float*)"]


def test_a_templates_instance_may_come_from_either_object(linked: Linked) -> None:
    """Of two that differ the link takes the first, so the second object's own is nowhere."""
    objects = [linked.objects[0], linked.compile(CALLEE.replace("x[1] = s[N - 1]", "x[1] = s[N - 1] + 1"), "callee")]
    provider = linked.link_anew(objects)
    assert [one.status for one in linked.judge(provider, objects)] == ["contained", "contained"]
    assert [one.status for one in linked.judge(provider, objects[1:])] == ["missing"]


def test_ptx_alone_is_ambiguous_not_contained(toolkit: Toolkit, linked: Linked) -> None:
    flags = ("-gencode", "arch=compute_80,code=compute_80")
    objects = [toolkit.compile(CALLER, *flags, "-dc", name="caller")]
    provider = toolkit.link([*objects, linked.device_link], "-shared")
    assert {one.status for one in linked.judge(provider, objects)} == {"ambiguous"}


def test_link_time_optimisation_is_ambiguous_not_contained(toolkit: Toolkit, linked: Linked) -> None:
    objects = [toolkit.compile(CALLER, "-dlto", "-arch=sm_80", "-dc", name="caller")]
    provider = toolkit.link([*objects, linked.device_link], "-shared")
    (one,) = linked.judge(provider, objects)
    assert one.status == "ambiguous"
    assert "link-time optimisation" in one.evidence


def test_without_a_device_link_for_its_architecture_an_object_is_missing(toolkit: Toolkit, linked: Linked) -> None:
    objects = [toolkit.compile(CALLER, "-arch=sm_75", "-dc", name="caller")]
    provider = toolkit.link([*objects, linked.device_link], "-shared")
    (one,) = linked.judge(provider, objects)
    assert one.status == "missing"
    assert "has code for sm_75" in one.evidence


def test_kernels_of_a_provider_are_those_that_the_device_link_made(linked: Linked) -> None:
    listed = kernels(device_image(linked.provider))
    assert {(k.arch, k.demangled) for k in listed} == {
        ("sm_80", name) for name in ("caller(float*)", "callee(float*)", "void both<64>(float*)")}
    assert all(k.shared is not None for k in listed)
    assert {k.shared for k in kernels(device_image(linked.objects[0]))} == {None}
