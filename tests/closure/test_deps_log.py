"""ninja's logs, written by ninja itself, read beside ninja's own answers on a copy."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tasks.closure.deps_log import read_build_log, read_deps_log, redirected

_BUILD = """\
rule cc
  command = g++ -MD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule nothing
  command = touch $out
  depfile = $out.d
  deps = gcc
build a.o: cc a.cc
build b$ b.o: cc b$ b.cc
build none.o: nothing a.cc
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Built by ninja: two compiles with odd names, and one that writes no depfile."""
    (tmp_path / "build.ninja").write_text(_BUILD.replace("$in", "'$in'").replace("-o $out", "-o '$out'")
                                          .replace("-MF $out.d", "-MF '$out.d'"))
    (tmp_path / "a.cc").write_text('#include "one.h"\n#include "do$lar.h"\n')
    (tmp_path / "b b.cc").write_text('#include "one.h"\n#include "three33.h"\n')
    for name in ("one.h", "do$lar.h", "three33.h"):
        (tmp_path / name).touch()
    subprocess.run(["ninja", "a.o", "none.o"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def _asked(folder: Path, copy: Path) -> dict[str, list[str]]:
    """`ninja -t deps` on a copy, which it may repair."""
    shutil.copytree(folder, copy)
    text = subprocess.run(["ninja", "-t", "deps"], cwd=copy, check=True, capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    for block in text.strip().split("\n\n"):
        head, *names = block.splitlines()
        if not head or head.endswith("deps not found"):
            continue
        found[head.partition(": #deps")[0]] = [name.strip() for name in names]
    return found


def test_the_log_is_read_as_ninja_reads_it(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    log = read_deps_log((folder / ".ninja_deps").read_bytes())
    asked = _asked(folder, tmp_path_factory.mktemp("copy") / "c")
    assert {output: list(log.inputs(output) or ()) for output in log.deps} == asked
    assert {"one.h", "do$lar.h"} <= set(log.inputs("a.o") or ())
    assert log.deps["a.o"][0] == (folder / "a.o").stat().st_mtime_ns
    assert not log.cut


def test_a_record_of_nothing_is_told_from_no_record(folder: Path) -> None:
    log = read_deps_log((folder / ".ninja_deps").read_bytes())
    assert log.inputs("none.o") == ()
    assert log.inputs("never.o") is None


def test_a_later_record_replaces_an_earlier_one(folder: Path) -> None:
    (folder / "a.cc").write_text('#include "three33.h"\n')
    subprocess.run(["ninja", "a.o"], cwd=folder, check=True, capture_output=True)
    inputs = read_deps_log((folder / ".ninja_deps").read_bytes()).inputs("a.o") or ()
    assert "three33.h" in inputs
    assert "one.h" not in inputs


def test_every_cut_is_read_as_far_as_ninja_reads_it(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = (folder / ".ninja_deps").read_bytes()
    full = read_deps_log(whole)
    copies = tmp_path_factory.mktemp("copies")
    for size in range(len(whole)):
        log = read_deps_log(whole[:size])
        assert all(log.inputs(output) == full.inputs(output) for output in log.deps)
        if size % 61 == 0 and log.state == "read":
            (folder / ".ninja_deps").write_bytes(whole[:size])
            asked = _asked(folder, copies / str(size))
            assert {name: list(log.inputs(name) or ()) for name in log.deps} == asked


@pytest.mark.parametrize("content", [b"", b"# ninjadeps\n", b"# ninjadeps\n" + struct.pack("<i", 9), b"garbage" * 9])
def test_another_file_is_no_log(content: bytes) -> None:
    assert read_deps_log(content).state == "unusable"
    assert read_deps_log(None).state == "missing"


def test_no_byte_that_is_wrong_raises(folder: Path) -> None:
    whole = (folder / ".ninja_deps").read_bytes()
    for position in range(16, len(whole)):
        for wrong in (0, 0x7F, 0xFF):
            read_deps_log(whole[:position] + bytes([wrong]) + whole[position + 1:])


def test_a_redirected_log_is_one_that_ninja_reads(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = folder / ".ninja_deps"
    log = read_deps_log(path.read_bytes())
    number = log.paths.index("one.h")
    path.write_bytes(redirected(path.read_bytes(), {number: "elsewhere/much longer.h"}))
    asked = _asked(folder, tmp_path_factory.mktemp("copy") / "c")
    assert "elsewhere/much longer.h" in asked["a.o"]
    assert "one.h" not in asked["a.o"]


def test_the_build_log_says_how_long_a_compile_took(folder: Path) -> None:
    entry = read_build_log(folder / ".ninja_log")["a.o"]
    assert 0 < entry.duration_ns < 60e9
    (folder / ".ninja_log").write_text("# ninja log v5\n1\t2\tx\n\ngarbage\t\n")
    assert read_build_log(folder / ".ninja_log") == {}
