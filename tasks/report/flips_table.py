"""The kept test runs as lines and as a JSON document."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tasks.evidence.flips import Flips, TestRun
from tasks.report.document import timestamp
from tasks.report.wrap import fitted_lines

__all__ = ["as_document", "plain_lines", "print_table"]

_DIGITS = 12


def as_document(runs: Sequence[tuple[TestRun, Flips]], ort_root: str, build_dir: str) -> dict[str, Any]:
    """The JSON document, oldest run first."""
    return {"schema": 1, "task": "flips", "ort_root": ort_root, "build_dir": build_dir, "runs": [
        {"started": timestamp(run.started), "provider": run.provider, "tests": run.tests, "gpu": run.gpu,
         "code": run.code, "refusal": run.refusal, "results": dict(run.results), **flips.as_dict()}
        for run, flips in runs]}


def _cells(run: TestRun, flips: Flips) -> tuple[str, ...]:
    counts = Counter(run.results.values())
    results = ", ".join(f"{counts[word]} {word}" for word in sorted(counts, key=lambda word: (-counts[word], word)))
    return (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started)), run.provider[:_DIGITS],
            run.tests[:_DIGITS], run.gpu or "unknown", results, flips.lines[0])


def _details(flips: Flips) -> list[str]:
    return [line.strip() for line in flips.lines[1:]]


def plain_lines(runs: Sequence[tuple[TestRun, Flips]]) -> list[str]:
    """One line a run, newest last, the tests whose results changed below it."""
    lines = []
    for run, flips in runs:
        when, provider, tests, gpu, results, summary = _cells(run, flips)
        lines.append(f"{when}  provider {provider}  tests {tests}  {gpu}: {results}")
        lines += [f"    {line}" for line in (summary, *_details(flips))]
    return lines


def print_table(runs: Sequence[tuple[TestRun, Flips]]) -> None:
    """Print the lines to standard output."""
    print(fitted_lines(plain_lines(runs), sys.stdout, " " * 8), flush=True)
