"""Runs a build command as a process tree of its own: every line to a log, the tree ended with us."""

from __future__ import annotations

import os
import re
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tasks.builder.command import shown
from tasks.child import start_child
from tasks.errors import UserError

if TYPE_CHECKING:
    import subprocess

__all__ = ["BuildRun", "end_session", "members", "new_log", "run_build"]

_KEPT_LOGS = 10
_TERM_PATIENCE_S = 5.0
_KILL_PATIENCE_S = 5.0
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


def _is_zombie(pid: int) -> bool:
    """Dead, and only waiting to be reaped: proc(5), the field after the name in parentheses."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"


def members(session: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError):
                if os.getsid(int(entry)) == session and not _is_zombie(int(entry)):
                    found.append(int(entry))
    return found


@contextmanager
def _signals_held_back() -> Iterator[list[int]]:
    """Ctrl-C and SIGTERM interrupt nothing in here; the list tells those that came.

    An interrupt while a process is started, or while its tree is ended, would leave it running.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread is ever interrupted
        return
    before = {number: signal.signal(number, lambda number, _: came.append(number))
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_session(process: subprocess.Popen[bytes]) -> None:
    """End every process of the session that `process` leads: SIGTERM, then SIGKILL, then reap it."""
    with _signals_held_back():
        _end_members(process)


def _end_members(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGTERM, _TERM_PATIENCE_S), (signal.SIGKILL, _KILL_PATIENCE_S)):
        asked: set[int] = set()
        deadline = time.monotonic() + patience
        # Looked for again each time: a process may fork while its parent is being ended.
        while left := members(process.pid):
            for pid in set(left) - asked:
                with suppress(OSError):
                    os.kill(pid, number)
            asked.update(left)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
            process.poll()
    process.poll()


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


def _start(words: Sequence[str], cwd: Path, environ: Mapping[str, str],
           keep: tuple[int, ...]) -> subprocess.Popen[bytes]:
    import subprocess

    try:
        return start_child(words, cwd, environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           start_new_session=True, pass_fds=keep)
    except OSError as error:
        raise UserError(f"{words[0]} cannot be run: {error.strerror}.", "mend build_command in fmha.toml") from None


def run_build(words: Sequence[str], cwd: Path, environ: Mapping[str, str], log: Path,
              on_line: Callable[[str | None], None], lock_descriptor: int | None = None,
              on_start: Callable[[int], None] | None = None) -> BuildRun:
    """Run one command to its end; its output goes to `log` and, line by line, to `on_line`.

    The child leads a session of its own and inherits `lock_descriptor`. On any exception, Ctrl-C
    among them, the whole session is ended before the exception goes on.
    """
    started = time.monotonic()
    keep = () if lock_descriptor is None else (lock_descriptor,)
    with log.open("ab") as file:
        file.write(f"$ {shown(words)}\n".encode(errors="surrogateescape"))
        file.flush()
        process = None
        try:
            with _signals_held_back() as held_back:
                process = _start(words, cwd, environ, keep)
                if on_start is not None:
                    on_start(process.pid)
            if held_back:
                raise KeyboardInterrupt
            _pump(process, file, on_line)
            status = process.wait()
        except BaseException:
            if process is not None:
                end_session(process)
            raise
    return BuildRun(status, log, time.monotonic() - started)
