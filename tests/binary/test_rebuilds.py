"""What a fingerprint says of two compiles of one unit, in every mode, by the real nvcc."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.binary.fingerprint import DeviceChange, Fingerprint, compare, fingerprint
from tasks.binary.image import device_image
from tasks.binary.names import demangle
from tests.binary.toolkit import SOURCE, Toolkit, run

pytestmark = pytest.mark.cuda

SM80 = ("-gencode", "arch=compute_80,code=sm_80")
SM120 = ("-gencode", "arch=compute_120,code=sm_120")
LINEINFO, DEBUG, SEPARATE = "-lineinfo, zstd, with PTX", "-G, uncompressed, with PTX", "-dc -lineinfo, LZ4, with PTX"
MODES: dict[str, tuple[str, ...]] = {
    "plain": SM80,
    "two architectures and PTX": ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90a,code=sm_90a",
                                  "-gencode", "arch=compute_90,code=compute_90", "--threads", "2"),
    "-lineinfo, zstd, with PTX": ("-lineinfo", "-compress-mode", "size", "-arch=sm_80"),
    "-G, uncompressed, with PTX": ("-G", "-compress-mode", "none", "-arch=sm_80"),
    "-dc -lineinfo, LZ4, with PTX": ("-dc", "-lineinfo", "-compress-mode", "speed", "-arch=sm_80"),
    "sm_120 -lineinfo": ("-lineinfo", *SM120),
}
# All at once that must not matter: a comment that moves every line, another mtime, another folder.
COMMENT = "// nothing but\n// a comment\n" + SOURCE
# The template's second instance is edited, and with it the first.
EDITED = SOURCE.replace("* f;", "* f + 1;")
HOST_ONLY = SOURCE.replace("<<<1, 64>>>", "<<<1, 32>>>")
BOUNDED = SOURCE.replace("__global__ void count", "__global__ void __launch_bounds__(32) count")
NEW_KERNEL = [SOURCE.replace(place, f"__global__ void aaa(float* x) {{ *x = 1; }}\n{place}")
              for place in ("namespace {", "void launch")]
DATA = {"constant": SOURCE.replace("{1.f, 2.f", "{1.f, 5.f"), "variable": SOURCE.replace("counter = 7", "counter = 8"),
        "string literal": SOURCE.replace('"%d', '"%i')}


@dataclass(frozen=True)
class Prints:
    base: Fingerprint
    neutral: Fingerprint
    edited: Fingerprint
    host_only: Fingerprint
    objects: tuple[Path, ...]


@pytest.fixture(scope="module")
def prints(toolkit: Toolkit) -> dict[str, Prints]:
    def make(mode: str) -> tuple[Path, ...]:
        # A folder a mode: threads must not touch each other's source.
        flags, place = MODES[mode], f"mode{list(MODES).index(mode)}"
        return (toolkit.compile(SOURCE, *flags, place=place),
                toolkit.again(COMMENT, *flags, place=f"moved{place}"),
                toolkit.compile(EDITED, *flags, place=place),
                toolkit.again(HOST_ONLY, *flags, place=place))

    with ThreadPoolExecutor(2) as pool:
        pool.map(lambda source: _plain(toolkit, source), [*NEW_KERNEL, *DATA.values(), BOUNDED])
        made = dict(zip(MODES, pool.map(make, MODES), strict=True))
    return {mode: Prints(*(fingerprint(path) for path in paths), paths) for mode, paths in made.items()}


def _changed(change: DeviceChange) -> set[str]:
    return {demangle(name) for names in change.kernels.values() for name in names}


@pytest.mark.parametrize("mode", MODES)
def test_a_comment_another_mtime_and_another_folder_change_no_machine_code(prints: dict[str, Prints],
                                                                           mode: str) -> None:
    change = compare(prints[mode].base, prints[mode].neutral)
    assert (change.device_code, change.host_code) == ("unchanged", False), change
    assert change.text == "no machine code changed"


@pytest.mark.parametrize("mode", MODES)
def test_the_kernels_that_an_edit_changed_are_named_and_no_other(prints: dict[str, Prints], mode: str) -> None:
    change = compare(prints[mode].base, prints[mode].edited)
    assert change.device_code == "changed"
    assert _changed(change) == {"void scale<double, 32>(double*, double)", "void scale<float, 64>(float*, float)"}
    assert set(change.kernels) == set(prints[mode].base.device)
    assert change.text == "device code changed (2 kernels)"


@pytest.mark.parametrize("mode", MODES)
def test_a_fingerprint_survives_json(prints: dict[str, Prints], mode: str) -> None:
    one = prints[mode].base
    assert Fingerprint.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_the_modes_are_what_they_say(prints: dict[str, Prints]) -> None:
    """So that no test above passes on another mode than its name's."""
    entries = {mode: [e for c in device_image(one.objects[0]).containers for e in c.entries]
               for mode, one in prints.items()}
    assert [e.compression for e in entries[LINEINFO]] == ["zstd", "zstd"]
    assert [e.compression for e in entries[DEBUG]] == ["none", "none"]
    assert "lz4" in [e.compression for e in entries[SEPARATE]]
    assert [{e.kind for e in entries[mode]} for mode in (LINEINFO, DEBUG, SEPARATE)] == [{"elf", "ptx"}] * 3
    assert {e.flags & 2 for e in entries[DEBUG]} == {2}
    assert [e.arch for e in entries["two architectures and PTX"]] == ["sm_80", "sm_90a", "compute_90"]
    for mode in (LINEINFO, DEBUG, SEPARATE, "sm_120 -lineinfo"):
        assert prints[mode].base.containers != prints[mode].neutral.containers, "the raw bytes should differ here"


