"""Keeps doit's SQLite backend from ending a run with a traceback where the disk is full.

What is lost then is only doit's own memory of what ran, which decides nothing here: receipts do.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["create", "survive_a_full_disk"]

_WRITES = ("dump", "remove", "remove_all")


def create(path: str) -> None:
    """Make the database and its table where there is none. Raises `sqlite3.Error`, which doit would not catch."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path, timeout=30)) as connection, connection:
        connection.execute("create table if not exists doit (task_id text not null primary key, task_data json)")


def survive_a_full_disk(path: str, required: bool) -> None:
    """A write that fails is told once; where it was all that was asked for (`required`), it ends doit with status 1.

    doit takes its backend from a table that `dodo.py` cannot reach (plugins need an installed package or a
    file in the current folder), so the methods themselves are exchanged.
    """
    from doit.dependency import SqliteDB

    told: list[str] = []

    def guarded(write: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(write)
        def attempt(*arguments: Any) -> None:
            import sqlite3

            try:
                write(*arguments)
            except sqlite3.Error as error:
                line = f"{path} cannot be written: {error}; free space, or make it writable."
                if required:
                    sys.exit(line)
                if not told:
                    told.append(line)
                    print(f"{line} Receipts decide, nothing is lost.", file=sys.stderr)

        return attempt

    for name in _WRITES:
        method = getattr(SqliteDB, name)
        setattr(SqliteDB, name, guarded(getattr(method, "__wrapped__", method)))
