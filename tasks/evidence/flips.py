"""Which test results changed, and what else changed with them: judgement over kept test runs. Pure.

A result depends on the provider, on the test executable and on the GPU. Only where the provider differs
may a change be the kernel's; where nothing differs the test is flaky.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Change", "Flips", "TestRun", "judge_flips"]


@dataclass(frozen=True)
class TestRun:
    """One kept run. `started` in seconds since the epoch, `provider` and `tests` SHA-256 in hexadecimal.

    `provider` is of the library (or of the archive that a static executable was linked from), `tests` of
    the test executable, `code` of the watched units' machine code, where that is known. `results` maps
    tests to ``PASS``, ``FAIL``, ``SKIP``, ``CRASH``, ``TIMEOUT`` or ``OTHER-PATH`` (passed, but not by the kernel that
    it is about).
    """

    __test__ = False

    started: float
    provider: str
    tests: str
    gpu: str | None
    code: str | None
    refusal: str | None
    results: Mapping[str, str]

    def differs(self, other: TestRun) -> tuple[str, ...]:
        """What is another than in `other`: of ``provider``, ``tests``, ``gpu``."""
        return tuple(name for name in ("provider", "tests", "gpu") if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True)
class Change:
    """One test whose result is another. `changed` says what else is: of ``provider``, ``tests``, ``gpu``."""

    test: str
    was: str
    now: str
    changed: tuple[str, ...]

    @property
    def text(self) -> str:
        """In one line, such as ``FAIL->PASS AttentionTest.One``."""
        too = [{"tests": "the test executable", "gpu": "the GPU"}[name] for name in self.changed if name != "provider"]
        also = " too" if "provider" in self.changed else ", not the provider"
        return f"{self.was}->{self.now} {self.test}" + (f" ({' and '.join(too)} changed{also})" if too else "")

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {"test": self.test, "was": self.was, "now": self.now, "changed": list(self.changed)}


@dataclass(frozen=True)
class Flips:
    """A run held against those before it.

    `against` is the last run with another provider, `compared` the number of tests that both providers'
    runs have. `flips` are the changes since then, `edited` those beside an equal provider whose test
    executable or GPU is another, `flaky` those beside which nothing is, and those of a test whose results
    differed before with nothing beside it. `relinked`: the run before this
    one had another provider; `same_code`: with the same machine code of the watched units.
    """

    against: TestRun | None
    compared: int
    flips: tuple[Change, ...]
    edited: tuple[Change, ...]
    flaky: tuple[Change, ...]
    relinked: bool
    same_code: bool
    first: bool

    @property
    def lines(self) -> list[str]:
        """The comparison in words: what it is with, then one line a test."""
        told = [self._summary()]
        told += [f"  {change.text}" for change in (*self.flips, *self.edited)]
        told += [f"  flaky: {change.was}->{change.now} {change.test} ({_chance(change)})" for change in self.flaky]
        return told

    def _summary(self) -> str:
        if self.first:
            return "no earlier test run is kept: nothing to compare the results with"
        code = "; no machine code of the watched units did" if self.same_code else ""
        if self.against is None:
            return "same provider as in every kept run"
        if self.flips:
            still = "; no machine code of the watched units changed" if self.same_code else ""
            return (f"{len(self.flips)} of {self.compared} results changed since the provider before"
                    f" ({self.against.provider[:12]}){self._besides}{still}")
        if not self.compared:
            return f"no test of this run was run with the provider before ({self.against.provider[:12]})"
        count = f"{self.compared} test{'' if self.compared == 1 else 's'}"
        if self.relinked:
            return f"the provider changed, no result changed{self._besides} ({count}){code}"
        return ("same provider as in the run before; no result differs from the provider before"
                f"{self._besides} ({count})")

    @property
    def _besides(self) -> str:
        """The changes that are no flips: they are told below, so the summary must not say that there are none."""
        told = [f"{len(changes)} {what}" for changes, what in (
            (self.flaky, "flaky"), (self.edited, "with another test executable or GPU")) if changes]
        return f", besides {' and '.join(told)}" if told else ""

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, for the report."""
        against = None if self.against is None else {"provider": self.against.provider, "tests": self.against.tests}
        return {"against": against, "compared": self.compared, "relinked": self.relinked, "same_code": self.same_code,
                "flips": [change.as_dict() for change in self.flips],
                "edited": [change.as_dict() for change in self.edited],
                "flaky": [change.as_dict() for change in self.flaky], "text": self.lines}


def _chance(change: Change) -> str:
    return "its results differed with one same provider before" if change.changed else "same provider, other result"


def _latest(runs: Iterable[TestRun], test: str) -> TestRun | None:
    """The last of the runs (oldest first) that has a result of the test."""
    return next((run for run in reversed(list(runs)) if test in run.results), None)


def _flaky(run: TestRun, earlier: Sequence[TestRun]) -> Iterable[Change]:
    """Tests with another result in an earlier run that nothing tells apart from this one."""
    for test, now in run.results.items():
        others = [old.results[test] for old in earlier
                  if not run.differs(old) and old.results.get(test, now) != now]
        if others:
            yield Change(test, others[-1], now, ())


def _was_flaky(test: str, earlier: Sequence[TestRun]) -> bool:
    """Whether runs that nothing tells apart disagree on the test."""
    runs = [run for run in earlier if test in run.results]
    return any(not one.differs(other) and one.results[test] != other.results[test]
               for i, one in enumerate(runs) for other in runs[:i])


def _since(run: TestRun, earlier: Sequence[TestRun], skip: set[str]) -> Iterable[Change]:
    """Results that are others than in the last of the earlier runs that has the test."""
    for test, now in run.results.items():
        old = None if test in skip else _latest(earlier, test)
        if old is not None and old.results[test] != now and run.differs(old):
            yield Change(test, old.results[test], now, run.differs(old))


def judge_flips(run: TestRun, earlier: Sequence[TestRun]) -> Flips:
    """Hold `run` against the earlier runs, oldest first.

    The provider before is the last one that is another; all its runs together are the baseline. A test
    that its own edit or chance explains is no flip.
    """
    same = [old for old in earlier if old.provider == run.provider]
    others = [old for old in earlier if old.provider != run.provider]
    against = others[-1] if others else None
    baseline = [old for old in others if against is not None and old.provider == against.provider]
    flaky = {change.test: change for change in _flaky(run, same)}

    def settled(changes: Iterable[Change]) -> tuple[Change, ...]:
        """Those that chance does not explain; the others join the flaky ones."""
        found = tuple(changes)
        chance = {change.test: change for change in found if _was_flaky(change.test, [*baseline, *same])}
        flaky.update(chance)
        return tuple(change for change in found if change.test not in chance)

    edited = settled(_since(run, same, set(flaky)))
    flips = settled(_since(run, baseline, {*flaky, *(change.test for change in edited)}))
    held = {test for old in baseline for test in old.results}
    relinked = bool(earlier) and earlier[-1].provider != run.provider
    same_code = against is not None and run.code is not None and run.code == against.code
    return Flips(against, len(held & run.results.keys()), flips, edited, tuple(flaky.values()), relinked,
                 same_code, not earlier)
