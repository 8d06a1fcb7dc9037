"""From a fresh look at the checkout to a report: the links, the document, and what is printed.

Every judging task and `status` come through here, so that the same files get the same verdict.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from tasks.device_code import confirm_link
from tasks.errors import UserError
from tasks.evidence.chain import Link, judge_linked, link_of_objects
from tasks.provider_copies import old_copies
from tasks.regenerating import configure_remedy
from tasks.report.document import Report, UnitRow, error_document
from tasks.session import Session
from tasks.unit_code import change_lines, read_unit_code

if TYPE_CHECKING:
    from tasks.guarded_build import Judged
    from tasks.survey import Survey

__all__ = ["JUDGED_LINKS", "conclude", "deliver", "examine", "refuse_ignored"]

JUDGED_LINKS = {"rebuild_fmha": 2, "verify": 3, "test_mea": 7, "status": 3}


def refuse_ignored(session: Session) -> None:
    """A task that stands on an ignored one must not be believed."""
    if session.ignored:
        names = ", ".join(session.ignored)
        raise UserError(f"{names} is marked as ignored in doit's database, so nothing above it can be proved.",
                        f"doit forget {' '.join(session.ignored)}")


def _header_link(survey: Survey, judged: Judged, remedy: str) -> Link:
    """Link 1: which units reach the watched headers, and through what; open while the build would first make that."""
    reached = {path for unit in survey.units.values() for path in unit.reaches}
    evidence = [f"{len(survey.headers)} watched headers, {len(survey.units)} units reach them"]
    real = {os.path.realpath(path) for path in reached}
    for header in survey.headers:
        if header not in reached and os.path.realpath(header) not in real:
            evidence.append(f"{os.path.basename(header)} is included by no unit of the provider")
    for unit in survey.units.values():
        for macro in unit.closure.unresolved:
            evidence.append(f"{unit.name}: `#include {macro}` is not understood: it counts as any watched header")
    if judged.pending:
        remedy = configure_remedy(survey.location, judged.pending) or remedy
        return Link(1, "unproven", (*judged.pending.told(), *evidence), remedy)
    return Link(1, "fresh", tuple(evidence))


def examine(session: Session, task: str, started: float) -> Report:
    """Judge links 1 to 3 as they were looked at last; 4 to 7 are those of the last run, where they still hold.

    Whoever builds or waits makes the session forget what it saw: then all is looked at again here.
    """
    survey = session.survey()
    judged = session.judged()
    codes = {name: read_unit_code(unit, session.state, judged.observer.digest(unit.facts.object))
             for name, unit in survey.units.items()}
    proved = [(name, code) for name, code in codes.items() if judged.units[name].verdict == "fresh"]
    remedy = session.command("rebuild_fmha")
    objects = link_of_objects(list(judged.units.values()), remedy)
    links = [_header_link(survey, judged, remedy), objects.with_evidence(*change_lines(proved)),
             _provider_link(session, survey, judged, task)]
    links += session.runs.links(survey.provider, judged.observer, session.command("test_mea"))
    rows = [UnitRow(judged.units[name], unit.facts.source, unit.facts.object, codes[name].state, codes[name].kernels,
                    codes[name].by_arch) for name, unit in survey.units.items()]
    exists = judged.observer.identity(survey.provider) is not None
    digest = judged.observer.digest(survey.provider) if exists else None
    return Report(task, JUDGED_LINKS[task], tuple(links), tuple(rows), str(survey.location.ort_root),
                  str(survey.location.build_dir), {"path": survey.provider, "sha256": digest}, started, time.time())


def _provider_link(session: Session, survey: Survey, judged: Judged, task: str) -> Link:
    objects = {survey.units[name].facts.object: judgement for name, judgement in judged.units.items()}
    remedy = session.command("rebuild_fmha")
    link = judge_linked(survey.provider, objects, session.store.link(), judged.observer, remedy)
    link = confirm_link(link, survey, judged, session.state, remedy)
    # `status` is asked often: it looks only where copies are known to lie.
    return link.with_evidence(*old_copies(survey, everywhere=task != "status")) if link.verdict == "fresh" else link


def deliver(session: Session, report: Report, as_json: bool) -> None:
    """Write `report.json`, print the document or the table. Raises :class:`UserError` unless all is fresh."""
    _keep(session, report)
    if as_json:
        session.document(report.task, report.as_json())
    elif report.task in session.selected or report.verdict != "fresh":
        from tasks.report.console import chain_text

        session.concluded.add(report.task)
        print(chain_text(report, sys.stdout), flush=True)


def _keep(session: Session, report: Report) -> None:
    from tasks.evidence.receipts import write_atomically

    if not session.state.is_dir() or session.settings.flag("dry_run"):
        return  # `-s verify` where nothing was ever built: a look leaves no trace
    try:
        write_atomically(session.state / "report.json", report.as_json() + "\n")
    except OSError as error:
        print(f"report.json cannot be written: {error.strerror}", file=sys.stderr)


def conclude(session: Session, task: str, as_json: bool) -> None:
    """For a judging task that doit did not come to, since a task below it failed: judge what is there now."""
    try:
        report = examine(session, task, time.time())
    except (UserError, OSError) as error:
        if as_json:
            session.document(task, error_document(task, str(error)))
        return
    deliver(session, report, as_json)
