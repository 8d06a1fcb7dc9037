"""`doit disk_clean`: remove build folders that are clearly stale and regenerable, after asking."""

from __future__ import annotations

import json as json_format
import sys
from typing import TYPE_CHECKING

from tasks.disk import look_at_box
from tasks.errors import UserError
from tasks.session import Session

if TYPE_CHECKING:
    from tasks.box.survey import Box

__all__ = ["disk_clean"]


def disk_clean(session: Session, json: bool = False) -> None:
    """`disk_clean`: list, ask, remove. Raises :class:`UserError` where something removable is left."""
    from tasks.box.table import box_lines

    box = look_at_box(session)
    for line in box_lines(box):
        session.say(line)
    removed: list[str] = []
    failed: dict[str, str] = {}
    refusal: UserError | None = None
    if box.stale:
        refusal = _refusal(session, box, json)
        if refusal is None:
            _remove_all(session, box, removed, failed)
    if json:
        _tell(session, box, removed, failed)
    if refusal is not None:
        raise refusal
    if failed:
        path, why = next(iter(failed.items()))
        raise UserError(f"{len(failed)} of {len(box.stale)} folders stay: {path}: {why}.", session.command("disk"))


def _refusal(session: Session, box: Box, json: bool) -> UserError | None:
    """None where the user wants the stale folders removed."""
    if session.settings.flag("dry_run"):
        return UserError("dry run: nothing was removed.", session.command("disk_clean"))
    if session.settings.flag("yes"):
        return None
    mend = session.command("disk_clean") + " yes=1"
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return UserError("Nothing was removed: there is no terminal to ask on.", mend)
    from tasks.report.question import ask

    many = len(box.stale)
    try:
        answer = ask(f"Remove {'it' if many == 1 else f'these {many}'} for good? [y/N] ")
    except KeyboardInterrupt:
        answer = ""
    return None if answer.strip().lower() in ("y", "yes") else UserError("Nothing was removed.", mend)


def _remove_all(session: Session, box: Box, removed: list[str], failed: dict[str, str]) -> None:
    from tasks.box.processes import see_processes
    from tasks.box.remove import KeptError, remove
    from tasks.box.space import human

    for folder in box.stale:
        try:
            remove(folder, box, see_processes)
        except KeptError as error:
            failed[str(folder.path)] = str(error)
            session.say(f"   kept {folder.path}: {error}")
        else:
            removed.append(str(folder.path))
            session.say(f"   removed {folder.path} ({human(folder.tally.gain)})")


def _tell(session: Session, box: Box, removed: list[str], failed: dict[str, str]) -> None:
    from tasks.box.table import as_dict

    document = {
        "schema": 1, "task": "disk_clean", "ort_root": str(box.ort_root),
        "build_dir": str(box.configured) if box.configured else None,
        "removable": [str(folder.path) for folder in box.stale], "removed": removed,
        "won_bytes": sum(folder.tally.gain for folder in box.stale if str(folder.path) in removed),
        "failed": [{"path": path, "reason": why} for path, why in failed.items()],
        "kept": [as_dict(folder) for folder in box.folders if str(folder.path) not in removed]}
    session.document("disk_clean", json_format.dumps(document, indent=1))
