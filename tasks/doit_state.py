"""doit's own database, made safe before doit opens it, and doit's configuration.

doit creates and opens its database for every command and prints a traceback for a missing folder, a
read-only one and a corrupt file; only `dodo.py`, while it is loaded, can prevent that. Nothing here
raises: what is wrong with the settings is told by the first task that needs them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.errors import UserError
from tasks.session import Session

__all__ = ["GRAPH_TASKS", "JUDGING_TASKS", "ReceiptsDecide", "configuration"]

JUDGING_TASKS = ("rebuild_fmha", "verify", "test_mea")
GRAPH_TASKS = ("units", "object", "build")
_OWN_TASKS = (*JUDGING_TASKS, "status", "why", "audit", "kernels", "flips", "disk", "disk_clean", "demo")
# doit's subcommands that run no task.
_COMMANDS = ("list", "info", "help", "forget", "ignore", "reset-dep", "clean", "dumpdb", "tabcompletion", "strace",
             "auto")


class ReceiptsDecide:
    """doit's file checker, reduced to nothing: receipts alone say whether an object is up to date.

    doit looks at file states after an action has run, so its own record of a header edited meanwhile
    is wrong; it must neither vouch for a file nor doubt one.
    """

    class CheckerError(Exception):
        """Never raised: part of the interface."""

    @staticmethod
    def exists(path: str) -> bool:
        """Whether a target is there."""
        return os.path.exists(path)

    @staticmethod
    def info(path: str) -> None:
        """No state is asked for."""

    @staticmethod
    def check_modified(path: str, state: object, saved: object) -> bool:  # noqa: ARG004
        """Never: `uptodate` decides."""
        return False

    @staticmethod
    def get_state(path: str, saved: object) -> str | None:  # noqa: ARG004
        """A constant, written once."""
        return None if saved else "see receipts"


def _words(arguments: Sequence[str]) -> list[str]:
    """Task and command names on the command line: neither options nor `key=value`."""
    return [word for word in arguments if not word.startswith("-") and "=" not in word]


def _runs_tasks(arguments: Sequence[str]) -> bool:
    words = _words(arguments)
    return not (words and words[0] in _COMMANDS) and not {"--help", "--version"} & set(arguments)


def _of_graph(arguments: Sequence[str]) -> bool:
    """Whether a task between an edit and its proof was asked for."""
    return any(word.partition(":")[0] in (*GRAPH_TASKS, *JUDGING_TASKS) for word in _words(arguments))


def _will_write(arguments: Sequence[str]) -> bool:
    """Whether a task was asked for that keeps state (`doit -s verify` only judges)."""
    single = any(word == "--single" or (word.startswith("-") and not word.startswith("--") and "s" in word)
                 for word in arguments)
    return _runs_tasks(arguments) and _of_graph(arguments) and not single


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _set_aside(database: Path, why: str) -> None:
    kept = database.with_name(f"{database.name}.bad-{time.strftime('%Y%m%d-%H%M%S')}")
    database.replace(kept)
    database.with_name(database.name + "-journal").unlink(missing_ok=True)
    _say(f"doit's database was damaged ({why}): set aside as {kept}; receipts decide, nothing is lost.")


def _rows(database: Path) -> dict[str, Any]:
    """Task data by name.

    Raises :class:`ValueError` for a damaged file and `sqlite3.OperationalError` for a locked one.
    """
    import sqlite3
    from contextlib import closing

    # A run that was killed while it wrote leaves a journal, which only a writer may roll back.
    journal = database.with_name(database.name + "-journal")
    mode = "rw" if journal.exists() and os.access(database, os.W_OK) else "ro"
    try:
        with closing(sqlite3.connect(f"file:{_quoted(database)}?mode={mode}", uri=True, timeout=30)) as connection:
            verdict = connection.execute("pragma quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise ValueError(verdict)
            tables = [name for (name,) in connection.execute("select name from sqlite_master where type='table'")]
            rows = connection.execute("select task_id, task_data from doit").fetchall() if "doit" in tables else []
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise ValueError(str(error)) from None
    data = {name: json.loads(text) for name, text in rows}
    if not all(isinstance(value, dict) for value in data.values()):
        raise ValueError("a task's data is not a map")
    return data


def _quoted(path: Path) -> str:
    from urllib.parse import quote

    return quote(str(path))


def _remove_marks(database: Path, marked: dict[str, Any]) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        for name, data in marked.items():
            kept = {key: value for key, value in data.items() if key != "ignore:"}
            connection.execute("update doit set task_data = ? where task_id = ?", (json.dumps(kept), name))
            _say(f"`{name}` was marked as ignored (doit ignore): a verdict cannot be ignored, the mark is removed.")


def _apply_marks(session: Session, database: Path, arguments: Sequence[str]) -> None:
    rows = _rows(database)
    marked = {name: data for name, data in rows.items() if data.get("ignore:")}
    session.ignored = tuple(sorted(name for name in marked if name.partition(":")[0] in GRAPH_TASKS))
    own = {name: data for name, data in marked.items() if name in _OWN_TASKS}
    if own and _runs_tasks(arguments) and os.access(database, os.W_OK):
        _remove_marks(database, own)


def _has_room(folder: Path) -> bool:
    """Whether sqlite can write there: doit shows a traceback where it cannot. A run's rows take a few kB."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize > 1 << 20 and (not state.f_files or state.f_favail > 8)


def _database(session: Session, arguments: Sequence[str]) -> str:
    """The path for doit's database, or ``:memory:`` where nothing may be written, or nothing is worth keeping."""
    import sqlite3

    from tasks.doit_database import create

    if _runs_tasks(arguments) and not _of_graph(arguments):
        return ":memory:"  # a task that only looks stands on no other, and keeps nothing
    try:
        state = session.state
        if (not session.writable() or session.location.copied_from is not None or session.settings.flag("dry_run")
                or not _has_room(session.location.build_dir)):
            return ":memory:"
        if not state.is_dir():
            if not _will_write(arguments):
                return ":memory:"
            state.mkdir()
        database = state / "doit.sqlite3"
        if database.exists():
            try:
                _apply_marks(session, database, arguments)
            except ValueError as error:
                _set_aside(database, str(error).splitlines()[0])
        if _runs_tasks(arguments) and not _will_write(arguments):
            return ":memory:"  # what only looks must work where nothing can be written any more
        create(str(database))
    except (UserError, OSError, sqlite3.Error):
        return ":memory:"
    return str(database)


def configuration(session: Session, reporter: type, arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """The value for `DOIT_CONFIG`."""
    from tasks.doit_database import survive_a_full_disk

    arguments = sys.argv[1:] if arguments is None else arguments
    database = _database(session, arguments)
    survive_a_full_disk(database, required=not _runs_tasks(arguments))
    return {
        "default_tasks": ["status"],
        "backend": "sqlite3",
        "dep_file": database,
        "check_file_uptodate": ReceiptsDecide,
        "reporter": reporter,
        "verbosity": 2,
    }
