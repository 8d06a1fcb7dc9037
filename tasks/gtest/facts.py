"""Everything that one run showed, gathered in one place for judgement. Holds facts, decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tasks.gtest.device import Device
from tasks.gtest.environment import Environment
from tasks.gtest.expect import Expectations
from tasks.gtest.filters import Filter, Selection
from tasks.gtest.loader import FileIdentity, MappedLibraries
from tasks.gtest.process import Ended
from tasks.gtest.request import TestRequest
from tasks.gtest.results import TestResult
from tasks.gtest.stream import OutputReader

__all__ = ["RunFacts", "Verified"]


@dataclass(frozen=True)
class Verified:
    """One test of the run. `path` joins its dispatches (``mea``, ``mea+unfused``); None without one."""

    name: str
    result: str
    path: str | None
    expected: str
    seconds: float
    failures: tuple[str, ...]
    skip_reason: str

    @property
    def ran(self) -> bool:
        """Whether its body was executed to its end."""
        return self.result in ("passed", "failed")


@dataclass(frozen=True)
class RunFacts:
    """One finished run. `report` is None where gtest wrote none, `report_error` says why it is not believed."""

    request: TestRequest
    binary: Path
    wanted: Path
    environment: Environment
    filter: Filter
    listed: tuple[str, ...]
    selection: Selection
    command: tuple[str, ...]
    ended: Ended
    output: OutputReader
    report: tuple[TestResult, ...] | None
    report_error: str | None
    mapped: MappedLibraries
    before: FileIdentity | None
    after: FileIdentity | None
    device: Device | None
    log: Path

    @cached_property
    def tests(self) -> tuple[Verified, ...]:
        """The selected tests, and any others of the report, each with what output and report say of it."""
        reported = {result.name: result for result in self.report or ()}
        capability = self.device.capability if self.device else None
        expectations = Expectations(self.request.expected_paths, self.request.flash_built,
                                    self.request.quick_build, capability)
        names = dict.fromkeys((*self.selection.selected, *(name for name, result in reported.items()
                                                           if result.result != "not-run")))
        return tuple(self._verified(name, reported.get(name), expectations.of(name)) for name in names)

    def _verified(self, name: str, reported: TestResult | None, expected: str) -> Verified:
        trace = self.output.tests.get(name)
        path = "+".join(trace.paths) if trace is not None and trace.paths else None
        if reported is not None:
            reason = reported.skip_reason or (trace.skip_reason if trace else "")
            return Verified(name, reported.result, path, expected, reported.seconds, reported.failures, reason)
        if trace is None or self.report is not None:
            return Verified(name, "missing", path, expected, 0.0, (), "")
        return Verified(name, trace.result or "unfinished", path, expected, 0.0, (), trace.skip_reason)

    @cached_property
    def all_ended(self) -> bool:
        """Whether gtest said that it was done, or every selected test has ended."""
        ended = self.output.tests
        return self.output.finished or (self.output.running is None and all(
            name in ended and ended[name].result for name in self.selection.selected))