def test_a_touched_rebuild_leaves_plain_containers_byte_for_byte(toolkit: Toolkit, prints: dict[str, Prints]) -> None:
    again = fingerprint(toolkit.again(SOURCE, *MODES["plain"], place="mode0"))
    assert again == prints["plain"].base


def _plain(toolkit: Toolkit, source: str) -> Fingerprint:
    return fingerprint(toolkit.compile(source, *SM80, place="mode0"))


@pytest.mark.parametrize("mode", MODES)
def test_a_host_only_edit_changes_the_host_digest_alone(prints: dict[str, Prints], mode: str) -> None:
    change = compare(prints[mode].base, prints[mode].host_only)
    assert (change.device_code, change.host_code, change.text) == ("unchanged", True, "host code only"), change


@pytest.mark.parametrize("what", DATA)
def test_an_edit_of_data_alone_is_device_code_too(toolkit: Toolkit, prints: dict[str, Prints], what: str) -> None:
    change = compare(prints["plain"].base, _plain(toolkit, DATA[what]))
    assert (change.device_code, change.data, change.kernels) == ("changed", ("sm_80",), {})
    assert change.text == "device code changed (data only)"


@pytest.mark.parametrize("more", NEW_KERNEL, ids=["first", "last"])
def test_a_new_kernel_is_the_only_change_though_it_moves_others(toolkit: Toolkit, prints: dict[str, Prints],
                                                                more: str) -> None:
    change = compare(prints["plain"].base, _plain(toolkit, more))
    assert _changed(change) == {"aaa(float*)"}
    assert (change.functions, change.data) == ({}, ())


def test_a_new_kernel_does_not_change_others_in_ptx_though_it_shifts_their_labels(toolkit: Toolkit,
                                                                                  prints: dict[str, Prints]) -> None:
    change = compare(prints[DEBUG].base, fingerprint(toolkit.compile(NEW_KERNEL[0], *MODES[DEBUG], place="mode3")))
    assert _changed(change) == {"aaa(float*)"}
    assert set(change.kernels) == {"sm_80", "compute_80"}


def test_launch_bounds_are_a_change_of_the_kernel(toolkit: Toolkit, prints: dict[str, Prints]) -> None:
    change = compare(prints["plain"].base, _plain(toolkit, BOUNDED))
    assert _changed(change) == {"count(int*)"}


def test_an_architecture_more_is_a_change(prints: dict[str, Prints]) -> None:
    change = compare(prints["plain"].base, prints["two architectures and PTX"].base)
    assert change.device_code == "changed"
    assert set(change.kernels) == {"sm_90a", "compute_90"}


def test_a_unit_without_kernels_has_no_device_code_until_it_gets_some(prints: dict[str, Prints],
                                                                      tmp_path: Path) -> None:
    (tmp_path / "host.cc").write_text("int answer() { return 42; }\n")
    run("g++", "-c", tmp_path / "host.cc", "-o", tmp_path / "host.o")
    none = fingerprint(tmp_path / "host.o")
    assert compare(none, none).device_code == "none"
    assert compare(none, prints["plain"].base).device_code == "changed"
    assert compare(prints["plain"].base, none).device_code == "changed"


@pytest.mark.parametrize("data", [None, [], {}, {"format": 0}, {"format": 1}, {"format": 1, "host": "", "containers": 3,
                                                                              "device": {}},
                                  {"format": 2, "host": "", "containers": [], "device": {}}])
def test_what_is_no_fingerprint_is_a_value_error(data: object) -> None:
    with pytest.raises(ValueError, match="fingerprint"):
        Fingerprint.from_json(data)


# No name of external linkage: relocatable code is told apart by a checksum and nvcc's process id then.
NAMELESS = """\
static __device__ int revision = 1;
template <typename T> __global__ void scale(T* x) { *x *= revision; }
struct Launch { Launch(float* x) { scale<<<1, 1>>>(x); } };
static Launch launch(nullptr);
"""


def test_relocatable_code_without_an_external_name_is_the_same_after_a_comment(toolkit: Toolkit) -> None:
    paths = [toolkit.compile(text, "-dc", *SM80, place="nameless") for text in (NAMELESS, f"// comment\n{NAMELESS}")]
    change = compare(*map(fingerprint, paths))
    assert (change.text, change.device_code) == ("no machine code changed", "unchanged")
    edited = toolkit.compile(NAMELESS.replace("revision = 1", "revision = 2"), "-dc", *SM80, place="nameless")
    assert compare(fingerprint(paths[0]), fingerprint(edited)).text == "device code changed (data only)"
