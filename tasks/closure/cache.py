"""Closures of an earlier look, for as long as no answer that they came from would be another one.

An answer depends on what the scanned files include and on which names lie in the folders that were
listed. A file or folder whose stamp did not move gives the same answer; one that moved is read
again, and only what it then says counts: an edit that changes no directive, or a new file that no
directive names, leaves every closure as it was. Everything else resolves again, from the scans of
the files that did not change.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.checkout.compile_line import SearchPath
from tasks.checkout.reading import Stamp
from tasks.closure.catalogue import Catalogue, Closure
from tasks.closure.disk import Disk

if TYPE_CHECKING:
    from tasks.closure.resolve import KnownScans, Resolver

__all__ = ["ClosureCache"]

# Raised when the same files give another closure (a better scanner, say).
_FORMAT = 1

Units = Mapping[str, tuple[Path, SearchPath]]
Json = dict[str, Any]


class ClosureCache:
    """Closures at one moment, with the help of what `path` keeps of the last one. Make a new one for a new moment."""

    def __init__(self, path: Path, system_folders: tuple[str, ...] = (), own_folders: tuple[str, ...] = ()) -> None:
        """For `system_folders` and `own_folders` see :class:`tasks.closure.resolve.Resolver`."""
        self._path = path
        self._folders = (system_folders, own_folders)
        self._kept = _Kept.read(path, self._folders)
        self._resolver: Resolver | None = None
        self._closures: dict[str, Closure] = {}
        self._keys: dict[str, str] = {}

    def closures(self, units: Units) -> dict[str, Closure]:
        """The closure of each unit, given by its source and its search path."""
        self._keys = _keys(units)
        kept = self._kept
        # A document that holds for more units than these is written anew: later looks go by the digest of all.
        if kept is not None and kept.digest == self.digest and kept.holds(self._keys):
            self._closures = {name: kept.closure(name, partial(self._explain, units, name)) for name in units}
        else:
            self._closures = {name: self._resolve(*unit) for name, unit in units.items()}
        return dict(self._closures)

    def unchanged(self, units: Units, headers: tuple[str, ...], digest: str) -> dict[str, Closure] | None:
        """The closures of some of the kept units, if all that are kept hold, and of them only these reach `headers`.

        `digest` is :attr:`digest` of when they were kept.
        """
        kept = self._kept
        if kept is None or kept.digest != digest or not kept.holds(_keys(units)) or kept.reaching(headers) - set(units):
            return None
        return {name: kept.closure(name, partial(self._explain, units, name)) for name in units}

    @property
    def seen(self) -> Mapping[str, Sequence[int]]:
        """The stamps that this look found, of the files that the kept closures name and that are there."""
        return self._kept.seen if self._kept is not None else {}

    @property
    def digest(self) -> str:
        """Of what the closures depend on beside files, all units together."""
        return _digest(self._keys)

    def save(self) -> None:
        """Keep the closures for the next look, where their folder exists and can be written."""
        if self._resolver is None and self._kept is not None:
            if self._kept.same:
                return
            lines = self._kept.lines()
        else:
            lines = _lines(self._new(), self._folders, self._keys, self._closures)
        text = "\n".join(lines)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        # Nothing is lost where it cannot be kept.
        with suppress(OSError):
            try:
                temporary.write_text(f"{zlib.crc32(text.encode())}\n{text}", encoding="ascii")
                temporary.replace(self._path)
            finally:
                temporary.unlink(missing_ok=True)

    def _new(self) -> Resolver:
        if self._resolver is None:
            self._resolver = self._resolver_of_kept()
        return self._resolver

    def _resolver_of_kept(self) -> Resolver:
        from tasks.closure.resolve import NOTHING, Resolver

        return Resolver(*self._folders, self._kept.scans() if self._kept is not None else NOTHING)

    def _resolve(self, source: Path, search: SearchPath) -> Closure:
        return self._new().closure(source, search.quote, search.angle, search.forced, search.defines, search.system)

    def _explain(self, units: Units, name: str) -> dict[str, str]:
        """The includers of a kept closure's files: asked for seldom, so not kept."""
        source, search = units[name]
        again = self._resolver_of_kept()
        return again.closure(source, search.quote, search.angle, search.forced, search.defines, search.system).parents


def _keys(units: Units) -> dict[str, str]:
    """A digest for each unit of what its closure depends on beside files."""
    searches: dict[SearchPath, bytes] = {}
    keys = {}
    for name, (source, search) in units.items():
        if search not in searches:
            parts = (search.quote, search.angle, search.forced, search.defines, search.system)
            searches[search] = hashlib.sha256(json.dumps(parts).encode()).digest()
        keys[name] = hashlib.sha256(searches[search] + os.fsencode(source)).hexdigest()
    return keys


def _digest(keys: Mapping[str, str]) -> str:
    return hashlib.sha256("".join(sorted(f"{name}\0{key}\0" for name, key in keys.items())).encode()).hexdigest()


def _lines(resolver: Resolver, folders: tuple[tuple[str, ...], tuple[str, ...]], keys: Mapping[str, str],
           closures: Mapping[str, Closure]) -> list[str]:
    """The document: what a look needs to tell whether all is as it was, and, on a line of its own, the scans."""
    disk, files = resolver.disk, resolver.files
    needed = files.needed
    there = [disk.files.get(path) is not None for path in files.paths]
    head = {
        "format": _FORMAT, "folders": folders, "files": files.paths,
        "stamps": [_kept(disk, disk.files.get(path)) for path in files.paths],
        "missing": [path for path, stamp in disk.files.items() if stamp is None],
        "listed": [[path, _kept(disk, stamp), disk.telling(path)] for path, stamp in disk.folders.items()],
        "asked": "/".join(sorted(disk.asked)), "whole": sorted(disk.whole),
        "units": {name: [keys[name], f"{closure.mask:x}", closure.unresolved] for name, closure in closures.items()},
    }
    scans = [[files.scans[number].directives,
              [[name.decode("latin-1"), rest.decode("latin-1")] for name, rest in files.scans[number].defines
               if name in needed]] if found else None for number, found in enumerate(there)]
    names = sorted(name.decode("latin-1") for name in needed)
    return [json.dumps(head, separators=(",", ":")), json.dumps([names, scans], separators=(",", ":"))]


