"""Resolves include closures: which existing files a unit can see through its search path.

Every `#if` counts as taken, so a closure is a superset of what one compile opens. Headers of the
system and the toolkit are followed (one of them may include a header of ours that shadows one of
its own), but left out of the result: they count through the compilers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.reading import Stamp
from tasks.closure.catalogue import Catalogue, Closure
from tasks.closure.directives import Directive, FileScan, read_source, scan
from tasks.closure.disk import Disk
from tasks.closure.macros import Definition, identifiers, meant, read_define, read_option
from tasks.closure.names import Search
from tasks.closure.reach import Reach, bits

__all__ = ["NOTHING", "KnownScans", "Resolver"]


class KnownScans(NamedTuple):
    """What an earlier look read: stamp and scan by path. The scans hold the definitions of `names` only."""

    scans: Mapping[str, tuple[Stamp, FileScan]]
    names: frozenset[bytes]


NOTHING = KnownScans({}, frozenset())


class _Graph:
    """Who includes whom along one search path."""

    def __init__(self, files: _Files, search: Search) -> None:
        self._files = files
        self._edges: dict[int, tuple[int, ...]] = {}
        self.search = search
        self.reach = Reach(self.edges)

    def edges(self, node: int) -> tuple[int, ...]:
        """The files that `node` includes by name."""
        if node not in self._edges:
            folder = os.path.dirname(self._files.paths[node])
            found = [target for directive in self._files.scan(node).directives if directive.form != "macro"
                     for target in self.search.find(directive, folder)]
            self._edges[node] = tuple(dict.fromkeys(map(self._files.number, found)))
        return self._edges[node]


class _Files:
    """All files that any graph knows, numbered and scanned once; the definitions of macros in them."""

    def __init__(self, disk: Disk, known: KnownScans) -> None:
        self._disk = disk
        self._known = known
        self.paths: list[str] = []
        self._numbers: dict[str, int] = {}
        self.scans: dict[int, FileScan] = {}
        self._partial: set[int] = set()
        self._unindexed: list[int] = []
        self._definers: dict[bytes, list[tuple[int, bytes]]] = {}
        # Bit set of the files with computed includes.
        self.computed = 0
        # Macros that any computed include depends on.
        self.needed: set[bytes] = set()

    def number(self, path: str) -> int:
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
        return number

    def scan(self, node: int) -> FileScan:
        found = self.scans.get(node)
        if found is None:
            found = self.scans[node] = self._scan(node)
            self._unindexed.append(node)
            if any(directive.form == "macro" for directive in found.directives):
                self.computed |= 1 << node
        return found

    def _scan(self, node: int) -> FileScan:
        path = self.paths[node]
        self._disk.file(path)
        known = self._known.scans.get(path)
        if known is not None and known[0] == self._disk.files[path]:
            self._partial.add(node)
            return known[1]
        return scan(read_source(path))

    def definers(self, name: bytes) -> list[tuple[int, bytes]]:
        """(file, definition) of a macro, over all files that were scanned."""
        self.needed.add(name)
        if self._partial and name not in self._known.names:
            for node in self._partial:
                self.scans[node] = scan(read_source(self.paths[node]))
            self._partial.clear()
            self._definers.clear()
            self._unindexed = list(self.scans)
        for node in self._unindexed:
            for defined, rest in self.scans[node].defines:
                self._definers.setdefault(defined, []).append((node, rest))
        self._unindexed = []
        return self._definers.get(name, [])


@lru_cache(maxsize=4096)
def _definition(rest: bytes) -> Definition:
    return read_define(rest)


class Resolver:
    """Closures of many units at one moment; files and lookups are read once. Make a new one for a new moment."""

    def __init__(self, system_folders: tuple[str, ...] = (), own_folders: tuple[str, ...] = (),
                 known: KnownScans = NOTHING) -> None:
        """Files under `system_folders` are left out, unless they lie under `own_folders`.

        `known` are scans of an earlier moment; each counts where its file's stamp did not move.
        """
        self._system = system_folders
        self._system_prefixes = tuple(folder + "/" for folder in system_folders)
        self._own_prefixes = tuple(folder + "/" for folder in own_folders)
        self.disk = Disk()
        self.files = _Files(self.disk, known)
        self.catalogue = Catalogue(self.files.paths, self.disk.files)
        self._graphs: dict[tuple[tuple[str, ...], ...], _Graph] = {}
        self._counted = self._judged = 0
        self._relevant: dict[str, tuple[int, int]] = {}
        self._meanings: dict[tuple[str, tuple[str, ...], int], tuple[list[tuple[str, str]], bool]] = {}
        self._options: dict[tuple[str, ...], dict[str, list[Definition]]] = {}

    def closure(self, source: Path, quote: tuple[str, ...], angle: tuple[str, ...], forced: tuple[str, ...] = (),
                defines: tuple[str, ...] = (), system: tuple[str, ...] = ()) -> Closure:
        """The closure of `source` along one search path, with its force-included files.

        `system` is the part at the end of `angle` that GCC takes for system folders. A name in
        `forced` that is no absolute path is looked for along the search path.
        """
        graph = self._graph(quote, angle, system)
        root = self.files.number(self.disk.absolute(str(source)) or str(source))
        starts = [root, *(self.files.number(found) for name in forced
                          for found in graph.search.find(Directive('"', name), ""))]
        mask, unresolved = 0, set()
        for start in starts:
            mask |= graph.reach.of(start)
        for node, found, unknown in self._spread(graph, mask, defines):
            mask |= graph.reach.of(found) if found is not None else 0
            if unknown and 1 << node & self._counting():
                unresolved.add(unknown)
        counted = mask & self._counting() & ~(1 << root)
        return Closure(self.catalogue, counted, tuple(sorted(unresolved)),
                       lambda: self._parents(graph, starts, defines, mask))

    def _graph(self, quote: tuple[str, ...], angle: tuple[str, ...], system: tuple[str, ...]) -> _Graph:
        key = (quote, angle, system)
        if key not in self._graphs:
            self._graphs[key] = _Graph(self.files, Search(self.disk, quote, angle, system, self._system))
        return self._graphs[key]

    def _counting(self) -> int:
        """Bit set of the files that are not the system's."""
        for number in range(self._judged, len(self.files.paths)):
            path = self.files.paths[number]
            if path.startswith(self._own_prefixes) or not path.startswith(self._system_prefixes):
                self._counted |= 1 << number
        self._judged = len(self.files.paths)
        return self._counted

    def _spread(self, graph: _Graph, mask: int, defines: tuple[str, ...]) -> Iterator[tuple[int, int | None, str]]:
        """(file, what its computed include can mean or None, the include's text where it was not understood).

        What is found can define the macro of another computed include, so all are asked again until
        nothing new comes.
        """
        while pending := mask & self.files.computed:
            before = mask
            for node in bits(pending):
                folder = os.path.dirname(self.files.paths[node])
                for directive in self.files.scan(node).directives:
                    if directive.form != "macro":
                        continue
                    headers, understood = self._meant(directive.name, defines, mask)
                    if not understood:
                        yield node, None, directive.name
                    for form, name in headers:
                        for path in graph.search.find(Directive(form, name, directive.next), folder):
                            found = self.files.number(path)
                            mask |= graph.reach.of(found)
                            yield node, found, ""
            if mask == before:
                return

    def _meant(self, text: str, defines: tuple[str, ...], mask: int) -> tuple[list[tuple[str, str]], bool]:
        """What a computed include can mean where the files of `mask` can define its macros."""
        key = (text, defines, mask & self._relevant_to(text, defines))
        if key not in self._meanings:
            options = self._read_options(defines)

            def definitions(name: str) -> list[Definition]:
                found = [_definition(rest) for node, rest in self.files.definers(os.fsencode(name)) if mask >> node & 1]
                return list(dict.fromkeys([*found, *options.get(name, [])]))

            self._meanings[key] = meant(text, definitions)
        return self._meanings[key]

    def _read_options(self, defines: tuple[str, ...]) -> dict[str, list[Definition]]:
        if defines not in self._options:
            options: dict[str, list[Definition]] = {}
            for name, definition in map(read_option, defines):
                options.setdefault(name, []).append(definition)
            self._options[defines] = options
        return self._options[defines]

    def _relevant_to(self, text: str, defines: tuple[str, ...]) -> int:
        """Bit set of the files that define a macro which the text can lead to."""
        key = "\0".join((text, *defines))
        known = len(self.files.scans)
        if key not in self._relevant or self._relevant[key][0] != known:
            options = self._read_options(defines)
            mask, seen, waiting = 0, set(), identifiers(text)
            while waiting:
                name = waiting.pop()
                seen.add(name)
                bodies = [definition.body for definition in options.get(name, [])]
                for node, rest in self.files.definers(os.fsencode(name)):
                    mask |= 1 << node
                    bodies.append(_definition(rest).body)
                waiting |= {found for body in bodies for found in identifiers(body)} - seen
            self._relevant[key] = (known, mask)
        return self._relevant[key][1]

    def _parents(self, graph: _Graph, starts: list[int], defines: tuple[str, ...], mask: int) -> dict[str, str]:
        """Breadth first from the unit, so that chains are short."""
        computed: dict[int, list[int]] = {}
        for node, found, _ in self._spread(graph, mask, defines):
            if found is not None:
                computed.setdefault(node, []).append(found)
        root = starts[0]
        parents = {start: root for start in starts[1:] if start != root}
        level = list(dict.fromkeys(starts))
        while level:
            following = []
            for node in level:
                for target in (*graph.edges(node), *computed.get(node, ())):
                    if target != root and target not in parents:
                        parents[target] = node
                        following.append(target)
            level = following
        paths = self.files.paths
        return {paths[node]: paths[parent] for node, parent in parents.items()}
