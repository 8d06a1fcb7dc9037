"""Walks folders with several processes at once: thousands of directories a second from a cold disk.

Small trees are walked here; a large one is handed to workers piece by piece, each of which gives
back what it did not get to.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tasks.box.tally import Tally, count, side_of

__all__ = ["walk"]

Progress = Callable[[Tally], None]

# Directory entries that one process counts before it hands its leftovers back.
_PIECE = 10_000
# Directories that must be waiting before other processes are worth their start.
_WORTH_IT = 64


@dataclass(frozen=True)
class _Piece:
    """Directories of one folder that are still to be counted, with their kinds."""

    top: str
    device: int
    user: int
    waiting: tuple[tuple[str, int], ...]


def _count_piece(piece: _Piece, limit: int = _PIECE) -> tuple[Tally, _Piece]:
    waiting, tally = deque(piece.waiting), Tally()
    while waiting and tally.files + tally.folders < limit:
        found, inner = count(*waiting.popleft(), piece.top, piece.device, piece.user)
        tally.add(found)
        waiting.extend(inner)
    return tally, _Piece(piece.top, piece.device, piece.user, tuple(waiting))


def _start(folder: str, user: int) -> tuple[Tally, _Piece]:
    """The folder itself."""
    top = os.path.realpath(folder)
    try:
        found = os.stat(top)
    except OSError as error:
        return Tally(doubts={"unreadable": f"{folder} cannot be read ({error.strerror})"}), _Piece(top, 0, user, ())
    side = side_of(0, os.path.basename(top))
    return Tally(bytes=found.st_blocks * 512), _Piece(top, found.st_dev, user, ((top, side),))


def _quiet() -> None:
    """A worker ends with its parent, without a word."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _halves(piece: _Piece, parts: int) -> list[_Piece]:
    """Up to `parts` pieces of about the same number of directories."""
    step = max(1, -(-len(piece.waiting) // parts))
    return [_Piece(piece.top, piece.device, piece.user, piece.waiting[at:at + step])
            for at in range(0, len(piece.waiting), step)]


def walk(folders: Mapping[str, str], user: int, progress: Progress | None = None) -> dict[str, Tally]:
    """One tally for each folder, by its key; links are not followed, other file systems not entered.

    `user` is who should own everything. `progress` is called with the sum so far.
    """
    tallies, pieces, total = {}, [], Tally()
    for key, folder in folders.items():
        tally, piece = _start(folder, user)
        tallies[key] = tally
        pieces.append((key, piece))
    large: list[tuple[str, _Piece]] = []
    for key, piece in pieces:
        left = piece
        while left.waiting and len(left.waiting) < _WORTH_IT:
            tally, left = _count_piece(left, 500)
            tallies[key].add(tally)
            total.bytes, total.files = total.bytes + tally.bytes, total.files + tally.files
        if left.waiting:
            large.append((key, left))
    if large:
        _walk_together(large, tallies, total, progress)
    return tallies


def _walk_together(large: list[tuple[str, _Piece]], tallies: dict[str, Tally], total: Tally,
                   progress: Progress | None) -> None:
    import multiprocessing
    import queue

    workers = min(8, max(2, os.cpu_count() or 2))
    done: queue.SimpleQueue[tuple[str, tuple[Tally, _Piece] | BaseException]] = queue.SimpleQueue()
    with multiprocessing.get_context("fork").Pool(workers, _quiet) as pool:
        running = 0

        def submit(key: str, piece: _Piece) -> None:
            nonlocal running
            for part in _halves(piece, workers):
                pool.apply_async(_count_piece, (part,), callback=lambda result: done.put((key, result)),
                                 error_callback=lambda error: done.put((key, error)))
                running += 1

        for key, piece in large:
            submit(key, piece)
        while running:
            key, result = done.get()
            running -= 1
            if isinstance(result, BaseException):
                raise result
            tally, left = result
            tallies[key].add(tally)
            total.bytes, total.files = total.bytes + tally.bytes, total.files + tally.files
            if progress is not None:
                progress(total)
            if left.waiting:
                submit(key, left)
