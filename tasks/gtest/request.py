"""What is asked of a test run and what comes back: plain frozen data, the package's whole contract.

Knows no settings, receipts or build files: the caller hands over what it found as plain values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

__all__ = ["LINK_NAMES", "REFUSALS", "DeviceCode", "LinkFinding", "Outcome", "Progress", "ProgressCallback",
           "TestRequest", "Verdict"]

Verdict = Literal["fresh", "stale", "unproven"]

LINK_NAMES = {4: "provider-process", 5: "process-tests", 6: "tests-kernel", 7: "kernel-gpu"}

# In the order in which they are judged: the first that applies is the run's. `not-fresh` is the caller's.
REFUSALS = (
    "binary-not-runnable", "wrong-binary", "no-tests-matched", "library-not-loaded", "other-library-loaded",
    "library-changed", "no-gpu", "gpu-unusable", "timed-out", "crashed", "crashed-at-exit", "interrupted",
    "report-missing", "report-invalid", "all-skipped", "some-missing", "tests-failed", "other-path-ran",
    "path-unknown",
)


@dataclass(frozen=True)
class DeviceCode:
    """Which code the provider holds for which architecture, as read from the file by others.

    `archs` maps a unit to names such as ``sm_80`` (cubin) and ``compute_80`` (PTX). `dispatch` says
    which unit a GPU is sent to: (lowest capability as a number such as 80, unit), highest first.
    """

    archs: Mapping[str, tuple[str, ...]]
    dispatch: tuple[tuple[int, str], ...] = (
        (80, "fmha_sm80"), (75, "fmha_sm75"), (70, "fmha_sm70"), (50, "fmha_sm50"),
    )


@dataclass(frozen=True)
class TestRequest:
    """One run of one test executable.

    `provider` is the library that must be mapped; None, or the executable itself, where the provider is
    linked into it. `expected_paths` are (gtest pattern, ``mea | flash | any | none``), first match
    wins; None means ONNX Runtime's own names (see `expect`). `report_file` is where gtest's JSON report
    ends up, `junit_file` where a JUnit XML of the same run is written. `candidates` are other test
    executables of the build directory that may be listed to say where the tests are. `code` is None
    where nobody read the provider's device code: link 7 then stays ``unproven``.
    """

    __test__: ClassVar[bool] = False  # the name is no test class for pytest

    binary: Path
    workdir: Path
    patterns: tuple[str, ...]
    report_file: Path
    log_dir: Path
    every_pattern_must_match: bool = True
    provider: Path | None = None
    expected_paths: tuple[tuple[str, str], ...] | None = None
    launcher: tuple[str, ...] = ()
    env_keep: tuple[str, ...] = ()
    test_timeout_s: float = 120.0
    run_timeout_s: float = 1800.0
    list_timeout_s: float = 60.0
    junit_file: Path | None = None
    candidates: tuple[Path, ...] = ()
    code: DeviceCode | None = None
    require_archs: tuple[str, ...] = ()
    flash_built: bool = True
    quick_build: bool = False

    @property
    def is_static(self) -> bool:
        """Whether the executable itself is the file that link 4 is about."""
        return self.provider is None or self.provider == self.binary


@dataclass(frozen=True)
class LinkFinding:
    """The judgement of one link, 4 to 7. `remedy` is the one command or setting that mends it."""

    number: int
    name: str
    verdict: Verdict
    evidence: tuple[str, ...]
    remedy: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What one run proved.

    `refusal` is the first of :data:`REFUSALS` that applies, or None; `message` tells it in one to three
    lines, cause then mend, and sums the run up in one line where there is no refusal. `tests` is what
    `report.json` holds under that key; None where nothing was started or listed. `log` is the
    process's output as it was captured.
    """

    refusal: str | None
    message: str
    tests: Mapping[str, Any] | None
    links: tuple[LinkFinding, ...]
    log: Path | None = None


@dataclass(frozen=True)
class Progress:
    """Where the run stands: a test has begun (`running`) or ended (`result` says how)."""

    done: int
    total: int
    failed: int
    elapsed_s: float
    running: str | None = None
    ended: str | None = None
    result: str | None = field(default=None)


ProgressCallback = Callable[[Progress], None]
