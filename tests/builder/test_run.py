"""Running a build for real: its log, its lines, and the end of all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.builder import run
from tasks.builder.run import BuildRun, new_log, run_build
from tasks.child import start_child
from tasks.errors import UserError
from tests.support import wait_for

PROJECT = Path(__file__).resolve().parent.parent.parent


class Builder:
    """Runs shell scripts as builds in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "build.log"
        self.lines: list[str] = []
        self.ticks = 0

    def note(self, line: str | None) -> None:
        if line is None:
            self.ticks += 1
        else:
            self.lines.append(line)

    def run(self, script: str, on_line: Callable[[str | None], None] | None = None, **options: object) -> BuildRun:
        environ = options.pop("environ", {"PATH": os.environ["PATH"]})
        return run_build(["sh", "-c", script], self.folder, environ, self.log,  # type: ignore[arg-type]
                         on_line or self.note, **options)  # type: ignore[arg-type]

    def pid(self, name: str) -> int:
        """The process id that a script wrote down."""
        deadline = time.monotonic() + 5
        while not (self.folder / name).exists() or not (self.folder / name).read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return int((self.folder / name).read_text())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return Builder(tmp_path)


def test_the_log_begins_with_the_command(builder: Builder) -> None:
    builder.run("echo 'a b'")
    assert builder.log.read_text() == "$ sh -c 'echo '\"'\"'a b'\"'\"''\na b\n"


def test_output_and_errors_come_in_one_stream(builder: Builder) -> None:
    builder.run("echo out; echo err >&2; echo out")
    assert builder.lines == ["out", "err", "out"]


@pytest.mark.parametrize("status", [0, 1, 3, 127])
def test_the_exit_status_is_the_commands(builder: Builder, status: int) -> None:
    assert builder.run(f"exit {status}").status == status


def test_the_status_of_a_signal_is_negative(builder: Builder) -> None:
    assert builder.run("kill -9 $$").status == -signal.SIGKILL


def test_a_last_line_without_an_end_is_a_line(builder: Builder) -> None:
    builder.run("printf 'one\\ntwo'")
    assert builder.lines == ["one", "two"]


def test_a_line_that_comes_in_pieces_is_one(builder: Builder) -> None:
    builder.run("printf one; sleep 0.3; echo two")
    assert builder.lines == ["onetwo"]


def test_colours_are_kept_in_the_log_and_left_out_of_the_lines(builder: Builder) -> None:
    builder.run("printf '\\033[32m[ 50%%] Building\\033[0m\\033[K\\r\\n'")
    assert builder.lines == ["[ 50%] Building"]
    assert "\033[32m" in builder.log.read_text()


def test_output_that_is_no_utf_8_is_kept_as_it_is(builder: Builder) -> None:
    builder.run("printf '\\377\\n'")
    assert builder.lines == ["\ufffd"]
    assert builder.log.read_bytes().endswith(b"\xff\n")


def test_much_output_is_kept_whole(builder: Builder) -> None:
    builder.run("seq 300000")
    assert len(builder.lines) == 300_000
    assert builder.lines[-1] == "300000"


def test_the_log_can_be_followed_while_it_runs(builder: Builder) -> None:
    seen: list[str] = []
    builder.run("echo one; sleep 0.3; echo two", lambda line: seen.append(builder.log.read_text()) if line else None)
    assert seen[0].endswith("one\n")


def test_silence_is_told_by_ticks(builder: Builder) -> None:
    builder.run("sleep 0.7")
    assert builder.ticks >= 2


def test_the_command_reads_no_input(builder: Builder) -> None:
    builder.run("cat; echo end")
    assert builder.lines == ["end"]


def test_the_command_has_the_given_environment(builder: Builder) -> None:
    builder.run("echo $A", environ={"PATH": os.environ["PATH"], "A": "1 2"})
    assert builder.lines == ["1 2"]


