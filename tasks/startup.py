"""What `dodo.py` needs before the first task: a session, doit's configuration, clean ends on signals.

Actions are named, not imported: a command loads only the modules that it uses.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from doit import doit_cmd

from tasks.doit_state import JUDGING_TASKS, configuration
from tasks.report.reporter import reporter_class
from tasks.report.streams import open_closed, outlive_readers
from tasks.session import Session

__all__ = ["action", "begin", "doit_config"]


# New objects between two collections, a hundred times Python's own number.
_COLLECT_AFTER = 70_000


def _on_term(number: int, frame: object) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


def _excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr, flush=True)
        # The interpreter would die of the signal; doit's own exit status for a failure is 1.
        os._exit(1)
    sys.__excepthook__(kind, error, trace)


def begin(project: Path, start_dir: Path, environ: Mapping[str, str]) -> Session:
    """The session of this run of doit."""
    # Receipts and closures are many small lists that live to the end: looking for circles among them costs more than
    # the circles of such a short process.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER)
    # The interpreter looks once more, at everything, when it ends.
    atexit.register(gc.freeze)
    if sys.argv[0].endswith(("doit", "__main__.py")):
        signal.signal(signal.SIGTERM, _on_term)
        sys.excepthook = _excepthook
        open_closed(start_dir)
        outlive_readers()
    return Session(project, start_dir, environ, doit_cmd._CMDLINE_VARS or {})


def doit_config(session: Session) -> dict[str, Any]:
    """`DOIT_CONFIG`: database, checker and reporter."""
    def selected(names: Sequence[str]) -> None:
        session.selected = tuple(names)

    def ended() -> None:
        for name in session.selected:
            if name in JUDGING_TASKS and name not in session.concluded:
                from tasks.judging import conclude

                conclude(session, name, session.as_json)

    return configuration(session, reporter_class(selected, ended))


def action(module: str, name: str) -> Callable[..., None]:
    """The action `tasks.<module>.<name>`, imported when it runs."""
    def run(*args: Any, **kwargs: Any) -> None:
        getattr(importlib.import_module(f"tasks.{module}"), name)(*args, **kwargs)

    run.__name__ = name
    return run
