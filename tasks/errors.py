"""The one kind of error that is meant for the person at the terminal.

Every package may import this module; it imports nothing of the project.
"""

from __future__ import annotations

__all__ = ["UserError"]


class UserError(Exception):
    """Something that the outside world caused and that the user can mend.

    `cause` is one or two lines of plain text. `mend` is the exact command or setting that mends
    it, shown on a line of its own. A task turns it into doit's ``TaskFailed`` (exit status 1),
    never into a traceback.
    """

    def __init__(self, cause: str, mend: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.mend = mend

    def __str__(self) -> str:
        return self.cause if self.mend is None else f"{self.cause}\n  {self.mend}"
