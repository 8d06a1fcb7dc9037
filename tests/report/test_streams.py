"""`doit TASK | head` and `doit TASK > /on/a/full/disk`: no traceback, and an exit status that can be believed."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.support import PROJECT, Run, Tree, clean_environment

LOOKS = {"why fmha_sm80": 0, "status": 0, "audit": 1, "kernels": 0, "flips": 0, "disk": 0, "list": 0, "help status": 0}


@pytest.fixture
def readerless() -> Iterator[IO[bytes]]:
    """A pipe whose reader has gone, as that of `| true` or of `| head -1` after its line."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        yield pipe


def doit(tree: Tree, words: str, stdout: IO[bytes], stderr: IO[bytes] | int = subprocess.PIPE) -> Run:
    done = subprocess.run(tree.words(*words.split()), cwd=PROJECT, env=clean_environment(tree.environment()),
                          stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, timeout=300, check=False)
    return Run(done.returncode, "", (done.stderr or b"").decode())


@pytest.mark.parametrize(("words", "status"), LOOKS.items())
def test_a_closed_pipe_is_no_error(make_tree: Tree, readerless: IO[bytes], words: str, status: int) -> None:
    done = doit(make_tree, words, readerless)
    assert (done.status, done.err) == (status, "")


def test_a_closed_pipe_does_not_turn_stale_into_success(make_tree: Tree, readerless: IO[bytes]) -> None:
    make_tree.edit()
    done = doit(make_tree, "status", readerless)
    assert (done.status, done.err) == (1, "")


def test_a_build_whose_reader_has_gone_is_done_to_its_end(make_tree: Tree, readerless: IO[bytes]) -> None:
    make_tree.edit()
    assert doit(make_tree, "verify", readerless).status == 0
    assert make_tree.is_current()
    assert make_tree.verdict() == "fresh"


def test_both_streams_may_lose_their_reader(make_tree: Tree, readerless: IO[bytes]) -> None:
    assert doit(make_tree, "status --json", readerless, readerless).status == 0


@pytest.mark.parametrize("words", ["status", "verify", "list", "status --json"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(make_tree: Tree, tmp_path: Path, words: str, closed: str) -> None:
    told = tmp_path / "told"
    command = f"{shlex.join(make_tree.words(*words.split()))} {closed}"
    with told.open("wb") as file:
        done = subprocess.run(["sh", "-c", command], cwd=PROJECT, env=clean_environment(make_tree.environment()),
                              stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=300, check=False)
    assert (done.returncode, "Traceback" in told.read_text()) == (0, False)
    # No file of ours has borne a standard descriptor, and got what was meant for it.
    assert make_tree.verdict() == "fresh"


def test_a_closed_output_does_not_turn_stale_into_success(make_tree: Tree) -> None:
    make_tree.edit()
    command = f"{shlex.join(make_tree.words('status'))} >&-"
    done = subprocess.run(["sh", "-c", command], cwd=PROJECT, env=clean_environment(make_tree.environment()),
                          stderr=subprocess.PIPE, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.parametrize("words", ["status", "status --json", "disk", "list"])
def test_output_that_found_no_room_is_told_and_no_success(make_tree: Tree, words: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = doit(make_tree, words, full)
    assert done.status == 1
    assert done.err.splitlines()[-2:] == ["output was lost: No space left on device",
                                          "  free space where it is written to, then run it again"]
    assert "Traceback" not in done.err
