"""The first error that a person would look for in a build's output."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tasks.builder.diagnosis import first_error


class Log:
    """A build log and what is found in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "build.log"

    def error(self, text: str) -> str | None:
        self.path.write_text(text)
        return first_error(self.path)[0]

    def cause(self, text: str) -> str:
        self.path.write_text(text)
        found = first_error(self.path)[1]
        return "" if found is None else found.told

    def of(self, *words: str, **files: str) -> str | None:
        """The error in what a real program says."""
        for name, content in files.items():
            (self.folder / name.replace("__", ".")).write_text(content)
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        return self.error(done.stdout + done.stderr)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_a_real_host_compilers_error_is_found(log: Log) -> None:
    found = log.of("g++", "-c", "x.cc", x__cc="int i = 1;\nint j = k;\n")
    assert found is not None
    assert found.startswith("x.cc:2:9: error:")


def test_a_real_missing_header_is_found(log: Log) -> None:
    found = log.of("g++", "-c", "x.cc", x__cc='#include "none.h"\n')
    assert found is not None
    assert "fatal error: none.h: No such file or directory" in found


def test_a_real_nvccs_error_is_found(log: Log) -> None:
    found = log.of("nvcc", "-c", "x.cu", x__cu="__global__ void k() { undefined(); }\n")
    assert found is not None
    assert found.startswith("x.cu(1): error:")


def test_a_real_linkers_error_is_found(log: Log) -> None:
    found = log.of("g++", "x.cc", x__cc="void f();\nint main() { f(); }\n")
    assert found is not None
    assert "undefined reference to" in found


def test_a_real_makes_missing_rule_is_found(log: Log) -> None:
    found = log.of("make", "x", Makefile="x: none\n")
    assert found == "make: *** No rule to make target 'none', needed by 'x'.  Stop."


def test_a_real_ninjas_error_is_found(log: Log) -> None:
    found = log.of("ninja", "none", build__ninja="rule r\n command = true\nbuild x: r\n")
    assert found == "ninja: error: unknown target 'none'"


def test_a_real_cmakes_error_is_found(log: Log) -> None:
    found = log.of("cmake", "-S", ".", "-B", "b", CMakeLists__txt="cmake_minimum_required(VERSION 3.20)\nfoo()\n")
    assert found is not None
    assert found.startswith("CMake Error")


def test_a_compilers_error_comes_before_an_earlier_general_one(log: Log) -> None:
    assert log.error("make: warning: Error: clock\nx.cc:1:2: error: bad\n") == "x.cc:1:2: error: bad"


def test_the_first_of_several_is_the_one(log: Log) -> None:
    assert log.error("a.cc:1:2: error: one\nb.cc:1:2: error: two\n") == "a.cc:1:2: error: one"


def test_a_path_with_blanks_is_part_of_the_line(log: Log) -> None:
    assert log.error("/a b/x.h(12): error: bad\n") == "/a b/x.h(12): error: bad"


def test_a_warning_is_no_error(log: Log) -> None:
    assert log.error("x.cc:1:2: warning: error-prone\n[100%] Built target x\n") is None


def test_a_very_long_line_is_cut(log: Log) -> None:
    found = log.error("x.cc:1:2: error: " + "x" * 10_000 + "\n")
    assert found is not None
    assert len(found) == 300


def test_a_log_that_is_no_utf_8_is_read(log: Log) -> None:
    log.path.write_bytes(b"\xff\xfe\nx.cc:1:2: error: \xe4\n")
    assert (first_error(log.path)[0] or "").startswith("x.cc:1:2: error:")


def test_a_missing_log_tells_nothing(log: Log) -> None:
    assert first_error(log.path) == (None, None)


@pytest.mark.parametrize("line", ["x.o: No space left on device", "fatal: cannot write: No space left on device"])
def test_a_full_disk_is_told(log: Log, line: str) -> None:
    assert "no space or no inodes" in log.cause(line)
    assert "TMPDIR" in log.cause(line)


def test_a_used_up_quota_is_told(log: Log) -> None:
    assert "quota" in log.cause("write error: Disk quota exceeded")


@pytest.mark.parametrize("line", [
    "c++: fatal error: Killed signal terminated program cc1plus", "nvcc error   : 'cicc' died due to signal 9 (Kill)",
    "cc1plus: out of memory allocating 65536 bytes", "virtual memory exhausted: Cannot allocate memory",
    "terminate called after throwing an instance of 'std::bad_alloc'",
])
def test_used_up_memory_is_told_with_fewer_jobs(log: Log, line: str) -> None:
    assert "jobs=1" in log.cause(line)


@pytest.mark.parametrize("line", ["x.cc:1:1: internal compiler error: in foo", "'cudafe++' died due to signal 11",
                                  "Segmentation fault (core dumped)"])
def test_a_crashed_compiler_is_told(log: Log, line: str) -> None:
    assert "compiler itself crashed" in log.cause(line)


def test_a_full_disk_is_the_cause_of_a_crash_beside_it(log: Log) -> None:
    assert "no space or no inodes" in log.cause("Segmentation fault\nNo space left on device\n")


def test_an_ordinary_error_has_no_known_cause(log: Log) -> None:
    assert log.cause("x.cc:1:2: error: bad\n") == ""
