"""What a linked file says of the objects it was linked from: counts and errors with bytes, the rest with nvcc."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tasks.binary.containment import Containment, code_copies, contains
from tasks.binary.fatbin import BadFatbin
from tasks.binary.fingerprint import fingerprint
from tasks.binary.image import device_image
from tests.binary import synthetic as syn
from tests.binary.toolkit import ARCHS, SOURCE, Toolkit, run

ONE, TWO, THREE = (syn.container(syn.entry(bytes([n]) * 64)) for n in (1, 2, 3))


class Folder:
    """Files made of bytes, and their containment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def of(self, provider: bytes, **objects: bytes) -> Mapping[str, Containment]:
        for name, content in {"provider": provider, **objects}.items():
            (self.path / name).write_bytes(content)
        return contains(device_image(self.path / "provider"),
                        {name: device_image(self.path / name) for name in objects})


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def status(found: Mapping[str, Containment]) -> dict[str, str]:
    return {name: one.status for name, one in found.items()}


def test_a_container_that_lies_in_the_provider_is_contained_and_another_is_missing(folder: Folder) -> None:
    found = folder.of(syn.library_with(ONE, TWO), a=syn.object_with(TWO), b=syn.object_with(THREE))
    assert status(found) == {"a": "contained", "b": "missing"}
    assert found["b"].evidence == "provider does not hold this object's device code (sm_80)"


def test_an_object_without_device_code_is_none_not_contained(folder: Folder) -> None:
    assert status(folder.of(syn.library_with(ONE), a=syn.elf([]))) == {"a": "none"}


def test_a_provider_without_device_code_contains_nothing(folder: Folder) -> None:
    assert status(folder.of(syn.elf([], kind=3), a=syn.object_with(ONE))) == {"a": "missing"}


def test_a_container_that_nothing_registers_is_missing(folder: Folder) -> None:
    found = folder.of(syn.library_with(ONE, TWO, registered=[1]), a=syn.object_with(ONE))
    assert found["a"].status == "missing"
    assert "registers it nowhere" in found["a"].evidence


def test_two_objects_with_identical_code_need_two_copies(folder: Folder) -> None:
    one, two = syn.library_with(ONE, TWO), syn.library_with(ONE, TWO, ONE)
    objects = {"a": syn.object_with(ONE), "b": syn.object_with(ONE), "c": syn.object_with(TWO)}
    assert status(folder.of(one, **objects)) == {"a": "ambiguous", "b": "ambiguous", "c": "contained"}
    assert "2 objects have identical device code" in folder.of(one, **objects)["a"].evidence
    assert status(folder.of(two, **objects)) == {"a": "contained", "b": "contained", "c": "contained"}


def test_one_object_of_four_that_the_provider_holds_in_an_older_version_is_missing_alone(folder: Folder) -> None:
    four = {name: syn.container(syn.entry(name.encode() * 64)) for name in "abcd"}
    old = syn.library_with(*({**four, "c": THREE}).values())
    objects = {name: syn.object_with(container) for name, container in four.items()}
    assert status(folder.of(old, **objects)) == {"a": "contained", "b": "contained", "c": "missing", "d": "contained"}


def test_an_object_of_several_containers_needs_them_side_by_side(folder: Folder) -> None:
    both = syn.object_with(ONE, TWO)
    assert status(folder.of(syn.library_with(THREE, ONE, TWO), a=both)) == {"a": "contained"}
    assert status(folder.of(syn.library_with(ONE, THREE, TWO), a=both)) == {"a": "missing"}


def test_whole_program_code_is_not_found_among_relocatable_code(folder: Folder) -> None:
    provider = syn.elf([syn.Part("__nv_relfatbin", ONE)], kind=3)
    assert status(folder.of(provider, a=syn.object_with(ONE))) == {"a": "missing"}


PTX = b".version 9.0\n.target sm_80\n.address_size 64\n"


def test_the_copies_of_a_former_container_are_counted_but_not_of_one_without_code(tmp_path: Path) -> None:
    kernel, variable, empty = (syn.container(syn.entry(PTX + code, kind=1)) for code in (
        b".visible .entry one()\n{\nret;\n}\n", b".global .align 4 .u32 x;\n", b""))
    (tmp_path / "old").write_bytes(syn.object_with(kernel, variable, empty))
    (tmp_path / "provider").write_bytes(syn.library_with(kernel, empty, variable, kernel))
    old = _containers_only(tmp_path / "old")
    copies = code_copies(device_image(tmp_path / "provider"), old)
    assert {size: number for (size, _), number in copies.items()} == {len(kernel): 2, len(variable): 1}
    assert not code_copies(device_image(tmp_path / "provider"), old - old)


def _containers_only(path: Path) -> set[tuple[int, str]]:
    from tasks.binary.fingerprint import container_digest

    image = device_image(path)
    with image.open() as source:
        return {(c.size, container_digest(source, c)) for c in image.containers}


# -- with the real compiler and linkers ----------------------------------------------------------------------

OTHER = SOURCE.replace("scale", "grow").replace("launch", "launch_other").replace("counter", "counted")
EDITED = SOURCE.replace("* f;", "* f + 1;")
MAIN = "void launch(float*, int*); void launch_other(float*, int*); int main() { launch(0, 0); launch_other(0, 0); }\n"
SHARED = {
    "bfd": (), "gold": ("-fuse-ld=gold",), "gc-sections": ("-Wl,--gc-sections",),
    "gold gc-sections": ("-Wl,--gc-sections", "-fuse-ld=gold"), "relr": ("-Wl,-z,pack-relative-relocs",),
}


