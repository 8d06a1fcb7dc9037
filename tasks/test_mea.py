"""`doit test_mea`: run the right tests in the right binary, and refuse every way of being green without proof."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.checkout.locate import require_trust
from tasks.errors import UserError
from tasks.evidence.chain import Link
from tasks.judging import deliver, examine, refuse_ignored
from tasks.rebuild import guarded_build
from tasks.run_history import keep_run
from tasks.session import Session
from tasks.settings import DEFAULT_TEST_FILTER

if TYPE_CHECKING:
    from tasks.gtest import Outcome, TestRequest
    from tasks.report.document import Report
    from tasks.survey import Survey

__all__ = ["test_mea"]

_SHOWN_FLIPS = 12


def _test_binary(survey: Survey) -> Path:
    """The test executable: a target of the build directory, or a path of the user's."""
    test = survey.checkout.test
    if test is not None:
        return test.path
    name = survey.settings.test_binary
    path = survey.location.build_dir / name
    if path.is_file():
        return path
    others = ", ".join(path.name for path in survey.checkout.executables) or "none at all"
    raise UserError(f"The build directory has no test executable {name!r}; there are: {others}.",
                    "configure with the unit tests on, or name another: doit test_mea test_binary=NAME")


def _build(session: Session) -> None:
    """Provider and test target through the build tool: an edited test is as good as an edited header."""
    survey = session.survey(again=True)
    test = survey.checkout.test
    targets = list(survey.linked.targets)
    if test is not None:
        targets.append(test.target)
    else:
        _test_binary(survey)
    guarded_build(session, list(dict.fromkeys(targets)))


def _request(session: Session, survey: Survey) -> TestRequest:
    from tasks.device_code import compiled_archs
    from tasks.gtest import DeviceCode, TestRequest

    archs = compiled_archs(survey)
    settings, cache = session.settings, survey.location.cache
    binary = _test_binary(survey)
    return TestRequest(
        binary=binary, workdir=survey.location.build_dir,
        patterns=settings.test_filter or DEFAULT_TEST_FILTER,
        every_pattern_must_match=settings.test_filter is not None,
        report_file=session.state / "tests.json", junit_file=session.state / "tests.xml",
        log_dir=session.state / "logs",
        provider=None if survey.checkout.provider.static else survey.checkout.provider.path,
        expected_paths=settings.expected_paths, launcher=settings.test_launcher, env_keep=settings.test_env_keep,
        test_timeout_s=settings.test_timeout_s, run_timeout_s=settings.run_timeout_s,
        candidates=tuple(path for path in survey.checkout.executables if path != binary and path.is_file()),
        code=DeviceCode(archs) if archs else None, require_archs=settings.require_archs,
        flash_built=cache.truth("onnxruntime_USE_FLASH_ATTENTION", default=True),
        quick_build=cache.truth("onnxruntime_QUICK_BUILD"))


def _oversized(session: Session, survey: Survey) -> list[str]:
    from tasks.kernels import complaints, list_kernels

    try:
        return complaints(list_kernels(session, survey))
    except UserError as error:
        return [f"which kernels need too much shared memory is not known: {error.cause}"]


def _run(session: Session, survey: Survey) -> Outcome:
    from tasks.gtest import run_tests
    from tasks.report.progress import RunProgress

    with RunProgress(session.output) as progress:
        return run_tests(_request(session, survey), progress.moment, session.environ)


def _with_outcome(session: Session, report: Report, outcome: Outcome, oversized: list[str]) -> Report:
    """The report with links 4 to 7 of this run. Kernels that some GPU cannot run are told whatever GPU ran."""
    found = {finding.number: Link(finding.number, finding.verdict, finding.evidence,
                                  session.as_started(finding.remedy or "doit test_mea"))
             for finding in outcome.links}
    if 7 in found:
        found[7] = found[7].with_evidence(*oversized)
    links = tuple(found.get(link.n, link) for link in report.links)
    return report._replace(links=links, refusal=outcome.refusal, tests=outcome.tests, ended=time.time())


def _refuse(session: Session, report: Report, json: bool, cause: UserError) -> UserError:
    deliver(session, report._replace(refusal="not-fresh"), json)
    return UserError(f"not-fresh: {cause.cause}", cause.mend)


def _shown(lines: list[str]) -> list[str]:
    more = len(lines) - _SHOWN_FLIPS
    return [*lines[:_SHOWN_FLIPS], f"  and {more} more: doit flips"] if more > 0 else lines


def test_mea(session: Session, json: bool = False) -> None:
    """`test_mea`: links 1 to 7."""
    refuse_ignored(session)
    started = time.time()
    require_trust(session.location)
    try:
        _build(session)
    except UserError as error:
        raise _refuse(session, examine(session, "test_mea", started), json, error) from None
    report = examine(session, "test_mea", started)
    broken = report.broken
    if broken is not None and broken.n < 4:
        raise _refuse(session, report, json, UserError(report.disproof, broken.remedy))
    survey = session.survey()
    outcome = _run(session, survey)
    report = _with_outcome(session, report, outcome, _oversized(session, survey))
    binary = str(_test_binary(survey))
    session.runs.save(report.links[3:], {survey.provider, binary})
    if (flips := keep_run(session, survey, outcome, binary, started)) is not None:
        report = report._replace(tests={**(report.tests or {}), "flips": flips.as_dict()})
    deliver(session, report, json)
    if flips is not None:
        session.say("\n".join(_shown(flips.lines)))
    if outcome.refusal is not None:
        raise UserError(f"{outcome.refusal}: {outcome.message}")
    session.say(outcome.message)
    if report.broken is not None:
        raise UserError(report.disproof, report.broken.remedy)
