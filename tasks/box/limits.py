"""What this process may use of the machine: cores and memory, where a container or a batch system gives it a part.

Control groups of both versions count, at every level from the process's own up to the highest that is seen here
(kernel: `Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`, `scheduler/sched-bwc.rst`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.box.mounts import is_below, parse_mounts

__all__ = ["Limits", "group_limits", "read_limits"]


@dataclass(frozen=True)
class Limits:
    """Cores, and bytes of memory that are still to be had; infinite where nothing limits them."""

    cores: float = math.inf
    memory: float = math.inf

    def within(self, other: Limits) -> Limits:
        """The tighter of both, each for itself."""
        return Limits(min(self.cores, other.cores), min(self.memory, other.memory))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""  # another version's file, a level that is gone, or one that may not be read


def _numbers(path: Path) -> list[float]:
    """The numbers in a file; `max` and, in version 1, a negative one are no limit."""
    words = _read(path).split()
    return [math.inf if word == "max" or word.startswith("-") else float(word) for word in words]


def _folders(process: Path) -> Iterator[Path]:
    """The process's control groups of every hierarchy, each followed by those above it."""
    mounts = [mount for mount in parse_mounts(_read(process / "mountinfo")) if mount.kind in ("cgroup", "cgroup2")]
    for line in _read(process / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        for mount in mounts:
            # Version 2 has one hierarchy, without names; a hierarchy of version 1 is mounted with its controllers.
            if (mount.kind == "cgroup2") != (number == "0") or not (
                    number == "0" or set(controllers.split(",")) <= set(mount.options.split(","))):
                continue
            # A container sees its own group as the mount's root, by whatever name it has outside.
            inside = is_below(path, mount.root) and "/.." not in path
            folder = Path(mount.point + path[len(mount.root.rstrip("/")):]) if inside else Path(mount.point)
            yield from (level for level in (folder, *folder.parents) if is_below(str(level), mount.point))


def _cores(folder: Path) -> float:
    quota = _numbers(folder / "cpu.max") or [*_numbers(folder / "cpu.cfs_quota_us"),
                                             *_numbers(folder / "cpu.cfs_period_us")]
    return quota[0] / quota[1] if len(quota) == 2 and quota[1] > 0 else math.inf


def _memory(folder: Path) -> float:
    """The group's limit without what it uses; the file cache is given up where it is needed."""
    limits = [number for name in ("memory.max", "memory.high", "memory.limit_in_bytes")
              for number in _numbers(folder / name)]
    used = [*_numbers(folder / "memory.current"), *_numbers(folder / "memory.usage_in_bytes")]
    if not limits or not used:
        return math.inf
    counts = dict(line.split(" ", 1) for line in _read(folder / "memory.stat").splitlines() if " " in line)
    # In version 1 the plain names leave out what lies in the groups below.
    cache = sum(int(counts.get(f"total_{name}", counts.get(name, 0))) for name in ("inactive_file", "active_file"))
    return max(0.0, min(limits) - max(0.0, used[0] - cache))


def group_limits(process: Path = Path("/proc/self")) -> Limits:
    """What the control groups of a process allow, by its folder in `/proc`."""
    limits = Limits()
    for folder in _folders(process):
        limits = limits.within(Limits(_cores(folder), _memory(folder)))
    return limits


def read_limits() -> Limits:
    """What this process may use now, by its affinity, the machine and the control groups."""
    import psutil

    return group_limits().within(Limits(len(os.sched_getaffinity(0)), psutil.virtual_memory().available))