def _kept(disk: Disk, stamp: Stamp | None) -> Stamp | None:
    return None if stamp is None else stamp.kept(disk.began_ns)


class _Kept:
    """A document that was read, and what of it still holds."""

    def __init__(self, head: Json, scans: str) -> None:
        self._head = head
        self._scan_line = scans
        self._scans: list[Any] | None = None
        self._catalogue: Catalogue | None = None
        # Whether every stamp is as it was: then there is nothing to write.
        self.same = True
        self.seen: dict[str, list[int]] = {}

    @classmethod
    def read(cls, path: Path, folders: tuple[tuple[str, ...], tuple[str, ...]]) -> _Kept | None:
        try:
            checksum, _, text = path.read_text(encoding="ascii").partition("\n")
            if int(checksum) != zlib.crc32(text.encode()):
                return None
            first, _, second = text.partition("\n")
            head = json.loads(first)
            whole = head["format"] == _FORMAT and head["folders"] == [list(part) for part in folders]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return cls(head, second) if whole else None

    @property
    def digest(self) -> str:
        return _digest({name: key for name, (key, _, _) in self._head["units"].items()})

    def holds(self, keys: Mapping[str, str]) -> bool:
        """Whether these units' closures would come out the same today."""
        units = self._head["units"]
        if any(name not in units or units[name][0] != key for name, key in keys.items()):
            return False
        disk = Disk()
        missing = not any(map(os.path.isfile, self._head["missing"]))
        return missing and self._files_hold(disk) and self._folders_hold(disk)

    def _files_hold(self, disk: Disk) -> bool:
        stat = os.stat
        stamps = self._head["stamps"]
        for number, path in enumerate(self._head["files"]):
            known = stamps[number]
            if known is None:
                continue  # it is among the missing ones
            try:
                s = stat(path)
            except OSError:
                return False
            self.seen[path] = now = [s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns]
            if now != known:
                if not self._same_scan(number, path):
                    return False
                stamps[number] = _kept(disk, Stamp(*now))
                self.same = False
        return True

    def _same_scan(self, number: int, path: str) -> bool:
        from tasks.closure.directives import read_source, scan

        names, scans = self._parsed_scans()
        found = scan(read_source(path))
        defines = [[name.decode("latin-1"), rest.decode("latin-1")] for name, rest in found.defines
                   if name.decode("latin-1") in names]
        return bool([[list(directive) for directive in found.directives], defines] == scans[number])

    def _folders_hold(self, disk: Disk) -> bool:
        stat = os.stat
        for entry in self._head["listed"]:
            path, known, names = entry
            try:
                s = stat(path)
                now = [s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns]
            except OSError:
                now = None
            if now == known:
                continue
            # Another folder (where a link leads now) has other files, even under the same names.
            if now is None or known is None or now[:2] != known[:2]:
                return False
            if not disk.asked:
                disk.asked, disk.whole = set(self._head["asked"].split("/")), set(self._head["whole"])
            if disk.telling(path) != names or disk.listing(path) is None:
                return False
            entry[1] = _kept(disk, Stamp(*now))
            self.same = False
        return True

    def _parsed_scans(self) -> tuple[set[str], list[Any]]:
        if self._scans is None:
            self._scans = json.loads(self._scan_line)
        return set(self._scans[0]), self._scans[1]

    def scans(self) -> KnownScans:
        """The scans of all files, by the stamps that they were read with."""
        from tasks.closure.directives import Directive, FileScan
        from tasks.closure.resolve import KnownScans

        names, listed = self._parsed_scans()
        scans = {}
        for path, stamp, found in zip(self._head["files"], self._head["stamps"], listed, strict=True):
            if stamp is not None and found is not None:
                defines = tuple((name.encode("latin-1"), rest.encode("latin-1")) for name, rest in found[1])
                scans[path] = (Stamp(*stamp), FileScan(tuple(Directive(*entry) for entry in found[0]), defines))
        return KnownScans(scans, frozenset(name.encode("latin-1") for name in names))

    def reaching(self, headers: tuple[str, ...]) -> set[str]:
        """The units that reach one of `headers`, or may do so, where :meth:`holds` said that all hold."""
        wanted = self._files_catalogue().mask_of(headers)
        return {name for name, (_, mask, unresolved) in self._head["units"].items()
                if unresolved or int(mask, 16) & wanted}

    def closure(self, name: str, explain: Callable[[], dict[str, str]]) -> Closure:
        """The unit's closure, where :meth:`holds` said that it does."""
        _, mask, unresolved = self._head["units"][name]
        return Closure(self._files_catalogue(), int(mask, 16), tuple(unresolved), explain)

    def _files_catalogue(self) -> Catalogue:
        if self._catalogue is None:
            paths = self._head["files"]
            self._catalogue = Catalogue(paths, dict(zip(paths, self._head["stamps"], strict=True)))
        return self._catalogue

    def lines(self) -> Iterable[str]:
        return [json.dumps(self._head, separators=(",", ":")), self._scan_line]

