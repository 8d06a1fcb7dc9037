"""From a finished test run to the history: what of it is kept, and how it compares with the runs before."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tasks.evidence.flips import Flips, TestRun, judge_flips
from tasks.evidence.history import RunHistory

if TYPE_CHECKING:
    from tasks.evidence.snapshot import Observer
    from tasks.gtest import Outcome
    from tasks.session import Session
    from tasks.survey import Survey

__all__ = ["keep_run"]

# The results of these runs say nothing of the proved provider's kernels.
_SAY_NOTHING = {
    "binary-not-runnable", "wrong-binary", "no-tests-matched", "library-not-loaded", "other-library-loaded",
    "library-changed", "no-gpu", "gpu-unusable", "report-missing", "report-invalid"}
_WORDS = {"failed": "FAIL", "skipped": "SKIP"}


def _result(test: Mapping[str, Any], refusal: str | None) -> str | None:
    """A test's word for the history; None where it shows nothing, as a pass without any dispatch does."""
    result, path, expected = test["result"], test["path"], test["expected"]
    if result == "unfinished":
        return {"crashed": "CRASH", "timed-out": "TIMEOUT"}.get(refusal or "")
    if result != "passed":
        return _WORDS.get(result)
    if expected == "none":
        return "PASS" if path is None else "OTHER-PATH"
    if path is None:
        return None
    return "PASS" if expected in ("any", path) else "OTHER-PATH"


def _provider_digest(survey: Survey, session: Session, observer: Observer) -> str | None:
    """The provider's; of a static one the archive's, which an edited test leaves as it is."""
    if not survey.linked.static:
        return observer.digest(survey.provider)
    receipt, archive = session.store.link(), str(survey.linked.steps[-1].inputs[0])
    return receipt.steps[archive].digest if receipt is not None and archive in receipt.steps else None


def keep_run(session: Session, survey: Survey, outcome: Outcome, binary: str, started: float) -> Flips | None:
    """Keep the run's results beside those of the runs before, and judge what changed. None where it shows nothing.

    A history that cannot be written is said and stops nothing.
    """
    from tasks.unit_code import machine_code

    tests, observer = outcome.tests, session.judged().observer
    mapped = any(link.number == 4 and link.verdict == "fresh" for link in outcome.links)
    if tests is None or not mapped or outcome.refusal in _SAY_NOTHING:
        return None
    provider, executable = _provider_digest(survey, session, observer), observer.digest(binary)
    results = {test["name"]: word for test in tests.get("results", ())
               if (word := _result(test, outcome.refusal)) is not None}
    if provider is None or executable is None or not results:
        return None
    device = tests.get("device")
    gpu = f"{device['name']} (sm_{device['capability']})" if device else None
    run = TestRun(started, provider, executable, gpu, machine_code(survey, session.state, observer), outcome.refusal,
                  results)
    history = RunHistory(session.location.build_dir)
    flips = judge_flips(run, history.runs())
    try:
        history.add(run)
    except OSError as error:
        print(f"the run's results cannot be kept: {error.strerror}", file=sys.stderr)
    return flips
