"""Progress of a build: units done, the one that is compiled now, and the time it will take."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tasks.builder.watch import BuildWatch, Moment
from tasks.report.estimate import PastBuild, about, past_builds, remember
from tasks.report.progress import BuildProgress
from tasks.report.wrap import fitted
from tests.support import wait_for


@pytest.fixture
def watch(tmp_path: Path) -> BuildWatch:
    (tmp_path / "old.o").touch()
    return BuildWatch({name: (f"/src/{name}.cu", str(tmp_path / f"{name}.o")) for name in ("old", "new")})


def test_a_unit_is_done_when_its_object_is_another(watch: BuildWatch, tmp_path: Path) -> None:
    assert watch.moment() == Moment(0, 2, ())
    (tmp_path / "new.o").touch()
    assert watch.moment() == Moment(1, 2, ())
    (tmp_path / "old.o").write_text("x")
    assert watch.moment() == Moment(2, 2, ())


def test_a_unit_is_compiled_while_a_process_of_the_build_names_its_source(watch: BuildWatch, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", "/src/new.cu"],
                          start_new_session=True) as compiler:
        try:
            assert watch.moment().running == ()
            watch.begin(compiler.pid)
            (tmp_path / "new.o").touch()
            wait_for(lambda: watch.moment().running)
            moment = watch.moment()
        finally:
            compiler.kill()
    assert moment.done == 0
    assert [name for name, _ in moment.running] == ["new"]
    assert 0 <= moment.running[0][1] < 30


def lines(watch: BuildWatch, *fed: str | None, about_s: float | None = None, every_s: float = 0.0) -> list[str]:
    output = io.StringIO()
    with BuildProgress(output, watch, about_s, every_s) as progress:
        for line in fed:
            progress.line(line)
    return output.getvalue().splitlines()


@pytest.mark.parametrize(("line", "told"), [
    ("[ 42%] Building CUDA object CMakeFiles/p.dir/a/b/fmha_sm80.cu.o", "   [42%] Building CUDA object fmha_sm80.cu.o"),
    ("[3/10] Building CXX object CMakeFiles/p.dir/a/b/x.cc.o", "   [3/10] Building CXX object x.cc.o"),
    ("[100%] Linking CUDA shared module libp.so", "   [100%] Linking CUDA shared module libp.so"),
])
def test_steps_of_make_and_ninja_are_told_in_a_pipe(watch: BuildWatch, line: str, told: str) -> None:
    assert lines(watch, line, every_s=60) == [told]


def test_other_output_is_not_told(watch: BuildWatch) -> None:
    assert lines(watch, "[100%] Built target x", "warning: y", every_s=60) == []


def test_every_so_often_a_line_tells_units_and_time(watch: BuildWatch) -> None:
    assert lines(watch, None, about_s=75) == ["   0:00 of about 1:15: 0/2 units, waiting for the build tool"]


def test_the_estimate_is_the_last_build_of_the_same_units(tmp_path: Path) -> None:
    remember(tmp_path, ["b", "a"], 100)
    remember(tmp_path, ["a", "b"], 60)
    remember(tmp_path, ["c"], 7)
    builds = past_builds(tmp_path)
    assert about(builds, ["a", "b"]) == 60
    assert about(builds, ["a", "b", "c"]) == 21, "in proportion to the last one"
    assert about(builds, []) is None
    assert about([], ["a"]) is None


def test_the_last_twenty_builds_are_kept_and_garbage_is_none(tmp_path: Path) -> None:
    for number in range(25):
        remember(tmp_path, [str(number)], number)
    assert past_builds(tmp_path)[0] == PastBuild(("5",), 5.0)
    assert len(past_builds(tmp_path)) == 20
    (tmp_path / "builds.json").write_text('[{"units": 3}]')
    assert past_builds(tmp_path) == []


def test_lines_are_broken_between_words_at_a_terminals_width_and_nowhere_in_a_pipe() -> None:
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    line = "   one two three \x1b[31mstale\x1b[0m four five six seven eight nine"
    with os.fdopen(terminal, "w") as screen, os.fdopen(master):
        assert fitted(line, screen) == ("   one two three \x1b[31mstale\x1b[0m four five six\n"
                                        "     seven eight nine")
        command = "   $ cmake --build /a/very/long/path --target a_target"
        assert fitted(command, screen) == command
    assert fitted(line, io.StringIO()) == line
