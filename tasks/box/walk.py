"""Walks folders with several processes at once: thousands of directories a second from a cold disk.

Small trees are walked here; a large one is handed to workers piece by piece, each of which gives
back what it did not get to. Whoever began a walk can do something else until its tallies are needed.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.box.tally import Tally, count, side_of
from tasks.errors import UserError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

__all__ = ["Walk", "walk"]

Progress = Callable[[Tally], None]

# Directory entries that one process counts before it hands its leftovers back.
_PIECE = 10_000
# The first time it is more: whoever began the walk may not listen yet.
_FIRST_PIECE = 30_000
# Directories that must be waiting before other processes are worth their start.
_WORTH_IT = 64


@dataclass(frozen=True)
class _Piece:
    """Directories of one folder that are still to be counted, with their kinds."""

    key: str
    top: str
    device: int
    user: int
    waiting: tuple[tuple[str, int], ...]

    def of(self, waiting: tuple[tuple[str, int], ...]) -> _Piece:
        """Other directories of the same folder."""
        return _Piece(self.key, self.top, self.device, self.user, waiting)


def _count_piece(piece: _Piece, limit: int) -> tuple[Tally, _Piece]:
    waiting, tally = deque(piece.waiting), Tally()
    while waiting and tally.files + tally.folders < limit:
        waiting.extend(count(tally, *waiting.popleft(), piece.top, piece.device, piece.user))
    return tally, piece.of(tuple(waiting))


def _start(key: str, folder: str, user: int) -> tuple[Tally, _Piece]:
    """The folder itself."""
    top = os.path.realpath(folder)
    try:
        found = os.stat(top)
    except OSError as error:
        doubts = {"unreadable": f"{folder} cannot be read ({error.strerror})"}
        return Tally(doubts=doubts), _Piece(key, top, 0, user, ())
    side = side_of(0, os.path.basename(top))
    return Tally(bytes=found.st_blocks * 512), _Piece(key, top, found.st_dev, user, ((top, side),))


def _work(connection: Connection) -> None:
    """A worker: counts pieces until there are none, and ends with its parent, without a word."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            connection.send(_count_piece(*connection.recv()))
        except (EOFError, BrokenPipeError):
            return


def _parts(piece: _Piece, parts: int) -> list[_Piece]:
    """Up to `parts` pieces of about the same number of directories."""
    step = max(1, -(-len(piece.waiting) // parts))
    return [piece.of(piece.waiting[at:at + step]) for at in range(0, len(piece.waiting), step)]


class Walk:
    """A walk that has begun; a context manager, since its processes end with it.

    `folders` maps keys to folders; links are not followed, other file systems not entered. `user` is who should own
    everything. `progress` is called with the sum so far.
    """

    def __init__(self, folders: Mapping[str, str], user: int, progress: Progress | None = None) -> None:
        self._progress = progress
        self._total = Tally()
        self._tallies: dict[str, Tally] = {}
        self._waiting: list[_Piece] = []
        self._workers: dict[Connection, BaseProcess] = {}
        self._busy: list[Connection] = []
        for key, folder in folders.items():
            self._tallies[key], left = _start(key, folder, user)
            while left.waiting and len(left.waiting) < _WORTH_IT:
                tally, left = _count_piece(left, 500)
                self._add(key, tally)
            self._waiting += [left] if left.waiting else []

    def __enter__(self) -> Walk:
        if self._waiting:
            self._begin(min(8, max(2, os.cpu_count() or 2)))
        return self

    def __exit__(self, *exc: object) -> None:
        for connection, process in self._workers.items():
            process.terminate()
            connection.close()
        for process in self._workers.values():
            process.join()

    def _begin(self, workers: int) -> None:
        import multiprocessing

        fork = multiprocessing.get_context("fork")
        for _ in range(workers):
            ours, theirs = fork.Pipe()
            process = fork.Process(target=_work, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._workers[ours] = process
        self._waiting = [part for piece in self._waiting for part in _parts(piece, workers)]
        self._hand_on(_FIRST_PIECE)

    def _hand_on(self, limit: int) -> None:
        """Give each idle worker a piece, while there are any."""
        for connection in self._workers:
            if self._waiting and connection not in self._busy:
                connection.send((self._waiting.pop(), limit))
                self._busy.append(connection)

    def _add(self, key: str, tally: Tally) -> None:
        self._tallies[key].add(tally)
        self._total.bytes, self._total.files = self._total.bytes + tally.bytes, self._total.files + tally.files

    @property
    def processes(self) -> frozenset[int]:
        """The numbers of the processes that walk."""
        return frozenset(process.pid for process in self._workers.values() if process.pid is not None)

    def tallies(self) -> dict[str, Tally]:
        """One tally for each folder, by its key, when all is walked. Raises :class:`UserError` where that cannot be."""
        try:
            self._gather()
        except (EOFError, ConnectionError):
            raise UserError("A process that counts files was ended from outside.", "run it again") from None
        return self._tallies

    def _gather(self) -> None:
        from multiprocessing.connection import Connection, wait

        while self._busy:
            for connection in wait(self._busy):
                assert isinstance(connection, Connection)
                self._busy.remove(connection)
                tally, left = connection.recv()
                self._add(left.key, tally)
                self._waiting += _parts(left, len(self._workers))
                self._hand_on(_PIECE)
            if self._progress is not None:
                self._progress(self._total)


def walk(folders: Mapping[str, str], user: int) -> dict[str, Tally]:
    """:class:`Walk` from its beginning to its end."""
    with Walk(folders, user) as walking:
        return walking.tallies()
