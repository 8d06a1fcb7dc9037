"""Identities and digests of files at one moment.

An identity is what the kernel says of a file: (device, inode, size, mtime_ns, ctime_ns). The ctime
cannot be set back by a user, so an identity that did not move means a content that did not move,
except within the kernel's clock tick of a write: see :func:`settle`.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Identity", "Observer", "clock_ns", "identity_of", "moment_of", "settle"]

# The coarse clock behind ctime ticks every 1 to 10 ms on Linux (CONFIG_HZ), in steps of up to 2 s on old
# file systems; those few stay covered by the content digests.
_TICK_NS = 20_000_000
_SETTLE_LIMIT_S = 2.5
_BLOCK = 1 << 20


class Identity(NamedTuple):
    """`(device, inode, size in bytes, mtime in ns, ctime in ns)` of a file, links followed."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def identity_of(path: str | os.PathLike[str]) -> Identity | None:
    """The file's identity now; None where there is no such file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return Identity(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


_MISSING = b"\xff" * 40


def _entry(path: str, fields: Sequence[int] | None) -> bytes:
    """One file as bytes that no other file or identity has."""
    return (_MISSING if fields is None else struct.pack("<QQQqq", *fields)) + os.fsencode(path)


def _joined(entries: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(sorted(entries))).hexdigest()  # no path holds a NUL


def moment_of(identities: Mapping[str, Identity]) -> str:
    """A digest of files with their identities: the same for the same files only where none of them moved."""
    return _joined(_entry(path, identity) for path, identity in identities.items())


def _digest(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError:
        return None
    return digest.hexdigest()


class Observer:
    """Files as they are at one moment: each is asked once. Make a new one for a new moment.

    `known` maps paths to an identity and the digest of the content that had it: a file that still
    has that identity is not read again. `seen` maps paths to the fields of their identity, where the
    same moment has asked for them already.
    """

    def __init__(self, known: Mapping[str, tuple[Identity, str]] | None = None,
                 seen: Mapping[str, Sequence[int]] | None = None) -> None:
        self._known = dict(known or {})
        self._learned: list[Mapping[str, tuple[Identity, str] | None]] = []
        self._seen = seen or {}
        self._entries: dict[str, bytes] = {}
        self._identities: dict[str, Identity | None] = {}
        self._digests: dict[str, str | None] = {}

    def learn(self, path: str, identity: Identity, digest: str) -> None:
        """Add what a receipt knows, so that an unmoved file need not be read."""
        self._known.setdefault(path, (identity, digest))

    def learn_all(self, known: Mapping[str, tuple[Identity, str] | None]) -> None:
        """Add what a receipt knows of many files, to look into when one is needed; None is one that was not there."""
        self._learned.append(known)

    def identity(self, path: str) -> Identity | None:
        """The file's identity; None where it is missing."""
        if path not in self._identities:
            fields = self._seen.get(path)
            self._identities[path] = identity_of(path) if fields is None else Identity(*fields)
        return self._identities[path]

    def digest(self, path: str) -> str | None:
        """SHA-256 of the content as hexadecimal text; None where it is missing or unreadable."""
        identity = self.identity(path)
        if identity is None:
            return None
        for learned in (self._known, *self._learned):
            known = learned.get(path)
            if known is not None and known[0] == identity:
                return known[1]
        if path not in self._digests:
            self._digests[path] = _digest(path)
        return self._digests[path]

    def moment(self, paths: frozenset[str]) -> str:
        """What :func:`moment_of` says of these files as they are now: the quick answer for many."""
        entries = self._entries
        for path in paths.difference(entries):
            entries[path] = _entry(path, self._seen.get(path) or self.identity(path))
        return _joined(map(entries.__getitem__, paths))

    def is_digest(self, path: str, identity: Identity, digest: str) -> bool:
        """Whether the file has this content: by its identity where that did not move, else by reading it."""
        now = self.identity(path)
        if now is None:
            return False
        return now == identity or (now.size == identity.size and self.digest(path) == digest)


def clock_ns(folder: Path) -> int:
    """The time that a file written into `folder` now gets, in ns: a server's clock is not ours."""
    probe = folder / "clock"
    probe.write_bytes(b"")
    os.utime(probe)
    return probe.stat().st_mtime_ns


def settle(paths: Collection[str]) -> dict[str, Identity]:
    """The identity of each file that is there, asked for when none of them was written within the last clock tick.

    A write within the tick of an earlier look leaves the identity as it was: from here on, one that did not move
    means a content that did not. Files from the future (a server's clock) cannot be waited for; the wait is
    limited to 2.5 s.
    """
    deadline = time.monotonic() + _SETTLE_LIMIT_S
    while True:
        began = time.time_ns()
        found = {path: identity for path in paths if (identity := identity_of(path))}
        now = time.time_ns()
        # One file from the future says nothing of the others.
        newest = max((identity.ctime_ns for identity in found.values() if identity.ctime_ns <= now), default=0)
        if began - newest >= _TICK_NS or time.monotonic() >= deadline:
            return found
        time.sleep(max(0, _TICK_NS - (now - newest)) / 1e9)
