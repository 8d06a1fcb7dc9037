"""What the build tool recorded of each unit's headers, and what it would make of it. Runs nothing, changes nothing.

"Written" and "used" differ: a depfile beside an object says what the compiler opened; what counts
for the next build is what the tool has taken over from it, or will take over first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tasks.checkout.graph import Statement
from tasks.checkout.locate import Location
from tasks.closure.depfile import State, read_depfile

__all__ = ["Files", "UnitRecord", "due_by_time", "read_records", "written_elsewhere"]


class Files:
    """Names and times of files at one moment; each is asked once.

    A key is the real path of the folder with the file's own name: two ways to one folder give one
    key, and a header that is itself a link keeps its name.
    """

    def __init__(self, build_dir: str) -> None:
        self._build_dir = build_dir
        self._keys: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._times: dict[str, int | None] = {}

    def key(self, path: str) -> str:
        """The key of a path as a build file writes it (relative to the build directory)."""
        known = self._keys.get(path)
        if known is None:
            folder, _, name = os.path.join(self._build_dir, path).rpartition("/")
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder)
            known = self._keys[path] = f"{self._folders[folder]}/{name}"
            # One text object a file, however many units name it.
            known = self._keys[path] = self._keys.setdefault(known, known)
        return known

    def keys(self, paths: Iterable[str]) -> tuple[str, ...]:
        """The keys of many paths, in order."""
        return tuple(map(self.key, paths))

    def spellings(self, key: str) -> tuple[str, ...]:
        """Every way in which the build files wrote this file."""
        return tuple(path for path, known in self._keys.items() if known == key)

    def mtime(self, path: str) -> int | None:
        """Modification time in ns, links followed; None for a missing file."""
        try:
            return self._times[path]
        except KeyError:
            try:
                time = os.stat(path).st_mtime_ns
            except OSError:
                time = None
            self._times[path] = time
            return time


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
