"""What the build tool recorded of each unit's headers, and what it would make of it. Runs nothing, changes nothing.

"Written" and "used" differ: a depfile beside an object says what the compiler opened; what counts
for the next build is what the tool has taken over from it, or will take over first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from tasks.checkout.graph import Statement
from tasks.checkout.locate import Location
from tasks.closure.depfile import State, read_depfile

__all__ = ["Files", "UnitRecord", "due_by_time", "read_records", "written_elsewhere"]


_Answer = TypeVar("_Answer")


class _Once(dict[str, _Answer]):
    """Answers by path, each asked for once; mapped over a million recorded paths without a call for each."""

    def __init__(self, ask: Callable[[str], _Answer]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, path: str) -> _Answer:
        answer = self[path] = self._ask(path)
        return answer


def _time(path: str) -> float:
    """Modification time in ns; a missing file is newer than every other."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return math.inf


class Files:
    """Names and times of files at one moment; each is asked once.

    A key is the real path of the folder with the file's own name: two ways to one folder give one
    key, and a header that is itself a link keeps its name.
    """

    def __init__(self, build_dir: str) -> None:
        self._build_dir = build_dir
        self._keys = _Once(self._find_key)
        self._folders = _Once(os.path.realpath)
        self._times = _Once(_time)

    def _find_key(self, path: str) -> str:
        folder, _, name = os.path.join(self._build_dir, path).rpartition("/")
        key = f"{self._folders[folder]}/{name}"
        # One text object a file, however many units name it.
        return self._keys.setdefault(key, key)

    def key(self, path: str) -> str:
        """The key of a path as a build file writes it (relative to the build directory)."""
        return self._keys[path]

    def keys(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The keys of many paths, in order."""
        return tuple(map(self._keys.__getitem__, paths))

    def spellings(self, key: str) -> tuple[str, ...]:
        """Every way in which the build files wrote this file."""
        return tuple(path for path, known in self._keys.items() if known == key)

    def mtime(self, path: str) -> int | None:
        """Modification time in ns, links followed; None for a missing file."""
        time = self._times[path]
        return time if isinstance(time, int) else None

    def all_by(self, paths: Iterable[str], time_ns: int) -> bool:
        """Whether all of the files are there and none is newer than `time_ns`."""
        return max(map(self._times.__getitem__, paths), default=0) <= time_ns


@dataclass(frozen=True)
class UnitRecord:
    """What the tool knows about one unit's object.

    `files` are keys (see :class:`Files`); None: no record. `origin` names the file that holds them.
    `depfile` is the state of the compiler's own depfile, `used` whether the tool ever reads one for
    this unit. `folded` is false where the record lies in a depfile that an ordinary build takes over
    first and a build of one object alone does not. `due` is why the next build compiles the unit
    whatever is edited, `stops` why it stops before it compiles anything. `began_ns` is a moment by
    which the compile of the object had read its headers; None where nothing tells.
    """

    files: tuple[str, ...] | None
    origin: str
    depfile: State
    used: bool
    folded: bool = True
    due: str | None = None
    stops: str | None = None
    began_ns: int | None = None


def due_by_time(obj: str, inputs: Iterable[str], files: Files) -> str | None:
    """The rule that make and ninja share: an object is remade when it is missing or an input is newer or missing."""
    made = files.mtime(obj)
    if made is None:
        return "its object does not exist"
    inputs = tuple(inputs)
    if files.all_by(inputs, made):
        return None
    for path in inputs:
        time = files.mtime(path)
        if time is None:
            return f"{os.path.basename(path)} does not exist"
        if time > made:
            return f"{os.path.basename(path)} is newer than the object"
    return None


def written_elsewhere(obj: str) -> State | None:
    """The state of a depfile that the compiler wrote where it does by itself, and not where the tool looks."""
    for path in (obj + ".d", os.path.splitext(obj)[0] + ".d"):
        depfile = read_depfile(path)
        if depfile.state != "missing":
            return depfile.state
    return None


def read_records(location: Location, statements: Iterable[Statement], files: Files) -> Mapping[str, UnitRecord]:
    """The record of every compile statement, by its object."""
    if location.cache.generator == "Unix Makefiles":
        from tasks.closure.make_records import read_make_records

        return read_make_records(location.build_dir, statements, files)
    from tasks.closure.ninja_records import read_ninja_records

    return read_ninja_records(location.build_dir, location.cache.get("CMAKE_BUILD_TYPE"), statements, files)
