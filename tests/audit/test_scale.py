"""The time and memory of an audit on records of a large tree, written as the tools write them."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pytest

from tasks.checkout.cmake_cache import CMakeCache
from tasks.checkout.graph import Statement
from tasks.checkout.locate import Location
from tasks.closure.recorded import Files, read_records

FOLDER = "CMakeFiles/provider.dir"


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("headers")
    paths = [folder / f"h{number}.h" for number in range(10_000)]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


def _write(root: Path, units: int, headers: list[str], each: int, kind: str) -> Location:
    """Objects, headers and one tool's records of `units` times `each` headers."""
    (root / FOLDER).mkdir(parents=True)
    (root / "unit.cc").touch()
    records = {f"{FOLDER}/u{unit}.o": _seen(unit, headers, each) for unit in range(units)}
    for output in records:
        (root / output).touch()
    if kind == "ninja":
        _write_ninja(root, records)
    else:
        _write_make(root, records)
    if kind == "waiting":
        # Written after the last run took depfiles over, as by a build that was broken off.
        (root / FOLDER / "u0.o.d").write_text(f"{FOLDER}/u0.o: " + " \\\n ".join(records[f"{FOLDER}/u0.o"]) + "\n")
    generator = "Ninja" if kind == "ninja" else "Unix Makefiles"
    return Location(root, root, CMakeCache(root / "CMakeCache.txt", {"CMAKE_GENERATOR": generator}))


def _seen(unit: int, headers: list[str], each: int) -> list[str]:
    return [headers[(unit * 37 + at * 13) % len(headers)] for at in range(each)]


def _write_ninja(root: Path, records: dict[str, list[str]]) -> None:
    numbers: dict[str, int] = {}
    content = [b"# ninjadeps\n", struct.pack("<i", 4)]

    def number_of(path: str) -> int:
        if path not in numbers:
            name = path.encode() + b"\0" * (-len(path) % 4)
            content.append(struct.pack("<I", len(name) + 4) + name + struct.pack("<I", len(numbers) ^ 0xFFFFFFFF))
            numbers[path] = len(numbers)
        return numbers[path]

    for output, paths in records.items():
        ids = [number_of(path) for path in (output, *paths)]
        made = (root / output).stat().st_mtime_ns
        content.append(struct.pack("<Iiq", (12 + 4 * len(paths)) | 0x80000000, ids[0], made)
                       + struct.pack(f"<{len(paths)}i", *ids[1:]))
    (root / ".ninja_deps").write_bytes(b"".join(content))
    (root / "build.ninja").write_text("rule cc\n  deps = gcc\n  depfile = $out.d\n" + "".join(
        f"build {output}: cc unit.cc\n" for output in records))


def _write_make(root: Path, records: dict[str, list[str]]) -> None:
    (root / FOLDER / "DependInfo.cmake").write_text("set(CMAKE_DEPENDS_DEPENDENCY_FILES\n" + "".join(
        f'  "{root}/unit.cc" "{output}" "gcc" "{output}.d"\n' for output in records) + "  )\n")
    (root / FOLDER / "depend.make").write_text("# Empty\n")
    (root / FOLDER / "compiler_depend.make").write_text("# CMake\n\n" + "".join(
        f"{output}: " + " \\\n  ".join(paths) + "\n\n" for output, paths in records.items()))
    (root / FOLDER / "compiler_depend.internal").write_text("# CMake\n\n" + "".join(
        f"{output}\n " + "\n ".join(paths) + "\n\n" for output, paths in records.items()))


def _read(location: Location, units: int) -> dict[str, tuple[str, ...] | None]:
    root = location.build_dir
    statements = [Statement(f"{root}/{FOLDER}/u{unit}.o", (f"{root}/unit.cc",), (), str(root), "provider")
                  for unit in range(units)]
    records = read_records(location, statements, Files(str(root)))
    return {output: record.files for output, record in records.items()}


@pytest.mark.parametrize("kind", ["make", "waiting", "ninja"])
def test_the_records_of_a_thousand_units_are_read_in_seconds(tmp_path: Path, headers: list[str], kind: str) -> None:
    location = _write(tmp_path / "whole", 1_000, headers, 240, kind)
    started = time.process_time()
    records = _read(location, 1_000)
    assert time.process_time() - started < 2
    root = location.build_dir
    assert records == {f"{root}/{FOLDER}/u{unit}.o": tuple(_seen(unit, headers, 240)) for unit in range(1_000)}


@pytest.mark.parametrize("kind", ["make", "waiting", "ninja"])
def test_memory_grows_with_the_records_and_no_faster(tmp_path: Path, headers: list[str], kind: str) -> None:
    peaks = []
    for units in (150, 300):
        location = _write(tmp_path / str(units), units, headers, 240, kind)
        tracemalloc.start()
        _read(location, units)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.2 * peaks[0]


@pytest.mark.parametrize("kind", ["make", "waiting"])
def test_makes_records_take_half_the_memory_of_their_text(tmp_path: Path, headers: list[str], kind: str) -> None:
    location = _write(tmp_path / "whole", 500, headers, 2_000, kind)
    tracemalloc.start()
    _read(location, 500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 2 * peak < (tmp_path / "whole" / FOLDER / "compiler_depend.make").stat().st_size
