"""Standard output and error that outlive their reader: a closed pipe or a full disk ends no task and is no traceback.

`doit TASK | head` does what was asked for to its end and exits by its verdict: a build is not left half done because
nobody looks at its lines any more.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["open_closed", "outlive_readers"]


class _Outliving(io.FileIO):
    """A descriptor that leads nowhere once it cannot be written; `error` is why, None for a reader that has gone."""

    error: OSError | None = None

    def write(self, data: ReadableBuffer) -> int:
        """Writes what can be written, and never raises."""
        try:
            return super().write(data)
        except OSError as error:
            self.error = None if isinstance(error, BrokenPipeError) else error
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


def _outliving(stream: io.TextIOWrapper) -> _Outliving:
    stream.flush()
    raw = _Outliving(stream.fileno(), "w", closefd=False)
    buffer = raw if stream.write_through else io.BufferedWriter(raw)
    # doit has kept the object since it was imported, so this very object gets another buffer.
    io.TextIOWrapper.__init__(stream, buffer, encoding=stream.encoding, errors=stream.errors,
                              line_buffering=stream.line_buffering, write_through=stream.write_through)
    return raw


def _end(raws: Mapping[io.TextIOWrapper, _Outliving]) -> None:
    """What was lost is told, and the run is no success: what was to be read is not there."""
    for stream in raws:
        stream.flush()
    error = next((raw.error for raw in raws.values() if raw.error is not None), None)
    if error is not None:
        print(f"output was lost: {error.strerror}\n  free space where it is written to, then run it again",
              file=sys.stderr, flush=True)
        os._exit(1)


def open_closed(start_dir: Path) -> None:
    """Where a standard stream is closed (`doit TASK >&-`), start this process again with one that leads nowhere.

    Python has None for such a stream, doit has kept that, and the next file that is opened, a database or a log,
    would bear the descriptor that every child writes its output to.
    """
    closed = [number for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)) if stream is None]
    if not closed:
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in closed:
        os.dup2(nowhere, number)
        os.set_inheritable(number, True)  # it may be the one that was opened, which ends with this program
    os.chdir(start_dir)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def outlive_readers() -> None:
    """Make this process's standard streams so, whoever holds them."""
    raws = {stream: _outliving(stream) for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)}
    atexit.register(_end, raws)
