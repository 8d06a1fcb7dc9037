"""`doit status`: where you stand. Reads only; builds nothing, runs nothing, writes nothing."""

from __future__ import annotations

import sys
import time

from tasks.errors import UserError
from tasks.judging import examine
from tasks.report.console import chain_text, time_lines
from tasks.session import Session

__all__ = ["status"]


def status(session: Session, json: bool = False) -> None:
    """`status`: the whole chain, the times that the manual ritual would compare, and the mend."""
    report = examine(session, "status", time.time())
    if json:
        session.document("status", report.as_json())
    else:
        survey = session.survey()
        print(f"checkout  {report.ort_root}\nbuild     {report.build_dir}")
        print("\n".join(time_lines(survey.headers, ((row.judgement.name, row.object) for row in report.units),
                                   survey.provider)))
        print("  (times are hints; the chain below is the proof)")
        print(chain_text(report, sys.stdout), flush=True)
    if report.broken is not None:
        raise UserError(report.disproof, report.broken.remedy)
