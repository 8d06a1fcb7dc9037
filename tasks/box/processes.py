"""Who uses a folder now: working directories, open and mapped files, running compilers; and who cannot be asked.

One snapshot serves any number of folders. Only what the kernel tells without disturbing anyone is read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.box.mounts import Mount, is_below, mount_of, names_of, read_mounts

if TYPE_CHECKING:
    import psutil

__all__ = ["Holder", "Processes", "see_processes"]

# The kernel's number of the first PID namespace (PROC_PID_INIT_INO); only from there is every process seen.
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
_KERNEL_THREAD = 0x00200000
# Helpers of a login session that the kernel lets nobody inspect. They start in `/` and build nothing; what they start
# (a shell after sudo) is a process of its own, and counts.
_SESSION_HELPERS = frozenset(("(sd-pam)", "gdm-session-wor", "gnome-keyring-d", "login", "ssh-agent", "sshd",
                              "sshd-auth", "sshd-session", "su", "sudo"))
_SERVICE = re.compile(r"^(?:0:|\d+:name=systemd):/(?:init\.scope|system\.slice/(?:[^/]+/)*[^/]+\.service)$", re.M)
# Services that run other people's commands.
_RUNS_JOBS = re.compile(r"cron|atd|docker|containerd|podman|runner|jenkins|slurm|buildkite|agent", re.I)
_MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ [1-9]\d*\s+(/.*)$", re.M)


@dataclass(frozen=True)
class Holder:
    """A process that uses a folder, and how."""

    pid: int
    name: str
    user: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}, {self.user}): {self.how}"


@dataclass(frozen=True)
class _Seen:
    """What one process holds: path to how. `mounts` are its own where they are not ours."""

    pid: int
    name: str
    user: str
    held: Mapping[str, str]
    words: tuple[str, ...]
    mounts: tuple[Mount, ...] | None = None
    foreign: bool = False


@dataclass(frozen=True)
class Processes:
    """All processes at one moment. `hidden` tells those that cannot be inspected."""

    seen: tuple[_Seen, ...] = ()
    hidden: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    inside: bool = False
    kin: frozenset[int] = field(default_factory=frozenset)

    def without(self, pids: frozenset[int]) -> Processes:
        """All but these: they are our own."""
        return replace(self, seen=tuple(process for process in self.seen if process.pid not in pids))

    def holders(self, folder: str) -> list[Holder]:
        """Who uses `folder` (a real path), the current process left out."""
        own = tuple(names_of(folder, self.mounts)) or (folder,)
        found = []
        for process in self.seen:
            names = own if process.mounts is None else (*own, *names_of(folder, self.mounts, process.mounts))
            how = _how(process, names, process.pid in self.kin)
            if how is not None:
                found.append(Holder(process.pid, process.name, process.user, how))
        return found

    def doubts(self, folder: str) -> list[str]:
        """Why it cannot be known for certain that nobody uses `folder`."""
        found = []
        home = mount_of(folder, self.mounts)
        if self.inside and not (home is not None and home.point == "/" and home.kind == "overlay"):
            found.append("this is a PID namespace (a container): processes outside of it cannot be seen")
        for process in self.seen:
            if process.foreign and any(names_of(folder, self.mounts, process.mounts)):
                found.append(f"{process.name} (process {process.pid}) in another PID namespace can reach it")
                break
        if self.hidden:
            more = f" and {len(self.hidden) - 1} more" if len(self.hidden) > 1 else ""
            found.append(f"{self.hidden[0]}{more} cannot be inspected")
        return found


def _how(process: _Seen, names: Sequence[str], kin: bool) -> str | None:
    for path, how in process.held.items():
        if any(is_below(path, name) for name in names):
            return f"{how} {path}"
    # Our own shell names the folder on its command line without using it.
    if not kin:
        for word in process.words:
            for name in names:
                at = word.find(name)
                if at >= 0 and word[at + len(name):at + len(name) + 1] in ("", "/", ":", ",", ";", " ", '"', "'"):
                    return f"its command line names {name}"
    return None


def _is_kernel_thread(pid: int) -> bool:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return bool(int(fields[6]) & _KERNEL_THREAD)


def _holds_nothing(pid: int, name: str) -> bool:
    """Whether a process that cannot be inspected is part of the system, by what everyone may read of it."""
    if pid == 1 or name in _SESSION_HELPERS:
        return True
    try:
        group = _SERVICE.search(Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return False
    return group is not None and _RUNS_JOBS.search(group[0]) is None


def _links(folder: str) -> Iterator[str]:
    for name in os.listdir(folder):
        try:
            yield os.readlink(f"{folder}/{name}")
        except FileNotFoundError:
            continue  # closed meanwhile


def _held(process: psutil.Process) -> dict[str, str]:
    """Raises :class:`OSError` and `psutil.Error` where it may not be known."""
    place = f"/proc/{process.pid}"
    held: dict[str, str] = {}
    # psutil lists open regular files only; an open directory or device counts here too.
    for path in _links(f"{place}/fd"):
        if path.startswith("/"):
            held.setdefault(path, "has open")
    for path in _MAPPED.findall(Path(f"{place}/maps").read_text(encoding="utf-8", errors="surrogateescape")):
        held.setdefault(path, "has mapped")
    for path, how in ((process.exe(), "runs"), (os.readlink(f"{place}/root"), "has as root"),
                      (process.cwd(), "works in")):
        if path and path != "/":
            held[path] = how
    return held


def _see(process: psutil.Process, spaces: tuple[str, str]) -> _Seen:
    place = f"/proc/{process.pid}/ns"
    space, mounting = os.readlink(f"{place}/pid"), os.readlink(f"{place}/mnt")
    mounts = None if mounting == spaces[1] and space == spaces[0] else read_mounts(process.pid)
    return _Seen(process.pid, process.name(), process.username(), _held(process), tuple(process.cmdline()), mounts,
                 foreign=space != spaces[0])


def _hides(mounts: Iterable[Mount]) -> bool:
    """Whether /proc leaves processes out."""
    proc = mount_of("/proc", tuple(mounts))
    return proc is not None and re.search(r"hidepid=(?!0|off)", proc.options) is not None and os.geteuid() != 0


def see_processes() -> Processes:
    """A snapshot of every process but this one."""
    import psutil

    mounts = read_mounts()
    spaces = (os.readlink("/proc/self/ns/pid"), os.readlink("/proc/self/ns/mnt"))
    seen, hidden = [], []
    if _hides(mounts):
        hidden.append("/proc is mounted with hidepid: other users' processes")
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            if process.status() == psutil.STATUS_ZOMBIE or _is_kernel_thread(process.pid):
                continue
            seen.append(_see(process, spaces))
        except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            continue  # ended meanwhile
        except (OSError, psutil.Error, ValueError, IndexError):
            hidden += _told(process)
    kin = frozenset(parent.pid for parent in psutil.Process().parents())
    return Processes(tuple(seen), tuple(hidden), mounts, spaces[0] != _FIRST_PID_NAMESPACE, kin)


def _told(process: psutil.Process) -> list[str]:
    import psutil

    try:
        name = process.name()
        return [] if _holds_nothing(process.pid, name) else [f"{name} (process {process.pid}, {process.username()})"]
    except psutil.NoSuchProcess:
        return []
    except psutil.Error:
        return [f"process {process.pid}"]
