"""One build at a time for each build directory, also after a kill -9 of the one who started it.

The lock is a file lock whose descriptor the build inherits: it lives as long as a process of the
build that has it open. Build scripts close descriptors for their children, so the session id of the
build is written down too, and living processes of that session count as holders.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from tasks.errors import UserError
from tasks.evidence.snapshot import Identity, identity_of

__all__ = ["BuildLock", "holder"]

_POLL_S = 0.5


def _holder_file(state: Path) -> Path:
    return state / "lock.json"


def _session_members(session: int) -> list[int]:
    """Living processes of a session, zombies left out."""
    import psutil

    members = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
        except (OSError, psutil.Error):
            continue
    return members


def holder(state: Path) -> dict[str, object]:
    """Who wrote the lock last: `pid`, `since` (Unix time), `session` of the build, `boot` of the machine."""
    try:
        data = json.loads(_holder_file(state).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _boot() -> str:
    """Process ids mean nothing after a reboot."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


class BuildLock:
    """The lock of one build directory's state folder. Reentrant in one process.

    `command` is what a person runs again who wants to wait for it.
    """

    def __init__(self, state: Path, command: str = "doit TASK") -> None:
        self._command = command
        self._state = state
        self._descriptor: int | None = None
        self._since = 0.0
        #: :meth:`note` at the moment when the lock was taken.
        self.found: Identity | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds the lock."""
        return self._descriptor is not None

    def note(self) -> Identity | None:
        """Of the note that whoever takes the lock or gives it back writes: the same as before means that nobody did."""
        return identity_of(_holder_file(self._state))

    def acquire(self, wait: bool) -> None:
        """Take the lock; :class:`UserError` that names the holder where it is taken and `wait` is false."""
        if self.held:
            return
        try:
            self._state.mkdir(exist_ok=True)
        except OSError as error:
            raise UserError(f"{self._state} cannot be made: {error.strerror}.",
                            "building needs a writable build directory: build_dir=/path") from None
        told = False
        while (reason := self._try()) is not None:
            if not wait:
                raise UserError(f"{self._state.parent} is being built: {reason}.",
                                f"wait for it: {self._command} wait=1")
            if not told:
                print(f"waiting: {reason}", flush=True)
                told = True
            time.sleep(_POLL_S)
        self.found, self._since = self.note(), time.time()
        self._write(None)

    def _try(self) -> str | None:
        """Take the lock where it is free; else who has it."""
        descriptor = os.open(self._state / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            leftover = self._leftover()
            if not leftover:
                self._descriptor, descriptor = descriptor, -1
                return None
        except BlockingIOError:
            return self._who()
        except OSError as error:
            raise UserError(f"{self._state / 'lock'} cannot be locked: {error.strerror}.",
                            "building needs a file system with locks (flock): build_dir=/path") from None
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return "a build whose doit is gone still runs (processes " + ", ".join(map(str, leftover[:5])) + ")"

    def release(self) -> None:
        """Give the lock back; without effect where it is not held."""
        if self._descriptor is not None:
            self._write(None, ended=True)
            os.close(self._descriptor)
            self._descriptor = None

    def descriptor(self) -> int | None:
        """The descriptor that a child must inherit."""
        return self._descriptor

    def runs(self, session: int) -> None:
        """Write down the session of a build that was started under the lock."""
        self._write(session)

    def _who(self) -> str:
        data = holder(self._state)
        since = data.get("since")
        clock = time.strftime("%H:%M:%S", time.localtime(since)) if isinstance(since, float) else "an unknown time"
        return f"doit (process {data.get('pid', 'unknown')}) holds it since {clock}"

    def _leftover(self) -> list[int]:
        data = holder(self._state)
        session = data.get("session")
        if not isinstance(session, int) or data.get("ended") or data.get("boot") != _boot():
            return []
        return _session_members(session)

    def _write(self, session: int | None, ended: bool = False) -> None:
        data = {"pid": os.getpid(), "since": self._since, "session": session, "boot": _boot(), "ended": ended}
        _holder_file(self._state).write_text(json.dumps(data), encoding="utf-8")
