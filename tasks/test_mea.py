"""`doit test_mea`: run the right tests in the right binary, and refuse every way of being green without proof."""

from __future__ import annotations

from tasks.errors import UserError
from tasks.session import Session

__all__ = ["test_mea"]


def test_mea(session: Session, json: bool = False) -> None:
    """`test_mea`: links 1 to 7."""
    raise UserError("not there yet")
