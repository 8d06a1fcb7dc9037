"""Reads gtest's JSON report of one run: a complete, consistent document or an error, nothing in between."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ReportError", "TestResult", "read_report"]

_SIZE_LIMIT = 256 << 20
_MESSAGE_LIMIT = 2000
_FAILURE_LIMIT = 20
_WHERE = re.compile(r"^[^\n]+:\d+\n")


class ReportError(Exception):
    """The report cannot be believed; the text says why."""


@dataclass(frozen=True)
class TestResult:
    """One test: `result` is ``passed``, ``failed``, ``skipped`` or ``not-run`` (disabled, filtered out)."""

    __test__ = False

    name: str
    result: str
    seconds: float
    failures: tuple[str, ...] = ()
    skip_reason: str = ""


def read_report(path: Path) -> tuple[TestResult, ...] | None:
    """All tests of the report; None where there is no file. Raises :class:`ReportError`.

    The format is that of `--gtest_output=json` (googletest/docs/advanced.md, "Generating a JSON Report").
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(_SIZE_LIMIT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReportError(f"cannot be read: {error.strerror}") from None
    if len(text) > _SIZE_LIMIT:
        raise ReportError(f"is larger than {_SIZE_LIMIT >> 20} MB")
    if not text.strip():
        raise ReportError("is empty")
    try:
        # Test output with control characters or broken UTF-8 is no reason to doubt the results.
        return _tests(json.loads(text, strict=False))
    except RecursionError:
        raise ReportError("is nested too deeply") from None
    except ValueError as error:
        raise ReportError(f"is not complete JSON ({error})") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise ReportError(f"lacks what gtest writes ({type(error).__name__}: {error})") from None


def _tests(data: Any) -> tuple[TestResult, ...]:
    results: dict[str, TestResult] = {}
    count = 0
    for suite in data["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{_text(suite['name'])}.{_text(test['name'])}"
            if not test["name"]:
                continue  # gtest files what failed outside of any test under an empty name
            count += 1
            result = _one(name, test)
            known = results.get(name)
            # A repeated test counts by its worst run.
            results[name] = result if known is None or known.result == "passed" else known
    if isinstance(data.get("tests"), int) and data["tests"] != count:
        raise ReportError(f"says {data['tests']} tests and holds {count}")
    return tuple(results.values())


def _one(name: str, test: Any) -> TestResult:
    failures = tuple(_text(failure["failure"])[:_MESSAGE_LIMIT] for failure in test.get("failures", ()))
    # Newer versions tell where a test skipped, then why, as they do for failures.
    reasons = [_WHERE.sub("", _text(skip.get("message", ""))) for skip in test.get("skipped", ())]
    if test.get("status", "RUN") != "RUN" or test.get("result", "COMPLETED") in ("SUPPRESSED", "NOTRUN"):
        result = "not-run"
    elif failures:
        result = "failed"
    elif test.get("result") == "SKIPPED":
        result = "skipped"
    elif test.get("result", "COMPLETED") == "COMPLETED":
        result = "passed"
    else:
        raise ReportError(f"has an unknown result {test['result']!r} for {name}")
    return TestResult(name, result, _seconds(test.get("time", "0s")), failures[:_FAILURE_LIMIT],
                      " ".join(" ".join(reasons).split())[:300])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r:.60}")
    return value


def _seconds(value: Any) -> float:
    try:
        return float(str(value).removesuffix("s"))
    except ValueError:
        return 0.0
