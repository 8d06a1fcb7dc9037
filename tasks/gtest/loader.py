"""Which libraries a test process mapped, by the dynamic loader's own log: the proved one, or another.

glibc writes the log with `LD_DEBUG=files`. Only `calling init:` proves that a library was mapped: a failed
dlopen prints `generating link map` too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["FileIdentity", "LoaderLog", "MappedLibraries", "compare", "identity_of", "parse_log", "read_logs"]

_LOG_LIMIT = 64 << 20
_LINE = re.compile(
    r"^ *(?P<pid>\d+):\t(?:calling init: (?P<init>.+)"
    r"|initialize program: (?P<program>.+)"
    r"|file=(?P<mapped>.+) \[-?\d+\];  generating link map"
    r"|file=(?P<loaded>.+) \[-?\d+\];  dynamically loaded by .+"
    r"|file=(?P<needed>.+) \[-?\d+\];  needed by (?P<by>.+) \[-?\d+\])$", re.M)


class FileIdentity(NamedTuple):
    """What the kernel says of a file, links followed: it moves with every write and replacement."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def identity_of(path: Path) -> FileIdentity | None:
    """The file's identity now; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return FileIdentity(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


@dataclass(frozen=True)
class LoaderLog:
    """One process's log. `missing` maps a library that was not found to the one that needs it."""

    program: str
    initialised: tuple[str, ...]
    requested: tuple[str, ...]
    missing: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MappedLibraries:
    """What the logs say of one wanted file.

    `ours` is the path under which the wanted file itself was mapped; `others` are mapped files of the same
    name that are not it; `requested` says that it was asked for at all.
    """

    ours: Path | None
    others: tuple[Path, ...]
    requested: bool
    missing: tuple[tuple[str, str], ...]
    observed: bool


def parse_log(text: str, pid: int | None = None) -> LoaderLog:
    """Read one log; lines of other process ids (forked children) are left out where `pid` is given."""
    kinds = ("init", "program", "mapped", "loaded", "needed")
    found: dict[str, dict[str, str]] = {name: {} for name in kinds}
    for match in _LINE.finditer(text):
        if pid is None or int(match["pid"]) == pid:
            for name, values in found.items():
                if match[name] is not None:
                    values.setdefault(match[name], match["by"] or "")
    missing = tuple((name, by) for name, by in found["needed"].items()
                    if name not in found["mapped"] and not _is_loaded(name, found["init"]))
    return LoaderLog(next(iter(found["program"]), ""), tuple(found["init"]),
                     (*found["loaded"], *found["needed"]), missing)


def _is_loaded(name: str, initialised: dict[str, str]) -> bool:
    return any(os.path.basename(path) == os.path.basename(name) for path in initialised)


def read_logs(prefix: Path, binary: Path) -> tuple[LoaderLog, ...]:
    """The logs `PREFIX.<pid>` of processes that ran `binary`; all of them where none says so (a wrapper)."""
    logs = []
    for path in sorted(prefix.parent.glob(f"{_glob_escape(prefix.name)}.*")):
        try:
            with path.open(encoding="utf-8", errors="surrogateescape") as file:
                text = file.read(_LOG_LIMIT)
        except OSError:
            continue
        pid = path.suffix[1:]
        logs.append(parse_log(text, int(pid) if pid.isdecimal() else None))
    own = tuple(log for log in logs if log.program == str(binary))
    return own or tuple(logs)


def _glob_escape(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def compare(logs: Sequence[LoaderLog], wanted: Path, identity: FileIdentity | None,
            workdir: Path) -> MappedLibraries:
    """Find the wanted file among the mapped ones by device and inode, and others that bear its name."""
    stem = wanted.name.partition(".so")[0]
    ours: Path | None = None
    others: dict[Path, None] = {}
    for log in logs:
        for text in (*log.initialised, log.program):
            path = workdir / text
            found = identity_of(path)
            same_file = found is not None and identity is not None and found[:2] == identity[:2]
            # Replaced since, the path holds another file by now; that is a change of ours, not another library.
            if same_file or path.resolve() == wanted.resolve():
                ours = ours or path.resolve()
            elif path.name.startswith(stem) and text != log.program:
                others[path.resolve()] = None
    requested = any(os.path.basename(name).startswith(stem) for log in logs for name in log.requested)
    missing = tuple(dict.fromkeys(pair for log in logs for pair in log.missing))
    return MappedLibraries(ours, tuple(others), requested, missing, bool(logs))
