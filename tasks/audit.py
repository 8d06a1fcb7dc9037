"""`doit audit`: what the build system itself knows of the watched headers, why, and how to mend it. Read only."""

from __future__ import annotations

import json as json_format

from tasks.auditing import audit_checkout
from tasks.errors import UserError
from tasks.session import Session

__all__ = ["audit"]


def audit(session: Session, json: bool = False) -> None:
    """`audit`: the matrix of units and headers, the causes of its gaps, other findings."""
    from tasks.report.audit_table import as_document, print_table

    found = audit_checkout(session)
    if json:
        session.document("audit", json_format.dumps(as_document(found), indent=1))
    else:
        print_table(found)
    if not found.tracked:
        gaps = sum(cell.state != "tracked" for unit in found.units for cell in unit.cells.values())
        raise UserError(f"{gaps} of {sum(len(unit.cells) for unit in found.units)} pairs of unit and header are not"
                        " tracked by the build system.",
                        f"{session.command('rebuild_fmha')}   (compiles them whatever the build system knows)")
