"""What ninja recorded: `.ninja_deps`, `.ninja_log`, and which statements read a depfile at all.

Ninja's rules (graph.cc): an output is remade when it is missing, when an input or a recorded
dependency is newer or missing, when there is no record of its dependencies, when it is newer than
that record, or when the log notes an older time than an input has. A record of no dependencies is a
record: the compiler wrote no depfile, and nothing is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tasks.checkout.graph import Statement, absolute
from tasks.checkout.ninja import NinjaGraph, split_paths, unescape
from tasks.closure.depfile import Depfile, read_depfile
from tasks.closure.deps_log import DepsLog, LogEntry, read_build_log, read_deps_log
from tasks.closure.recorded import Files, UnitRecord, due_by_time, written_elsewhere

__all__ = ["NinjaRules", "content_of", "read_ninja_records"]


def content_of(path: Path) -> bytes | None:
    """A file's content; None where it is missing or unreadable."""
    try:
        return path.read_bytes()
    except OSError:
        return None


class NinjaRules(NinjaGraph):
    """The build graph with what the audit asks beyond it: how dependencies are read, and order-only inputs."""

    def reads(self, output: str) -> tuple[str, str]:
        """(`depfile`, `deps`) of the statement that makes `output`; empty where it has none."""
        text, scope = self._statements.get(output, ("", {}))
        pieces = split_paths(text, self._variables)
        rule = pieces[pieces.index(":") + 1] if ":" in pieces else ""
        outputs = " ".join(pieces[: pieces.index(":")]) if ":" in pieces else ""
        variables = self._variables | {"out": outputs} | {
            name: unescape(value, self._variables | {"out": outputs}) for name, value in scope.items()}
        bound = {**self._rules.get(rule, {}), **scope}
        return unescape(bound.get("depfile", ""), variables), unescape(bound.get("deps", ""), variables)

    def below(self, output: str) -> set[str]:
        """Every output that a build of `output` brings up to date, order-only inputs among them."""
        found: set[str] = set()
        waiting = [output]
        while waiting:
            path = waiting.pop()
            if path in found or path not in self._statements:
                continue
            found.add(path)
            pieces = split_paths(self._statements[path][0], self._variables)
            waiting += [absolute(self._build_dir, piece) for piece in pieces[pieces.index(":") + 2:]
                        if not piece.startswith("|")]
        return found


class _Reader:
    def __init__(self, build_dir: Path, config: str, files: Files) -> None:
        self._build_dir = build_dir
        self._files = files
        self._rules = NinjaRules(build_dir, config)
        self._deps = self._by_output(read_deps_log(content_of(build_dir / ".ninja_deps")))
        self._log = {absolute(build_dir, output): entry
                     for output, entry in read_build_log(build_dir / ".ninja_log").items()}

    def _by_output(self, log: DepsLog) -> dict[str, tuple[int, tuple[str, ...]]]:
        keys = self._files.keys(log.paths)
        return {absolute(self._build_dir, output): (mtime, tuple(map(keys.__getitem__, numbers)))
                for output, (mtime, numbers) in log.deps.items()}

    def record(self, statement: Statement) -> UnitRecord:
        obj = statement.output
        depfile, deps = self._rules.reads(obj)
        written = read_depfile(self._build_dir / depfile) if depfile else Depfile("missing")
        entry = self._log.get(obj)
        began = self._began(obj, entry)
        if deps:
            # ninja removes a depfile that it has taken over.
            noted = self._deps.get(obj)
            found = None if noted is None or not noted[1] else noted[1]
            elsewhere = written_elsewhere(obj) if found is None and written.state == "missing" else None
            return UnitRecord(found, ".ninja_deps", elsewhere or written.state, elsewhere is None,
                              due=self._due(statement, noted, entry), began_ns=began)
        elsewhere = written_elsewhere(obj) if written.state == "missing" else None
        found = self._files.keys(written.of_target(obj)) if written.prerequisites else None
        due = due_by_time(obj, (*statement.inputs, *(found or ())), self._files) or self._noted(statement, (), entry)
        if due is None and depfile and written.state == "missing":
            due = "its depfile is missing"
        return UnitRecord(found, "depfile", elsewhere or written.state, elsewhere is None and bool(depfile), due=due,
                          began_ns=began)

    def _due(self, statement: Statement, noted: tuple[int, tuple[str, ...]] | None,
             entry: LogEntry | None) -> str | None:
        obj = statement.output
        inputs = noted[1] if noted is not None else ()
        due = due_by_time(obj, (*statement.inputs, *inputs), self._files)
        if due is not None:
            return due
        if noted is None:
            return "ninja has no record of its headers"
        made = self._files.mtime(obj)
        if made is not None and made > noted[0]:
            return "the object is newer than ninja's record of its headers"
        return self._noted(statement, inputs, entry)

    def _noted(self, statement: Statement, inputs: Iterable[str], entry: LogEntry | None) -> str | None:
        if entry is None:
            return "ninja's log does not know the object"
        paths = (*statement.inputs, *inputs)
        if self._files.all_by(paths, entry.mtime_ns):
            return None
        for path in paths:
            time = self._files.mtime(path)
            if time is not None and time > entry.mtime_ns:
                return f"{os.path.basename(path)} is newer than the compile that ninja noted"
        return None

    def _began(self, obj: str, entry: LogEntry | None) -> int | None:
        made = self._files.mtime(obj)
        return None if entry is None or made is None else made - entry.duration_ns


def read_ninja_records(build_dir: Path, config: str, statements: Iterable[Statement],
                       files: Files) -> Mapping[str, UnitRecord]:
    """The record of every compile statement, by its object."""
    reader = _Reader(build_dir, config, files)
    return {statement.output: reader.record(statement) for statement in statements}
