"""Which refusals apply to a run, in their fixed order: every way of being green without proof.

Pure: every check takes the facts and returns (cause, mend) or None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tasks.gtest.device import gpu_trouble, says_no_gpu
from tasks.gtest.facts import RunFacts, Verified
from tasks.gtest.listing import describe_status
from tasks.gtest.request import Verdict

__all__ = ["Problem", "find_problems"]

_AGAIN = "doit test_mea"
_Answer = tuple[str, str] | None


@dataclass(frozen=True)
class Problem:
    """A refusal that applies: its word, cause and mend, and the link that it breaks, if any."""

    word: str
    cause: str
    mend: str
    link: int | None
    verdict: Verdict


def _shown(tests: list[Verified] | list[str], limit: int = 3) -> str:
    names = [test if isinstance(test, str) else test.name for test in tests]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _library_not_loaded(run: RunFacts) -> _Answer:
    mapped = run.mapped
    if mapped.ours is not None or mapped.others:
        return None
    had_its_chance = (run.ended.stopped is None and run.ended.status in (0, 1) and run.output.running is None) or any(
        test.result in ("passed", "failed", "skipped") and test.expected != "none" for test in run.tests)
    if not had_its_chance and not mapped.requested:
        return None  # it died, or was stopped, before any test could open it
    if not mapped.observed:
        return (f"The dynamic loader wrote no log, so it is not known whether {run.wanted} was mapped.",
                f"behind a launcher, {run.log.parent} must be the same folder there; else see {run.log}")
    missing = [name for name, _ in mapped.missing] or run.output.missing_libraries
    if missing:
        return (f"{run.wanted} could not be loaded: {missing[0]} was not found.",
                f"put the folder of {missing[0].rpartition('/')[2]} on LD_LIBRARY_PATH, then: {_AGAIN}")
    if mapped.requested:
        return f"{run.wanted} was asked for, and could not be loaded: what passed ran elsewhere.", f"see {run.log}"
    return f"No test opened {run.wanted}: what passed ran elsewhere.", f"see {run.log}"


def _other_library_loaded(run: RunFacts) -> _Answer:
    if not run.mapped.others:
        return None
    other = run.mapped.others[0]
    too = "as well as" if run.mapped.ours else "instead of"
    return f"The tests opened {other} {too} {run.wanted}.", f"move {other} away, then: {_AGAIN}"


def _library_changed(run: RunFacts) -> _Answer:
    if run.before == run.after and run.before is not None:
        return None
    return f"{run.wanted} changed while the tests ran.", f"let no other build run meanwhile, then: {_AGAIN}"


def _gpu(run: RunFacts) -> tuple[str, str] | None:
    harmless = [test.name for test in run.tests if test.result == "passed" and test.path]
    if trouble := gpu_trouble(run.output.troubles, harmless):
        return trouble
    reasons = [test.skip_reason for test in run.tests if test.result == "skipped"]
    if reasons and len(reasons) == len(run.tests) and any(map(says_no_gpu, reasons)):
        return "no-gpu", next(filter(says_no_gpu, reasons))
    return None


def _no_gpu(run: RunFacts) -> _Answer:
    found = _gpu(run)
    if found is None or found[0] != "no-gpu":
        return None
    visible = run.environment.shown.get("CUDA_VISIBLE_DEVICES")
    mend = "run this on a machine with a usable GPU; `doit verify` judges the build without one"
    if visible is not None:
        mend = f"unset CUDA_VISIBLE_DEVICES (it is {visible!r}), or {mend}"
    return f"The test process found no GPU ({found[1]}).", mend


def _gpu_unusable(run: RunFacts) -> _Answer:
    found = _gpu(run)
    if found is None or found[0] != "gpu-unusable":
        return None
    device = run.device
    name = f"{device.name}, {device.uuid}, {device.free_mb} of {device.total_mb} MB free: " if device else ""
    return (f"The test process could not use the GPU ({name}{found[1]}).",
            "free its memory, choose another with CUDA_VISIBLE_DEVICES, or update its driver: see nvidia-smi")


def _where(run: RunFacts) -> str:
    if run.output.running:
        return f"in {run.output.running}"
    return f"after {run.output.last}" if run.output.last else "before the first test"


def _timed_out(run: RunFacts) -> _Answer:
    if run.ended.stopped in (None, "interrupted"):
        return None
    left = f"; process {run.ended.survivors[0]} could not be ended" if run.ended.survivors else ""
    return (f"{run.ended.stopped} {_where(run)}; the process tree was ended{left}.",
            "raise test_timeout_s or run_timeout_s in fmha.toml if it only needs longer")


def _crashed(run: RunFacts) -> _Answer:
    if run.ended.stopped or run.all_ended or (run.ended.status == 0 and run.output.running is None):
        return None
    return f"The test process {describe_status(run.ended.status)} {_where(run)}.", f"see {run.log}"


def _crashed_at_exit(run: RunFacts) -> _Answer:
    explained = any(test.result == "failed" for test in run.tests) or run.output.failed_suites
    fine = run.ended.status == 0 or (run.ended.status == 1 and explained)
    if run.ended.stopped or not run.all_ended or fine:
        return None
    return f"All tests ended, then the process {describe_status(run.ended.status)}.", f"see {run.log}"


def _interrupted(run: RunFacts) -> _Answer:
    if run.ended.stopped != "interrupted":
        return None
    return f"Interrupted {_where(run)}; the process tree was ended.", _AGAIN


def _report_missing(run: RunFacts) -> _Answer:
    if run.report is not None or run.report_error is not None or run.ended.stopped or _crashed(run):
        return None
    return (f"The test process ended with status {run.ended.status} and wrote no report "
            f"({run.request.report_file}).", f"see {run.log}")


def _report_invalid(run: RunFacts) -> _Answer:
    if run.report_error is not None:
        return f"gtest's report {run.report_error}.", f"see {run.log}; {_AGAIN}"
    reported = [result.name for result in run.report or () if result.result != "not-run"]
    if reported and not any(name in run.output.tests for name in reported):
        return "gtest's report names tests that this run's output never began.", f"see {run.log}"
    return None


def _all_skipped(run: RunFacts) -> _Answer:
    skipped = [test for test in run.tests if test.result == "skipped"]
    if not skipped or len(skipped) < len(run.tests):
        return None
    reasons = dict.fromkeys(test.skip_reason or "no reason given" for test in skipped)
    return (f"All {len(skipped)} tests skipped themselves: {'; '.join(list(reasons)[:3])}.",
            "choose tests that run here (test_filter), or build what they need")


def _some_missing(run: RunFacts) -> _Answer:
    missing = [test for test in run.tests if test.result in ("missing", "not-run", "unfinished")]
    if run.report is None or not missing:
        return None
    return f"Listed before, absent from the report: {_shown(missing)}.", f"see {run.log}"


def _tests_failed(run: RunFacts) -> _Answer:
    failed = [test for test in run.tests if test.result == "failed"]
    if failed:
        return f"{len(failed)} of {len(run.tests)} tests failed: {_shown(failed)}.", f"see {run.log}"
    suites = [f"{suite} (set-up or tear-down)" for suite in run.output.failed_suites]
    return (f"Failed: {_shown(suites)}.", f"see {run.log}") if suites else None


def _other_path_ran(run: RunFacts) -> _Answer:
    wrong = [test for test in run.tests if test.ran and test.path and test.expected != "any"
             and test.path != test.expected]
    if not wrong:
        return None
    told = [f"{test.name} ran {test.path}, not {test.expected}" for test in wrong]
    return f"Another attention path ran: {_shown(told)}.", "see expected_paths in the README, or choose other tests"


def _path_unknown(run: RunFacts) -> _Answer:
    unknown = [test for test in run.tests
               if test.ran and test.path is None and test.expected in ("mea", "flash")]
    if unknown:
        return (f"No dispatch line from {_shown(unknown)}: nothing shows that a GPU kernel ran.",
                f"is the CUDA provider in use? see {run.log}")
    ran = [test for test in run.tests if test.ran]
    if ran and not any("mea" in (test.path or "").split("+") for test in ran):
        return ("No test dispatched memory-efficient attention: nothing is proved about it.",
                "choose tests that do: doit test_mea test_filter='*MEA*'")
    return None


_CHECKS: tuple[tuple[str, Callable[[RunFacts], _Answer], int | None, Verdict], ...] = (
    ("library-not-loaded", _library_not_loaded, 4, "unproven"),
    ("other-library-loaded", _other_library_loaded, 4, "stale"),
    ("library-changed", _library_changed, 4, "stale"),
    ("no-gpu", _no_gpu, 7, "unproven"),
    ("gpu-unusable", _gpu_unusable, 7, "unproven"),
    ("timed-out", _timed_out, 5, "unproven"),
    ("crashed", _crashed, 5, "unproven"),
    ("crashed-at-exit", _crashed_at_exit, 5, "unproven"),
    ("interrupted", _interrupted, 5, "unproven"),
    ("report-missing", _report_missing, 5, "unproven"),
    ("report-invalid", _report_invalid, 5, "unproven"),
    ("all-skipped", _all_skipped, 5, "unproven"),
    ("some-missing", _some_missing, 5, "unproven"),
    ("tests-failed", _tests_failed, None, "fresh"),
    ("other-path-ran", _other_path_ran, 6, "stale"),
    ("path-unknown", _path_unknown, 6, "unproven"),
)


def find_problems(run: RunFacts) -> tuple[Problem, ...]:
    """Every refusal that applies, the deciding one first."""
    return tuple(Problem(word, *answer, link, verdict) for word, check, link, verdict in _CHECKS
                 if (answer := check(run)) is not None)
