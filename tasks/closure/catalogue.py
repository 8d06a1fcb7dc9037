"""Closures as bit sets over the files of one look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from tasks.checkout.reading import Stamp, stamp_of
from tasks.closure.reach import bits

__all__ = ["Catalogue", "Closure"]


class Catalogue:
    """The files that closures are made of, numbered; a closure is a bit set over these numbers."""

    def __init__(self, paths: Sequence[str], stamps: Mapping[str, Stamp | None]) -> None:
        self.paths = paths
        self._stamps = stamps
        self._by_path: dict[str, int] = {}
        self._by_inode: dict[tuple[int, int], int] = {}
        self._numbered = 0
        self._masks: dict[tuple[str, ...], tuple[int, int]] = {}

    def mask_of(self, headers: tuple[str, ...]) -> int:
        """The bits of these files: under their own path, and under a link's or a hard link's name."""
        known = self._masks.get(headers)
        if known is None or known[0] != len(self.paths):
            known = self._masks[headers] = (len(self.paths), self._find(headers))
        return known[1]

    def _find(self, headers: tuple[str, ...]) -> int:
        for number in range(self._numbered, len(self.paths)):
            path = self.paths[number]
            self._by_path[path] = number
            stamp = self._stamps.get(path)
            if stamp is not None:
                key = (stamp.device, stamp.inode)
                self._by_inode[key] = self._by_inode.get(key, 0) | 1 << number
        self._numbered = len(self.paths)
        mask = 0
        for header in headers:
            if header in self._by_path:
                mask |= 1 << self._by_path[header]
            # An editor that saves by a rename gives the name another inode: the links have the one of the look.
            for stamp in (self._stamps.get(header), stamp_of(header)):
                if stamp is not None:
                    mask |= self._by_inode.get((stamp.device, stamp.inode), 0)
        return mask


class Closure:
    """The headers that one unit can see.

    `files` are absolute paths with the folder's links resolved (a header that is itself a link keeps
    its name); the unit's own source is not among them. `unresolved` holds computed includes that
    could not be followed: there the closure is not known to be whole, and whoever must not miss a
    header takes every watched one for reached. `parents` maps each file to the file that brought it
    in first.
    """

    def __init__(self, catalogue: Catalogue, mask: int, unresolved: tuple[str, ...],
                 explain: Callable[[], dict[str, str]]) -> None:
        self._catalogue = catalogue
        self._explain = explain
        self.mask = mask
        self.unresolved = unresolved

    @cached_property
    def files(self) -> frozenset[str]:
        """The headers as absolute paths."""
        return frozenset(self._catalogue.paths[number] for number in bits(self.mask))

    @cached_property
    def parents(self) -> dict[str, str]:
        """Each file's first includer; also of the system's headers on the way."""
        return self._explain()

    def among(self, headers: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `files` that are one of `headers`, whatever name they bear, without listing all files."""
        found = self.mask & self._catalogue.mask_of(headers)
        return tuple(sorted(self._catalogue.paths[number] for number in bits(found)))

    def chain(self, header: str) -> list[str]:
        """From the unit to `header`, along the files that include it."""
        path = [header]
        while path[-1] in self.parents:
            path.append(self.parents[path[-1]])
        return path[::-1]
