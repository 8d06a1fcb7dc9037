"""Resolves include closures: which existing files a unit can see through its search path.

Lookup follows GCC ("Search Path"): a quoted name is tried in the folder of the file that includes
it, then along `-iquote`; then both forms go along `-I` and `-isystem`. Folders of the system and
the toolkit are left out: they count through the compilers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.closure.directives import Directive, FileScan, macro_headers, scan

__all__ = ["Closure", "Resolver"]


@dataclass(frozen=True)
class Closure:
    """The headers that one unit can see.

    `files` are absolute paths with the folder's links resolved (a header that is itself a link keeps
    its name); the unit's own source is not among them. `unresolved` names computed includes whose
    macro has no understood definition: there the closure is not known to be whole. `parents` maps
    each file to the file that brought it in first.
    """

    files: frozenset[str]
    parents: dict[str, str]
    unresolved: tuple[str, ...]

    def chain(self, header: str) -> list[str]:
        """From the unit to `header`, along the files that include it."""
        path = [header]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return path[::-1]


class _Lookup:
    """Finds one name along one search path; remembers every answer."""

    def __init__(self, quote: tuple[str, ...], angle: tuple[str, ...], names: _Names) -> None:
        self._quote = quote
        self._angle = angle
        self._names = names
        self._found: dict[tuple[str, str, bool, str], tuple[str, ...]] = {}

    def find(self, directive: Directive, folder: str) -> tuple[str, ...]:
        """The file that the directive opens: one, or none. `#include_next`: every later match, a superset."""
        here = folder if directive.form == '"' or directive.next else ""
        key = (directive.form, directive.name, directive.next, here)
        if key not in self._found:
            self._found[key] = self._search(directive, folder)
        return self._found[key]

    def _search(self, directive: Directive, folder: str) -> tuple[str, ...]:
        if os.path.isabs(directive.name):
            found = self._names.existing(directive.name)
            return (found,) if found else ()
        folders: Iterable[str] = self._angle
        if directive.form == '"':
            folders = (folder, *self._quote, *self._angle)
        matches = []
        for candidate in folders:
            found = self._names.existing(f"{candidate}/{directive.name}")
            if found and not (directive.next and self._names.folder(candidate) == folder):
                matches.append(found)
                if not directive.next:
                    break
        return tuple(matches)


class _Names:
    """Existing files by one name each: real folder, own file name. Remembers every answer."""

    def __init__(self) -> None:
        self._files: dict[str, str | None] = {}
        self._folders: dict[str, str] = {}

    def folder(self, path: str) -> str:
        if path not in self._folders:
            self._folders[path] = os.path.realpath(path)
        return self._folders[path]

    def existing(self, path: str) -> str | None:
        if path not in self._files:
            head, tail = os.path.split(path)
            self._files[path] = f"{self.folder(head)}/{tail}" if os.path.isfile(path) else None
        return self._files[path]


class Resolver:
    """Closures of many units at one moment; files and lookups are read once. Make a new one for a new moment."""

    def __init__(self, system_folders: tuple[str, ...] = (), own_folders: tuple[str, ...] = ()) -> None:
        """Files under `system_folders` are left out, unless they lie under `own_folders`."""
        self._system = tuple(folder + "/" for folder in system_folders)
        self._own = tuple(folder + "/" for folder in own_folders)
        self._names = _Names()
        self._scans: dict[str, FileScan] = {}
        self._lookups: dict[tuple[tuple[str, ...], tuple[str, ...]], _Lookup] = {}
        self._edges: dict[tuple[int, str], tuple[str, ...]] = {}

    def closure(self, source: Path, quote: tuple[str, ...], angle: tuple[str, ...], forced: tuple[str, ...] = (),
                defines: tuple[str, ...] = ()) -> Closure:
        """The closure of `source` along one search path, force-included files first."""
        lookup = self._lookups.setdefault((quote, angle), _Lookup(quote, angle, self._names))
        root = self._names.existing(str(source)) or str(source)
        parents: dict[str, str] = {}
        computed: set[Directive] = set()
        waiting = [root]
        for name in forced:
            found = self._names.existing(name) or next(iter(lookup.find(Directive('"', name), "")), None)
            if found and found != root:
                parents.setdefault(found, root)
                waiting.append(found)
        while True:
            self._spread(waiting, lookup, root, parents, computed)
            targets, unresolved = self._computed(computed, [root, *parents], defines, lookup)
            waiting = [path for path in targets if path not in parents and path != root]
            if not waiting:
                return Closure(frozenset(parents), parents, unresolved)
            parents.update(dict.fromkeys(waiting, root))

    def _spread(self, waiting: list[str], lookup: _Lookup, root: str, parents: dict[str, str],
                computed: set[Directive]) -> None:
        """Follow plain directives from `waiting` until nothing new is found."""
        while waiting:
            path = waiting.pop()
            computed.update(d for d in self._scan(path).directives if d.form == "macro")
            for found in self._includes(path, lookup):
                if found != root and found not in parents:
                    parents[found] = path
                    waiting.append(found)

    def _includes(self, path: str, lookup: _Lookup) -> tuple[str, ...]:
        key = (id(lookup), path)
        if key not in self._edges:
            folder = os.path.dirname(path)
            found = [target for directive in self._scan(path).directives if directive.form != "macro"
                     for target in lookup.find(directive, folder) if not self._is_system(target)]
            self._edges[key] = tuple(dict.fromkeys(found))
        return self._edges[key]

    def _computed(self, computed: set[Directive], files: list[str], defines: tuple[str, ...],
                  lookup: _Lookup) -> tuple[list[str], tuple[str, ...]]:
        """Files that the computed includes can mean, and the macros that were not understood."""
        if not computed:
            return [], ()
        texts = [self._read(path) for path in files]
        folders = list(dict.fromkeys(os.path.dirname(path) for path in files))
        targets: list[str] = []
        unresolved = []
        for macro in sorted(directive.name for directive in computed):
            headers, understood = macro_headers(macro, texts, defines)
            if not understood:
                unresolved.append(macro)
            # The including file is one of many here: each folder counts for a quoted name.
            targets += [target for header in headers
                        for folder in (folders if header.form == '"' else folders[:1])
                        for target in lookup.find(header, folder) if not self._is_system(target)]
        return targets, tuple(unresolved)

    def _is_system(self, path: str) -> bool:
        return path.startswith(self._system) and not path.startswith(self._own)

    def _scan(self, path: str) -> FileScan:
        if path not in self._scans:
            self._scans[path] = scan(self._read(path))
        return self._scans[path]

    @staticmethod
    def _read(path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except OSError:
            # Vanished or unreadable since it was found: its own identity tells the difference later.
            return b""
