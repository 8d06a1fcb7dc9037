"""Closures as bit sets over the files of one look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from tasks.checkout.reading import stamp_of
from tasks.closure.reach import bits

__all__ = ["Catalogue", "Closure"]


class Catalogue:
    """The files that closures are made of, numbered; a closure is a bit set over these numbers."""

    def __init__(self, paths: Sequence[str], stamps: Mapping[str, Sequence[int] | None]) -> None:
        """`stamps` holds the fields of each file's :class:`tasks.checkout.reading.Stamp`; None for a missing file."""
        self.paths = paths
        self._stamps = stamps
        self._masks: dict[tuple[str, ...], tuple[int, int]] = {}

    def mask_of(self, headers: tuple[str, ...]) -> int:
        """The bits of these files: under their own path, and under a link's or a hard link's name."""
        known = self._masks.get(headers)
        if known is None or known[0] != len(self.paths):
            known = self._masks[headers] = (len(self.paths), self._find(headers))
        return known[1]

    def _find(self, headers: tuple[str, ...]) -> int:
        # An editor that saves by a rename gives the name another inode: the links have the one of the look.
        inodes = {(stamp[0], stamp[1]) for header in headers
                  for stamp in (self._stamps.get(header), stamp_of(header)) if stamp is not None}
        mask = 0
        for number, path in enumerate(self.paths):
            stamp = self._stamps.get(path)
            if path in headers or (stamp is not None and (stamp[0], stamp[1]) in inodes):
                mask |= 1 << number
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
