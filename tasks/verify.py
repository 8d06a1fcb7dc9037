"""`doit verify`: judge links 1 to 3. With `-s`, without building."""

from __future__ import annotations

import time

from tasks.errors import UserError
from tasks.judging import deliver, examine, refuse_ignored
from tasks.session import Session

__all__ = ["verify"]


def verify(session: Session, json: bool = False) -> None:
    """`verify`: prove that the objects and the linked provider hold the edit."""
    refuse_ignored(session)
    report = examine(session, "verify", time.time())
    deliver(session, report, json)
    broken = report.broken
    if broken is not None:
        raise UserError(report.disproof, broken.remedy)
