"""Runs a build command as a process tree of its own: every line to a log, the tree ended with us."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from tasks.builder.command import shown
from tasks.errors import UserError

if TYPE_CHECKING:
    import subprocess

__all__ = ["BuildRun", "end_session", "new_log", "run_build"]

_KEPT_LOGS = 10
_TERM_PATIENCE_S = 5.0
_TICK_S = 0.2
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class BuildRun:
    """How one build command ended. `status` is its exit status; negative for a signal, as in subprocess."""

    status: int
    log: Path
    seconds: float


def new_log(folder: Path, name: str) -> Path:
    """A path for a new log; the oldest beyond the last ten are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime_ns)
    for old in logs[: max(0, len(logs) - _KEPT_LOGS + 1)]:
        old.unlink(missing_ok=True)
    return folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{name}.log"


def _members(session: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                if os.getsid(int(entry)) == session:
                    found.append(int(entry))
    return found


def _signal(pids: Sequence[int], number: int) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End every process of the session that `process` leads: SIGTERM, then SIGKILL, then reap it."""
    session = process.pid
    _signal(_members(session), signal.SIGTERM)
    deadline = time.monotonic() + _TERM_PATIENCE_S
    while time.monotonic() < deadline:
        process.poll()
        if not [pid for pid in _members(session) if pid != session or process.returncode is None]:
            break
        time.sleep(0.02)
    _signal(_members(session), signal.SIGKILL)
    process.wait()


def _pump(process: subprocess.Popen[bytes], log: IO[bytes], on_line: Callable[[str | None], None]) -> None:
    """Copy output to `log` and its lines to `on_line` until the process ends; None is a tick without a line.

    The end of the pipe is not waited for: a daemon that the build starts (a compiler cache's server)
    keeps it open.
    """
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    rest = b""
    while True:
        ended = process.poll() is not None
        readable, _, _ = select.select([descriptor], [], [], 0.05 if ended else _TICK_S)
        if not readable:
            if ended:
                break
            on_line(None)
            continue
        data = os.read(descriptor, 1 << 16)
        if not data:
            break
        log.write(data)
        # A log that is read while the build runs (`tail -f`) must not lag behind.
        log.flush()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            on_line(_plain(line))
    if rest:
        on_line(_plain(rest))


def _plain(line: bytes) -> str:
    return _ESCAPES.sub("", line.decode("utf-8", errors="replace")).rstrip("\r")


def run_build(words: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path,
              on_line: Callable[[str | None], None], lock_descriptor: int | None = None,
              on_start: Callable[[int], None] | None = None) -> BuildRun:
    """Run one command to its end; its output goes to `log` and, line by line, to `on_line`.

    The child leads a session of its own and inherits `lock_descriptor`. On any exception, Ctrl-C
    among them, the whole session is ended before the exception goes on.
    """
    import subprocess

    from plumbum import local

    started = time.monotonic()
    keep = () if lock_descriptor is None else (lock_descriptor,)
    with log.open("ab") as file:
        file.write(f"$ {shown(words)}\n".encode(errors="surrogateescape"))
        file.flush()
        try:
            process = cast("subprocess.Popen[bytes]", local[words[0]][list(words[1:])].popen(
                cwd=str(cwd), env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True, pass_fds=keep))
        except OSError as error:
            raise UserError(f"{words[0]} cannot be run: {error.strerror}.",
                            "mend build_command in fmha.toml") from None
        try:
            if on_start is not None:
                on_start(process.pid)
            _pump(process, file, on_line)
            status = process.wait()
        except BaseException:
            end_session(process)
            raise
    return BuildRun(status, log, time.monotonic() - started)