@pytest.fixture(scope="session")
def units(toolkit: Toolkit) -> dict[str, Path]:
    one, two, _ = toolkit.compile_all([(SOURCE, "unit"), (OTHER, "other"), (EDITED, "edited")], *ARCHS)
    return {"one": one, "two": two}


def _held(provider: Path, units: Mapping[str, Path], edited: Path) -> dict[str, str]:
    objects = {name: device_image(path) for name, path in {**units, "edited": edited}.items()}
    return status(contains(device_image(provider), objects))


RIGHT = {"one": "contained", "two": "contained", "edited": "missing"}


@pytest.mark.cuda
@pytest.mark.parametrize("how", SHARED)
@pytest.mark.parametrize("strip", [False, True], ids=["whole", "stripped"])
def test_a_shared_provider_holds_its_objects_and_not_the_edited_one(toolkit: Toolkit, units: dict[str, Path], how: str,
                                                                    strip: bool) -> None:
    if "gold" in how and not shutil.which("ld.gold"):
        pytest.skip("no gold linker")
    provider = toolkit.link(list(units.values()), "-shared", *SHARED[how])
    if strip:
        run("strip", "-s", provider)
    assert _held(provider, units, toolkit.compile(EDITED, *ARCHS, name="edited")) == RIGHT


@pytest.mark.cuda
@pytest.mark.parametrize("how", [(), ("-no-pie",), ("-static",)], ids=["pie", "no-pie", "static"])
def test_a_test_executable_that_the_provider_is_linked_into_holds_its_objects(
        toolkit: Toolkit, units: dict[str, Path], tmp_path: Path, how: tuple[str, ...]) -> None:
    (tmp_path / "main.cc").write_text(MAIN)
    run("g++", "-c", tmp_path / "main.cc", "-o", tmp_path / "main.o")
    run("ar", "rcs", tmp_path / "provider.a", *units.values())
    program = toolkit.link([tmp_path / "main.o", tmp_path / "provider.a"], *how, name="program")
    edited = toolkit.compile(EDITED, *ARCHS, name="edited")
    assert _held(program, units, edited) == RIGHT
    assert _held(tmp_path / "provider.a", units, edited) == RIGHT


@pytest.mark.cuda
def test_the_container_that_nvcc_puts_first_when_it_links_is_no_objects(toolkit: Toolkit, units: dict[str, Path],
                                                                        tmp_path: Path) -> None:
    provider = tmp_path / "provider.so"
    run(toolkit.nvcc, "-shared", *units.values(), "-o", provider)
    assert len(device_image(provider).containers) == 3
    assert _held(provider, units, toolkit.compile(EDITED, *ARCHS, name="edited")) == RIGHT


@pytest.mark.cuda
def test_a_provider_from_before_the_edit_still_holds_the_former_container(toolkit: Toolkit,
                                                                          units: dict[str, Path]) -> None:
    former, new = fingerprint(units["one"]), fingerprint(toolkit.compile(EDITED, *ARCHS, name="edited"))
    before = toolkit.link(list(units.values()), "-shared")
    after = toolkit.link([toolkit.compile(EDITED, *ARCHS, name="edited"), units["two"]], "-shared")
    gone = set(former.containers) - set(new.containers)
    assert [code_copies(device_image(path), gone).total() for path in (before, after)] == [1, 0]


@pytest.mark.cuda
@pytest.mark.parametrize("flags", [ARCHS, ("-arch=sm_120",), ("-rdc=true", "-arch=sm_80")],
                         ids=["cubin and PTX", "with reserved shared memory", "relocatable"])
@pytest.mark.parametrize(("source", "has_code"), [
    ("int host() { return 1; }\n", False), ("__device__ int x;\n", True), ("__constant__ int x = 1;\n", True),
    ("__device__ int f() { return 1; }\n", True), ("__global__ void k() {}\n", True)],
    ids=["host code", "variable", "constant", "function", "kernel"])
def test_a_container_has_code_where_a_gpu_can_run_or_read_something_of_it(
        toolkit: Toolkit, flags: tuple[str, ...], source: str, has_code: bool) -> None:
    image = device_image(toolkit.compile(source, *flags))
    copies = code_copies(image, _containers_only(image.path))
    if "f()" in source and "-rdc=true" not in flags:
        has_code = False  # a device function that no kernel calls is dropped
    assert copies.total() == has_code


@pytest.mark.cuda
def test_an_object_for_another_architecture_is_missing(toolkit: Toolkit, units: dict[str, Path]) -> None:
    other = toolkit.compile(SOURCE, "-arch=sm_80")
    assert _held(toolkit.link(list(units.values()), "-shared"), units, other)["edited"] == "missing"


@pytest.mark.cuda
def test_a_truncated_provider_is_an_error_and_contains_nothing(toolkit: Toolkit, units: dict[str, Path],
                                                               tmp_path: Path) -> None:
    content = toolkit.link(list(units.values()), "-shared").read_bytes()
    cut = tmp_path / "cut.so"
    cut.write_bytes(content[:len(content) // 2])
    with pytest.raises(BadFatbin, match=r"cut\.so"):
        device_image(cut)
