"""One guarded run from request to outcome: list, start, watch, read what is left, judge.

All input and output of the package meets here; the judgement is in `refusals` and `links`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tasks.gtest.choose import NoChoiceError, choose
from tasks.gtest.device import Device, probe
from tasks.gtest.environment import Environment, prepare
from tasks.gtest.facts import RunFacts
from tasks.gtest.filters import Filter, Selection, parse_filter
from tasks.gtest.links import judge_links, unjudged_links
from tasks.gtest.loader import compare, identity_of, read_logs
from tasks.gtest.process import NotStartedError, run_guarded
from tasks.gtest.record import as_json, write_junit
from tasks.gtest.refusals import find_problems
from tasks.gtest.request import Outcome, Progress, ProgressCallback, TestRequest
from tasks.gtest.results import ReportError, TestResult, read_report
from tasks.gtest.stream import OutputReader

__all__ = ["run_tests"]

_LOG_LIMIT = 64 << 20


class _Watcher:
    """Keeps the output, reads it, reports progress, and knows when enough is enough."""

    def __init__(self, request: TestRequest, names: tuple[str, ...], log: BinaryIO | None,
                 progress: ProgressCallback | None) -> None:
        self._request = request
        self._total = len(names)
        self._log = log
        self._room = _LOG_LIMIT
        self._progress = progress
        self._began = time.monotonic()
        self.output = OutputReader(names, self._changed)

    def feed(self, data: bytes) -> None:
        if self._log is not None and self._room > 0:
            with contextlib.suppress(OSError):  # a full disk must not end the run
                self._log.write(data[:self._room])
                self._log.flush()
            self._room -= len(data)
            if self._room <= 0:
                with contextlib.suppress(OSError):
                    self._log.write(b"\n[the rest of the output was not kept]\n")
        self.output.feed(data)

    def over(self, now: float) -> str | None:
        request = self._request
        if now - self._began > request.run_timeout_s:
            return f"The run did not end within {request.run_timeout_s:g} s (run_timeout_s):"
        if now - self.output.changed > request.test_timeout_s:
            return f"No test began or ended for {request.test_timeout_s:g} s (test_timeout_s):"
        return None

    def _changed(self) -> None:
        if self._progress is None:
            return
        output = self.output
        results = [trace.result for trace in output.tests.values() if trace.result is not None]
        ended = output.last if output.running is None else None
        self._progress(Progress(len(results), self._total, results.count("failed"), time.monotonic() - self._began,
                                output.running, ended, output.tests[ended].result if ended else None))


def run_tests(request: TestRequest, progress: ProgressCallback | None, environ: Mapping[str, str]) -> Outcome:
    """List, run and judge. Never raises for what the outside world can cause, Ctrl-C included.

    `environ` is the environment to start from (`os.environ`); the scrubbed names are in `tests`.
    """
    tests: dict[str, Any] = {"binary": str(request.binary), "filter": str(parse_filter(request.patterns))}
    try:
        with _scratch(request) as folder:
            return _list_and_run(request, progress, environ, folder, tests)
    except NoChoiceError as error:
        return _refused(error.word, error.cause, error.mend, tests)
    except NotStartedError as error:
        return _refused("binary-not-runnable", f"{request.binary} cannot be started: {error}.",
                        "see test_binary and test_launcher in fmha.toml", tests)
    except KeyboardInterrupt:
        return _refused("interrupted", "Interrupted before the tests began.", "doit test_mea", tests)
    except OSError as error:
        return _refused("report-missing", f"{error.filename or request.log_dir}: {error.strerror}.",
                        f"make {request.log_dir} writable, with space left", tests)


def _refused(word: str, cause: str, mend: str, tests: dict[str, Any]) -> Outcome:
    return Outcome(word, f"{cause}\n  {mend}", tests, unjudged_links(5, f"{word}: {cause}", mend))


@contextlib.contextmanager
def _scratch(request: TestRequest) -> Iterator[Path]:
    """A folder that no other run knows: what lies in it is this run's, whatever else writes reports."""
    folder = request.log_dir / f"run-{os.getpid()}-{time.time_ns()}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _list_and_run(request: TestRequest, progress: ProgressCallback | None, environ: Mapping[str, str],
                  folder: Path, tests: dict[str, Any]) -> Outcome:
    # ORT looks for its provider beside argv[0]: a link to the executable would show it another folder.
    binary = request.binary.resolve()
    mark, wanted = folder.name, parse_filter(request.patterns)
    plain = prepare(environ, request.env_keep, request.launcher, mark)
    tests |= {"scrubbed": list(plain.scrubbed), "environment": dict(plain.shown)}
    for stale in (request.report_file, request.junit_file):
        if stale is not None:
            stale.unlink(missing_ok=True)
    listed, selection = choose(request, binary, wanted, plain, folder / "list.json")
    facts = _run(request, progress, prepare(environ, request.env_keep, request.launcher, mark, folder / "loader"),
                 folder, binary, wanted, listed, selection, plain)
    return _outcome(facts)


def _run(request: TestRequest, progress: ProgressCallback | None, environment: Environment, folder: Path,
         binary: Path, wanted: Filter, listed: tuple[str, ...], selection: Selection, plain: Environment) -> RunFacts:
    provider = binary if request.provider is None or request.is_static else request.provider
    report_file, log = folder / "report.json", request.log_dir / "test_mea.log"
    command = environment.command((str(binary), f"--gtest_filter={wanted}", f"--gtest_output=json:{report_file}"))
    before = identity_of(provider)
    with log.open("wb") as kept:
        watcher = _Watcher(request, selection.selected, kept, progress)
        ended = run_guarded(command, environment.variables(), request.workdir, watcher)
    watcher.output.close()
    after = identity_of(provider)
    report, error = _read(report_file, request.report_file)
    mapped = compare(read_logs(folder / "loader", binary), provider, before, request.workdir)
    device: Device | None = None
    if ended.stopped != "interrupted" and any(trace.paths for trace in watcher.output.tests.values()):
        device = probe(plain, request.workdir)
    return RunFacts(request, binary, provider, environment, wanted, listed, selection, command, ended, watcher.output,
                    report, error, mapped, before, after, device, log)


def _read(written: Path, kept: Path) -> tuple[tuple[TestResult, ...] | None, str | None]:
    try:
        report = read_report(written)
    except ReportError as error:
        return None, str(error)
    if report is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(written, kept.with_name(f".{kept.name}.new"))
        kept.with_name(f".{kept.name}.new").replace(kept)
    return report, None


def _outcome(run: RunFacts) -> Outcome:
    problems = find_problems(run)
    if run.request.junit_file is not None and run.report is not None:
        write_junit(run.request.junit_file, run.tests, run.ended.seconds)
    links = judge_links(run, problems)
    if problems:
        return Outcome(problems[0].word, f"{problems[0].cause}\n  {problems[0].mend}", as_json(run), links, run.log)
    return Outcome(None, _summary(run), as_json(run), links, run.log)


def _summary(run: RunFacts) -> str:
    passed = sum(test.result == "passed" for test in run.tests)
    mea = sum("mea" in (test.path or "").split("+") for test in run.tests if test.ran)
    gpu = f" on {run.device.name} (sm_{run.device.capability})" if run.device else ""
    return (f"{passed} of {len(run.tests)} tests passed{gpu} in {run.ended.seconds:.1f} s, "
            f"{mea} of them by memory-efficient attention.")
