"""Which units of a running build are compiled and which are being compiled now, whatever the build tool prints.

Make tells when a compile begins, ninja when it has ended; the objects and the kernel tell both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.builder.run import members

__all__ = ["BuildWatch", "Moment"]


@dataclass(frozen=True)
class Moment:
    """`done` of `total` expected units; (unit, seconds so far) of those that are compiled now, longest first."""

    done: int
    total: int
    running: tuple[tuple[str, float], ...]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def _uptime() -> float:
    return float(Path("/proc/uptime").read_text().split()[0])


def _commands(session: int) -> Iterator[tuple[list[str], float]]:
    """(words, age in s) of every process of the session. The start time is field 22 of proc_pid_stat(5), in ticks."""
    now, tick = _uptime(), os.sysconf("SC_CLK_TCK")
    for pid in members(session):
        with suppress(OSError, IndexError, ValueError):
            words = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            yield words, max(0.0, now - int(fields[19]) / tick)


class BuildWatch:
    """Made before the build; `units` maps each expected unit's name to (source, object)."""

    def __init__(self, units: Mapping[str, tuple[str, str]]) -> None:
        self._units = dict(units)
        self._before = {name: _stamp(obj) for name, (_, obj) in units.items()}
        self._sessions: list[int] = []
        self.started = time.monotonic()

    def begin(self, session: int) -> None:
        """A command of the build runs in this session."""
        self._sessions.append(session)

    def moment(self) -> Moment:
        """What is so now."""
        running = self._running()
        done = [name for name, (_, obj) in self._units.items()
                if name not in running and (stamp := _stamp(obj)) is not None and stamp != self._before[name]]
        told = sorted(running.items(), key=lambda item: -item[1])
        return Moment(len(done), len(self._units), tuple(told))

    def _running(self) -> dict[str, float]:
        """Compilers are told by the source among their words."""
        names = {source: name for name, (source, _) in self._units.items()}
        found: dict[str, float] = {}
        for words, age in _commands(self._sessions[-1]) if self._sessions else ():
            for word in words:
                name = names.get(word)
                if name is not None:
                    found[name] = max(age, found.get(name, 0.0))
        return found
