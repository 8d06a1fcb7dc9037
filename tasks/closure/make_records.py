"""What CMake's Makefile generator recorded: `compiler_depend.make`, `.internal`, `depend.make`, depfiles.

An ordinary build first takes depfiles over ("Consolidate compiler generated dependencies"): every
one that `DependInfo.cmake` lists and that is not older than `compiler_depend.internal`, or all of
them where that file is missing; an empty or unreadable one is passed over in silence. Then make
reads `compiler_depend.make`, or `depend.make` where CMake's own scanner is used
(cmDependsCompiler.cxx and cmLocalUnixMakefileGenerator3.cxx of CMake 3.20 and newer).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tasks.checkout.graph import Statement, absolute
from tasks.closure.depfile import State, read_depfile, read_rules
from tasks.closure.recorded import Files, UnitRecord, due_by_time, written_elsewhere

__all__ = ["read_make_records"]

_SET = re.compile(r"^set\((CMAKE_DEPENDS_\w+)\s(.*?)\)\n", re.M | re.S)
# In the middle of a name; make takes it for the end of a target. The colon comes first, since a
# search for one letter is many times faster than one for a class.
_BARE_COLON = re.compile(r":(?<=[^\s\\]:)(?=[^\s:=])")
# A file of a thousand units' records has a hundred megabytes: it is never held as a whole.
_PIECE = 1 << 20
_COMMENT = re.compile(r"^#.*\n?", re.M)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _pieces(path: Path) -> Iterator[str]:
    """A file's text in pieces that end with an empty line, or with the file: no piece cuts a rule."""
    rest = ""
    with suppress(OSError), path.open(encoding="utf-8", errors="surrogateescape") as file:
        while read := file.read(_PIECE):
            whole, gap, rest = (rest + read).rpartition("\n\n")
            if gap:
                yield whole + gap
        yield rest


def _without_comments(text: str) -> str:
    return _COMMENT.sub("", text) if "#" in text else text


def _fragment(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(target, prerequisites) of a makefile fragment that CMake wrote."""
    with suppress(ValueError):
        for text in _pieces(path):
            for rule in read_rules(_without_comments(text)):
                if rule.prerequisites:
                    yield rule.targets[0] if rule.targets else "", rule.prerequisites


def _internal(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """`compiler_depend.internal`: a target, then its files indented by one blank; nothing is escaped."""
    for text in _pieces(path):
        for block in _without_comments(text).split("\n\n"):
            target, *files = block.strip("\n").split("\n ")
            if target and target[0] != " ":
                yield target, tuple(files)


def _cmake_lists(path: Path) -> dict[str, list[str]]:
    """The quoted words of every `set(CMAKE_DEPENDS_...)` of a `DependInfo.cmake`."""
    found = {}
    for match in _SET.finditer(_text(path)):
        found[match[1]] = [re.sub(r"\\(.)", r"\1", word) for word in _QUOTED.findall(match[2])]
    return found


@dataclass(frozen=True)
class _Target:
    """The records of one target's folder, by absolute object path."""

    recorded: Mapping[str, tuple[str, ...]]
    scanned: Mapping[str, tuple[str, ...]]
    waiting: Mapping[str, tuple[str, ...]]
    depfiles: Mapping[str, str]
    by_scanner: bool
    stops: str | None


class _Reader:
    def __init__(self, build_dir: Path, files: Files) -> None:
        self._build_dir = build_dir
        self._files = files
        self._states: dict[str, State] = {}
        self._targets: dict[str, _Target] = {}

    def target(self, folder: str) -> _Target:
        if folder not in self._targets:
            self._targets[folder] = self._read(Path(folder))
        return self._targets[folder]

    def state(self, depfile: str) -> State:
        if depfile not in self._states:
            self._states[depfile] = read_depfile(depfile).state
        return self._states[depfile]

    def _absolute(self, rules: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for target, paths in rules:
            obj = absolute(self._build_dir, target)
            found[obj] = found.get(obj, ()) + self._files.keys(paths)
        return found

    def _read(self, folder: Path) -> _Target:
        lists = _cmake_lists(folder / "DependInfo.cmake")
        listed = lists.get("CMAKE_DEPENDS_DEPENDENCY_FILES", [])
        depfiles = {absolute(self._build_dir, obj): absolute(self._build_dir, depfile)
                    for obj, kind, depfile in zip(listed[1::4], listed[2::4], listed[3::4], strict=False)
                    if kind == "gcc"}
        waiting = self._waiting(folder / "compiler_depend.internal", depfiles)
        if waiting:
            recorded = self._absolute(_internal(folder / "compiler_depend.internal"))
        else:
            recorded = self._absolute(_fragment(folder / "compiler_depend.make"))
        needed = ("depend.make", "compiler_depend.make") if depfiles else ("depend.make",)
        stops = next((f"{name} is missing: make stops" for name in needed if not (folder / name).exists()), None)
        colon = any(":" in path for paths in waiting.values() for path in paths) or any(
            _BARE_COLON.search(text) for name in needed for text in _pieces(folder / name))
        if stops is None and colon:
            stops = "a header's path holds a colon, which CMake's makefile cannot: make stops"
        return _Target(recorded, self._absolute(_fragment(folder / "depend.make")), waiting, depfiles,
                       bool(lists.get("CMAKE_DEPENDS_LANGUAGES")), stops)

    def _waiting(self, internal: Path, depfiles: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        """What the next ordinary build takes over from depfiles before it compiles."""
        taken_over = self._files.mtime(str(internal))
        waiting = {}
        for obj, path in depfiles.items():
            written = self._files.mtime(path)
            if written is None or (taken_over is not None and written < taken_over):
                continue
            depfile = read_depfile(path)
            self._states[path] = depfile.state
            # CMake believes the first rule alone.
            first = depfile.rules[0].prerequisites if depfile.rules else ()
            if first:
                waiting[obj] = self._files.keys(first)
        return waiting

    def record(self, statement: Statement) -> UnitRecord:
        obj = statement.output
        target = self.target(obj[: obj.find(".dir/") + len(".dir")])
        depfile = target.depfiles.get(obj)
        state = self.state(depfile) if depfile is not None else "missing"
        elsewhere = written_elsewhere(obj) if state == "missing" else None
        found = target.waiting.get(obj) or target.recorded.get(obj) or target.scanned.get(obj)
        origin = ("depfile" if obj in target.waiting else
                  "compiler_depend.make" if obj in target.recorded else
                  "depend.make" if target.by_scanner else "")
        due = due_by_time(obj, (*statement.inputs, *(found or ())), self._files)
        if due is None and found is None and target.by_scanner:
            due = "CMake scans it at the next build"
        # nvcc preprocesses for the depfile before it compiles; what is newer than that was not read for it.
        began = None if depfile is None else self._files.mtime(depfile)
        used = elsewhere is None and (depfile is not None or target.by_scanner)
        return UnitRecord(found, origin, elsewhere or state, used, obj not in target.waiting, due, target.stops, began)


def read_make_records(build_dir: Path, statements: Iterable[Statement], files: Files) -> Mapping[str, UnitRecord]:
    """The record of every compile statement, by its object."""
    reader = _Reader(build_dir, files)
    return {statement.output: reader.record(statement) for statement in statements if ".dir/" in statement.output}