def test_the_command_has_no_other_environment(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    import plumbum

    # plumbum keeps the environment that it saw when it was imported.
    monkeypatch.setitem(plumbum.local.env._curr, "NVCC_APPEND_FLAGS", "-G")
    builder.run("env", environ={"PATH": os.environ["PATH"], "A": "1"})
    names = {line.partition("=")[0] for line in builder.lines}
    assert names - {"_", "PWD", "SHLVL", "OLDPWD"} == {"PATH", "A"}


def test_the_command_is_found_on_its_own_path(builder: Builder) -> None:
    program = builder.folder / "bin" / "hello"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    run_build(["hello"], builder.folder, {"PATH": str(program.parent)}, builder.log, builder.note)
    assert builder.lines == ["hello"]
    with pytest.raises(UserError, match="is not on PATH"):
        run_build(["hello"], builder.folder, {"PATH": "/nowhere"}, builder.log, builder.note)


def test_the_command_runs_in_the_given_folder(builder: Builder) -> None:
    builder.run("pwd -P")
    assert builder.lines == [os.path.realpath(builder.folder)]


def test_words_are_never_seen_by_a_shell(builder: Builder) -> None:
    run_build(["printf", "%s\n", "$HOME `id` 'x' \"y\" %s \\n *"], builder.folder, {"PATH": os.environ["PATH"]},
              builder.log, builder.note)
    assert builder.lines == ["$HOME `id` 'x' \"y\" %s \\n *"]


def test_a_program_that_is_missing_is_told(builder: Builder) -> None:
    with pytest.raises(UserError, match="cannot be run"):
        run_build([str(builder.folder / "none")], builder.folder, {}, builder.log, builder.note)


def test_a_file_that_is_no_program_is_told(builder: Builder) -> None:
    (builder.folder / "text").write_text("no program\n")
    (builder.folder / "text").chmod(0o755)
    with pytest.raises(UserError, match="cannot be run"):
        run_build([str(builder.folder / "text")], builder.folder, {}, builder.log, builder.note)


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for(builder: Builder) -> None:
    started = time.monotonic()
    builder.run("sleep 60 & echo $! > daemon; echo done")
    assert time.monotonic() - started < 5
    assert builder.lines == ["done"]
    os.kill(builder.pid("daemon"), signal.SIGKILL)


def test_what_was_written_before_the_end_is_read_beside_a_daemon(builder: Builder) -> None:
    builder.run("sleep 60 & echo $! > daemon; seq 50000")
    assert builder.lines[-1] == "50000"
    os.kill(builder.pid("daemon"), signal.SIGKILL)


def test_the_child_leads_a_session_that_is_told_at_once(builder: Builder) -> None:
    sessions: list[int] = []
    builder.run("ps -o sid= -p $$", on_start=sessions.append)
    assert [int(line) for line in builder.lines] == sessions
    assert sessions[0] != os.getsid(0)


def test_the_child_inherits_the_locks_descriptor_and_no_other(builder: Builder) -> None:
    lock = os.open(builder.folder / "lock", os.O_CREAT | os.O_RDWR)
    other = os.open(builder.folder / "other", os.O_CREAT | os.O_RDWR)
    builder.run("readlink /proc/$$/fd/*", lock_descriptor=lock)
    os.close(lock)
    os.close(other)
    assert f"{os.path.realpath(builder.folder)}/lock" in builder.lines
    assert f"{os.path.realpath(builder.folder)}/other" not in builder.lines


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_exception_ends_all_that_the_build_started(builder: Builder, error: type[BaseException]) -> None:
    def fail(line: str | None) -> None:
        if line == "ready":
            raise error

    with pytest.raises(error):
        builder.run("sleep 60 & echo $! > one; (sh -c 'sleep 60 & echo $! > two; echo ready; wait') & wait", fail)
    assert not alive(builder.pid("one"))
    assert not alive(builder.pid("two"))


def test_an_exception_at_the_start_ends_the_build(builder: Builder) -> None:
    pids: list[int] = []

    def fail(pid: int) -> None:
        pids.append(pid)
        raise OSError("lock.json cannot be written")

    with pytest.raises(OSError, match=r"lock\.json"):
        builder.run("sleep 60", on_start=fail)
    assert not alive(pids[0])


def test_a_build_that_does_not_listen_is_killed(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TERM_PATIENCE_S", 0.3)

    def fail(line: str | None) -> None:
        if line == "ready":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.run("trap '' TERM; echo $$ > me; echo ready; while :; do sleep 0.1; done", fail)
    assert not alive(builder.pid("me"))


def test_a_second_signal_while_the_build_is_being_ended_leaves_nothing_running(builder: Builder) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom tasks.builder.run import run_build\n"
        "script = 'trap \"echo >> told\" TERM; echo $$ > one; while :; do sleep 0.05; done'\n"
        "try: run_build(['sh', '-c', script], Path('.'), dict(os.environ), Path('log'), lambda line: None)\n"
        "except KeyboardInterrupt: sys.exit(7)\n")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=builder.folder,
                               env={**os.environ, "PYTHONPATH": str(PROJECT)})
    child = builder.pid("one")
    process.send_signal(signal.SIGINT)
    wait_for((builder.folder / "told").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 7
    assert not alive(child)


def test_what_is_forked_while_the_build_is_being_ended_is_ended_too(builder: Builder) -> None:
    def fail(line: str | None) -> None:
        if line == "ready":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.run("trap 'sleep 60 & echo $! > late; exit' TERM; echo ready; while :; do sleep 0.1; done", fail)
    assert not alive(builder.pid("late"))


def test_a_build_that_ends_by_itself_is_given_the_time(builder: Builder) -> None:
    def fail(line: str | None) -> None:
        if line == "ready":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        builder.run("trap 'sleep 0.3; echo bye > farewell; exit' TERM; echo ready; while :; do sleep 0.1; done", fail)
    assert (builder.folder / "farewell").exists()


def test_an_interrupt_while_the_build_is_being_started_leaves_nothing_running(
        builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def interrupted(*words: object, **options: object) -> subprocess.Popen[bytes]:
        process = start_child(*words, **options)  # type: ignore[arg-type]
        pids.append(process.pid)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
        return process

    monkeypatch.setattr(run, "start_child", interrupted)
    with pytest.raises(KeyboardInterrupt):
        builder.run("sleep 60")
    assert not alive(pids[0])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_us_ends_all_that_the_build_started(builder: Builder, number: signal.Signals) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom tasks.builder.run import run_build\n"
        "def stop(*_): raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGTERM, stop); signal.signal(signal.SIGINT, stop)\n"
        "script = 'sleep 60 & echo $! > one; wait'\n"
        "try: run_build(['sh', '-c', script], Path('.'), dict(os.environ), Path('log'), lambda line: None)\n"
        "except KeyboardInterrupt: sys.exit(7)\n")
    process = subprocess.Popen([sys.executable, "-c", code], cwd=builder.folder,
                               env={**os.environ, "PYTHONPATH": str(PROJECT)})
    child = builder.pid("one")
    process.send_signal(number)
    assert process.wait(20) == 7
    assert not alive(child)


def test_a_second_command_is_added_to_its_log(builder: Builder) -> None:
    builder.run("echo one")
    builder.run("echo two")
    assert builder.log.read_text().count("$ sh -c") == 2


def test_the_time_that_it_took_is_told(builder: Builder) -> None:
    assert 0.2 <= builder.run("sleep 0.2").seconds < 5


def test_logs_beyond_ten_are_removed_oldest_first(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.log").write_text("")
        os.utime(folder / f"{number}.log", (number, number))
    (folder / "notes.txt").write_text("")
    path = new_log(folder, "build")
    path.write_text("")
    assert sorted(log.name for log in folder.iterdir()) == sorted(
        [*(f"{number}.log" for number in range(3, 12)), "notes.txt", path.name])


def test_a_logs_name_tells_what_it_is_of(tmp_path: Path) -> None:
    path = new_log(tmp_path / "new" / "logs", "build")
    assert path.parent.is_dir()
    assert path.name.endswith(f"-{os.getpid()}-build.log")
