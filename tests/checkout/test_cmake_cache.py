"""Reading `CMakeCache.txt`, by its own rules (`cmCacheManager.cxx`)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tasks.checkout.cmake_cache import CMakeCache, compiler_facts, read_cache


def cache(tmp_path: Path, text: str) -> CMakeCache:
    path = tmp_path / "CMakeCache.txt"
    path.write_text(text)
    return read_cache(path)


def test_an_entry_has_name_type_and_value(tmp_path: Path) -> None:
    assert cache(tmp_path, "CMAKE_GENERATOR:INTERNAL=Ninja\n").generator == "Ninja"


def test_comments_are_no_entries(tmp_path: Path) -> None:
    assert cache(tmp_path, "//A:STRING=x\n#B:STRING=y\n# C:STRING=z\n").entries == {}


def test_a_value_may_hold_colons_and_equals_signs(tmp_path: Path) -> None:
    assert cache(tmp_path, "F:STRING=-DX=1 a:b=c\n").get("F") == "-DX=1 a:b=c"


def test_a_value_may_be_empty(tmp_path: Path) -> None:
    found = cache(tmp_path, "A:STRING=\nB:STRING=b\n")
    assert (found.get("A", "?"), found.get("B")) == ("", "b")


def test_a_quoted_name_may_hold_colons(tmp_path: Path) -> None:
    assert cache(tmp_path, '"a:b":STRING=c\n').get("a:b") == "c"


def test_a_name_may_hold_blanks_and_dashes(tmp_path: Path) -> None:
    assert cache(tmp_path, "CMAKE_AR-ADVANCED:INTERNAL=1\nmy name:PATH=/x\n").entries == {
        "CMAKE_AR-ADVANCED": "1", "my name": "/x"}


def test_apostrophes_keep_the_blanks_at_a_values_ends(tmp_path: Path) -> None:
    assert cache(tmp_path, "A:STRING=' a '\n").get("A") == " a "


def test_windows_line_ends_are_no_part_of_a_value(tmp_path: Path) -> None:
    assert cache(tmp_path, "CMAKE_GENERATOR:INTERNAL=Ninja\r\n").generator == "Ninja"


def test_a_missing_entry_has_the_default(tmp_path: Path) -> None:
    found = cache(tmp_path, "")
    assert (found.get("A"), found.get("A", "x"), found.truth("A"), found.truth("A", default=True)) == (
        "", "x", False, True)


@pytest.mark.parametrize("value", ["ON", "on", "1", "TRUE", "Yes", "y", "2", "/usr/bin/nvcc", "OFF", "off", "0",
                                   "FALSE", "no", "N", "IGNORE", "NOTFOUND", "X-NOTFOUND", "x-notfound", "",
                                   "NOTFOUND-X"])
def test_truth_is_cmakes_own(tmp_path: Path, value: str) -> None:
    script = tmp_path / "truth.cmake"
    script.write_text(f'set(V "{value}")\nif(V)\nmessage(yes)\nendif()\n')
    told = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=True).stderr
    assert cache(tmp_path, f"V:STRING={value}\n").truth("V") == ("yes" in told)


def test_a_missing_cache_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_cache(tmp_path / "CMakeCache.txt")


def test_a_cache_that_is_no_utf_8_is_read(tmp_path: Path) -> None:
    (tmp_path / "CMakeCache.txt").write_bytes(b"A:STRING=\xff\nB:STRING=b\n")
    assert read_cache(tmp_path / "CMakeCache.txt").get("B") == "b"


def test_facts_of_the_newest_cmake_count(tmp_path: Path) -> None:
    for version, age in (("3.25.1", 100), ("3.9.0", 0)):
        folder = tmp_path / "CMakeFiles" / version
        folder.mkdir(parents=True)
        (folder / "CMakeCUDACompiler.cmake").write_text(f'set(CMAKE_CUDA_COMPILER "/opt/{version}/nvcc")\n')
        os.utime(folder / "CMakeCUDACompiler.cmake", (10**9 - age, 10**9 - age))
    assert compiler_facts(tmp_path, "CUDA") == {"CMAKE_CUDA_COMPILER": "/opt/3.9.0/nvcc"}


def test_there_are_no_facts_of_a_language_that_is_not_used(tmp_path: Path) -> None:
    assert compiler_facts(tmp_path, "CUDA") == {}
