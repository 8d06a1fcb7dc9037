"""`doit flips`: the kept test runs, and which results changed with which provider. Reads only."""

from __future__ import annotations

import json as json_format

from tasks.evidence.flips import judge_flips
from tasks.evidence.history import RunHistory
from tasks.session import Session

__all__ = ["flips"]


def flips(session: Session, json: bool = False) -> None:
    """`flips`: every kept run beside those before it."""
    from tasks.report.flips_table import as_document, print_table

    location = session.location
    runs = RunHistory(location.build_dir).runs()
    judged = [(run, judge_flips(run, runs[:i])) for i, run in enumerate(runs)]
    if json:
        document = as_document(judged, str(location.ort_root), str(location.build_dir))
        session.document("flips", json_format.dumps(document, indent=1))
    elif not judged:
        print(f"no test run is kept of {location.build_dir}\n  {session.command('test_mea')}", flush=True)
    else:
        print_table(judged)
