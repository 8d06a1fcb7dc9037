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


def _write(root: Path, units: int, headers: list[str], each: int, ninja: bool) -> list[Statement]:
    """Objects, headers and one tool's records of `units` times `each` headers."""
    (root / FOLDER).mkdir(parents=True)
    (root / "unit.cc").touch()
    records = {f"{FOLDER}/u{unit}.o": [headers[(unit * 37 + at * 13) % len(headers)] for at in range(each)]
               for unit in range(units)}
    for output in records:
        (root / output).touch()
    if ninja:
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
            content.append(struct.pack("<Iiq", (12 + 4 * each) | 0x80000000, ids[0], made)
                           + struct.pack(f"<{each}i", *ids[1:]))
        (root / ".ninja_deps").write_bytes(b"".join(content))
        (root / "build.ninja").write_text("rule cc\n  deps = gcc\n  depfile = $out.d\n" + "".join(
            f"build {output}: cc unit.cc\n" for output in records))
    else:
        (root / FOLDER / "DependInfo.cmake").write_text("set(CMAKE_DEPENDS_DEPENDENCY_FILES\n" + "".join(
            f'  "{root}/unit.cc" "{output}" "gcc" "{output}.d"\n' for output in records) + "  )\n")
        (root / FOLDER / "depend.make").write_text("# Empty\n")
        (root / FOLDER / "compiler_depend.make").write_text("# CMake\n\n" + "".join(
            f"{output}: " + " \\\n  ".join(paths) + "\n\n" for output, paths in records.items()))
        (root / FOLDER / "compiler_depend.internal").write_text("# CMake\n")
    return [Statement(f"{root}/{output}", (f"{root}/unit.cc",), (), str(root), "provider") for output in records]


def _read(root: Path, units: int, headers: list[str], ninja: bool) -> tuple[list[Statement], Location]:
    statements = _write(root, units, headers, 240, ninja)
    generator = "Ninja" if ninja else "Unix Makefiles"
    return statements, Location(root, root, CMakeCache(root / "CMakeCache.txt", {"CMAKE_GENERATOR": generator}))


@pytest.mark.parametrize("ninja", [False, True], ids=["make", "ninja"])
def test_the_records_of_a_thousand_units_are_read_in_seconds(tmp_path: Path, headers: list[str], ninja: bool) -> None:
    statements, location = _read(tmp_path / "whole", 1_000, headers, ninja)
    started = time.process_time()
    records = read_records(location, statements, Files(str(location.build_dir)))
    assert time.process_time() - started < 5
    assert {len(record.files or ()) for record in records.values()} == {240}


def test_memory_grows_with_the_records_and_no_faster(tmp_path: Path, headers: list[str]) -> None:
    peaks = []
    for units in (150, 300):
        statements, location = _read(tmp_path / str(units), units, headers, False)
        tracemalloc.start()
        read_records(location, statements, Files(str(location.build_dir)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.2 * peaks[0]
