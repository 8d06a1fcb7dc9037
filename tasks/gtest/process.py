"""Starts one command in a session of its own, reads its output, and ends the whole tree when it must.

Knows nothing of tests: a watcher is fed the output and says when to stop.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, cast

from tasks.gtest.environment import RUN_MARK

__all__ = ["Ended", "NotStartedError", "Watcher", "run_guarded"]

_TICK_S = 0.1
_BLOCK = 1 << 20
_F_SETPIPE_SZ = 1031
# Output may still be in the pipe when the process has ended; its children may hold the pipe for ever.
_DRAIN_S = 2.0
_QUIET_S = 0.2
_TERM_PATIENCE_S = 2.0
_KILL_PATIENCE_S = 5.0


class NotStartedError(Exception):
    """The command could not be started; the text says why."""


class Watcher(Protocol):
    """Reads a command's output while it runs."""

    def feed(self, data: bytes) -> None:
        """Take the next piece of standard output and error, in the order in which they were written."""

    def over(self, now: float) -> str | None:
        """Why the command must be ended now (`now` is monotonic), or None."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    `status` is negative for a signal, None where the kernel would not end the process. `stopped` is
    the watcher's reason, ``interrupted``, or None where it ended by itself. `survivors` are process
    ids that could not be ended.
    """

    status: int | None
    stopped: str | None
    seconds: float
    survivors: tuple[int, ...] = ()


def _start(argv: tuple[str, ...], env: Mapping[str, str], cwd: Path) -> Any:
    from plumbum import local

    program = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=env.get("PATH"))
    if program is None:
        raise NotStartedError(f"`{argv[0]}` is not on PATH")
    try:
        # plumbum starts from a copy of this process's environment and only adds to it: empty that first.
        with local.env():
            local.env.clear()
            return local[program].popen(
                argv[1:], env=dict(env), cwd=str(cwd), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise NotStartedError(f"{program}: {error.strerror or error}") from None
    except ValueError as error:  # a NUL character in an argument
        raise NotStartedError(f"{program}: {error}") from None


def _members(leader: int, mark: str) -> Iterator[Any]:
    """The living processes of the run: its session, and those that left it but carry its mark."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getsid(process.pid) == leader or process.environ().get(RUN_MARK) == mark:
                yield process


def _end_tree(process: Any, mark: str) -> tuple[int, ...]:
    """SIGTERM, then SIGKILL, until nothing of the run is left; the ids of what would not end."""
    import psutil

    left: list[Any] = []
    for number, patience in ((signal.SIGTERM, _TERM_PATIENCE_S), (signal.SIGKILL, _KILL_PATIENCE_S)):
        asked: set[int] = set()
        deadline = time.monotonic() + patience
        # Looked for again each time: a process may fork while its parent is being ended.
        while left := list(_members(process.pid, mark)):
            for member in left:
                if member.pid not in asked:
                    with contextlib.suppress(psutil.Error, OSError):
                        member.send_signal(number)
                    asked.add(member.pid)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
            process.poll()  # reaps it here: psutil's own wait would steal the exit status
        if not left:
            return ()
    return tuple(member.pid for member in left)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """A second Ctrl-C must not leave half a tree behind; it is dropped.

    A signal mask would not do: it is one thread's, and the kernel may choose another.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is ever interrupted
        return
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pump(process: Any, stream: IO[bytes], watcher: Watcher) -> str | None:
    """Feed the watcher until the process has ended and its output is read; the watcher's reason to stop."""
    descriptor = stream.fileno()
    with contextlib.suppress(OSError):
        import fcntl

        fcntl.fcntl(descriptor, _F_SETPIPE_SZ, _BLOCK)
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = selector.select(_TICK_S if ended is None else _QUIET_S)
            data = os.read(descriptor, _BLOCK) if ready else b""
            if data:
                watcher.feed(data)
            now = time.monotonic()
            if ended is not None and (not data or now - ended > _DRAIN_S):
                return None
            if ended is None and process.poll() is not None:
                ended = now
            elif ended is None and (reason := watcher.over(now)):
                return reason
            if ready and not data:
                # The pipe was closed, but the process lives on.
                selector.unregister(descriptor)
                while process.poll() is None:
                    if reason := watcher.over(time.monotonic()):
                        return reason
                    time.sleep(_TICK_S / 10)
                return None


def run_guarded(argv: tuple[str, ...], env: Mapping[str, str], cwd: Path, watcher: Watcher) -> Ended:
    """Run a command to its end, the watcher's limit or Ctrl-C; nothing of it is left running.

    `env` is the whole environment and must hold :data:`RUN_MARK`. Raises :class:`NotStartedError`.
    """
    began = time.monotonic()
    process = _start(argv, env, cwd)
    stopped: str | None = None
    stream = cast("IO[bytes]", process.stdout)
    try:
        stopped = _pump(process, stream, watcher)
    except KeyboardInterrupt:
        stopped = "interrupted"
    finally:
        with _uninterrupted():
            survivors = _end_tree(process, env[RUN_MARK])
            status = cast("int | None", process.poll())
            if stopped is not None and stopped != "interrupted":
                _read_rest(stream, watcher)
            stream.close()
    return Ended(status, stopped, time.monotonic() - began, survivors)


def _read_rest(stream: IO[bytes], watcher: Watcher) -> None:
    """What was written before the end: the last lines say which test hung."""
    os.set_blocking(stream.fileno(), False)
    with contextlib.suppress(OSError):
        if data := os.read(stream.fileno(), _BLOCK):
            watcher.feed(data)
