"""Makes the task dictionaries that doit wants, so that `dodo.py` shows only which task stands on which.

An action that raises is a traceback in doit; here every action's :class:`UserError` and Ctrl-C
become a failed task with a message of one to three lines.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tasks.errors import UserError
from tasks.session import Session

__all__ = ["Proved", "UnitProved", "each_unit", "look", "step", "verdict"]

Action = Callable[..., object]

_JSON = {"name": "json", "long": "json", "type": bool, "default": False,
         "help": "print one JSON document on stdout and nothing else"}


def _refuse_parallel() -> None:
    """`doit -n` runs actions in forks or threads: two builds at once, and a Ctrl-C that hangs."""
    if multiprocessing.parent_process() is not None or threading.current_thread() is not threading.main_thread():
        raise UserError("These tasks run one after the other: the build itself is parallel.",
                        "leave out -n, and set the compile jobs: doit TASK jobs=N")


def _guarded(session: Session, action: Action, interrupted: str) -> Action:
    """`action` with its errors as doit's :class:`TaskFailed`."""
    from doit.exceptions import TaskFailed

    def run(*args: Any, **kwargs: Any) -> object:
        try:
            _refuse_parallel()
            return action(session, *args, **kwargs)
        except UserError as error:
            cause, line_end, mend = str(error).partition("\n")
            told = cause + line_end + session.as_started(mend)
            session.document_error(action.__name__, told)
            return TaskFailed(told)
        except KeyboardInterrupt:
            if session.output.isatty():
                session.say("")  # the terminal has put ^C where the next line would begin
            return TaskFailed(interrupted)
        except OSError as error:
            mend = "\n  free space, then run it again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            return TaskFailed(f"{error.filename or 'the system'}: {error.strerror or error}{mend}")

    return run


def _task(session: Session, action: Action, doc: str,
          interrupted: str = "interrupted; nothing half-built is believed: the next run compiles it again",
          **fields: Any) -> dict[str, Any]:
    return {"actions": [(_guarded(session, action, interrupted), fields.pop("args", []))], "doc": doc, "verbosity": 2,
            "io": {"capture": False}, **fields}


class Proved:
    """doit's `uptodate` for `build`: every object and the link are proved by receipts. Its repr is the reason."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._reason = "receipts not looked at yet"

    def __call__(self) -> bool:
        """Whether the build can be left out."""
        try:
            judged = self._session.judged()
        except (UserError, OSError) as error:
            self._reason = str(error)
            return False
        self._reason = ("every object and the link are proved by receipts" if judged.proved else
                        "; ".join(judged.pending.told()) or
                        "not proved: " + (", ".join(judged.unproved) or "the link of the provider"))
        return judged.proved

    def __repr__(self) -> str:
        return self._reason


class UnitProved:
    """doit's `uptodate` for `object:<unit>`. Its repr, which `doit info` prints, is the reason."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name
        self._reason = "receipts not looked at yet"

    def __call__(self) -> bool:
        """Whether the unit's recompile can be left out."""
        try:
            judgement = self._session.judged().units[self._name]
        except (UserError, OSError, KeyError) as error:
            self._reason = str(error)
            return False
        self._reason = f"{judgement.verdict}: {judgement.reason}"
        return judgement.verdict == "fresh"

    def __repr__(self) -> str:
        return self._reason


def step(session: Session, action: Action, doc: str, **fields: Any) -> dict[str, Any]:
    """A task of the graph between an edit and its proof."""
    return _task(session, action, doc, **fields)


def look(session: Session, action: Action, doc: str, **fields: Any) -> dict[str, Any]:
    """A task that only looks, on its own; it knows `--json`."""
    return _task(session, action, doc, "interrupted", params=[_JSON], **fields)


def verdict(session: Session, action: Action, doc: str, after: str) -> dict[str, Any]:
    """A judging task on top of `after`. It always runs.

    Where something below is marked as ignored, doit would skip the judging task with exit 0: so it
    stands on nothing then, and its action refuses.
    """
    return _task(session, action, doc, params=[_JSON], task_dep=[] if session.ignored else [after])


def each_unit(session: Session, action: Action, doc: str) -> Iterator[dict[str, Any]]:
    """One task for each watched unit: target its object, file_dep its source and every header that it sees."""
    try:
        survey = session.survey()
    except (UserError, OSError):
        return  # told by `units`, which runs first
    # doit takes a missing `file_dep` for an error of its own; the receipts tell it better.
    inputs = {unit.name: unit.closure.files | {unit.facts.source} for unit in survey.units.values()}
    missing = {path for path in frozenset().union(*inputs.values()) - survey.seen.keys() if not os.path.isfile(path)}
    for unit in survey.units.values():
        yield {"name": unit.name, "file_dep": sorted(inputs[unit.name] - missing), "targets": [unit.facts.object],
               "uptodate": [UnitProved(session, unit.name)],
               **_task(session, action, f"{doc} ({unit.unit.source.name})", args=[unit.name])}
