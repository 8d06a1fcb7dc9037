"""Writes a run down: the `tests` part of `report.json`, and JUnit XML for CI systems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.gtest.facts import RunFacts, Verified

__all__ = ["as_json", "write_junit"]

# Characters that XML 1.0 cannot hold, escaped or not.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_json(run: RunFacts) -> dict[str, Any]:
    """Plain data: counts, every test's result and path, the process, the GPU, the scrubbed environment."""
    kinds = ("passed", "failed", "skipped", "missing", "unfinished", "not-run")
    device = run.device
    return {
        "binary": str(run.binary),
        "command": list(run.command),
        "filter": str(run.filter),
        "unmatched": [{"pattern": pattern, "why": why} for pattern, why in run.selection.unmatched],
        "listed": len(run.listed),
        "selected": len(run.selection.selected),
        "disabled": list(run.selection.disabled),
        "counts": {kind: sum(test.result == kind for test in run.tests) for kind in kinds},
        "results": [_one(test) for test in run.tests],
        "status": run.ended.status,
        "stopped": run.ended.stopped,
        "running": run.output.running,
        "duration_s": round(run.ended.seconds, 3),
        "mapped": str(run.mapped.ours) if run.mapped.ours else None,
        "device": None if device is None else {
            "name": device.name, "uuid": device.uuid, "capability": device.capability,
            "free_mb": device.free_mb, "total_mb": device.total_mb},
        "scrubbed": list(run.environment.scrubbed),
        "environment": dict(run.environment.shown),
        "report": str(run.request.report_file) if run.report is not None else None,
        "junit": str(run.request.junit_file) if run.report is not None and run.request.junit_file else None,
        "log": str(run.log),
    }


def _one(test: Verified) -> dict[str, Any]:
    told: dict[str, Any] = {"name": test.name, "result": test.result, "path": test.path,
                            "expected": test.expected, "time_s": test.seconds}
    if test.failures:
        told["failures"] = list(test.failures)
    if test.result == "skipped":
        told["reason"] = test.skip_reason or "no reason given"
    return told


def write_junit(path: Path, tests: Sequence[Verified], seconds: float) -> None:
    """One JUnit document, replaced as a whole; its dialect is the one that gtest itself writes."""
    from xml.etree import ElementTree

    root = ElementTree.Element("testsuites", {
        "name": "test_mea", "time": f"{seconds:.3f}", **_totals(tests)})
    suites: dict[str, list[Verified]] = {}
    for test in tests:
        suites.setdefault(test.name.rpartition(".")[0], []).append(test)
    for suite, members in suites.items():
        node = ElementTree.SubElement(root, "testsuite", {"name": _xml(suite), **_totals(members)})
        for test in members:
            case = ElementTree.SubElement(node, "testcase", {
                "name": _xml(test.name.rpartition(".")[2]), "classname": _xml(suite), "time": f"{test.seconds:.3f}"})
            for failure in test.failures:
                ElementTree.SubElement(case, "failure", {"message": _xml(failure.split("\n")[0])}).text = _xml(failure)
            if test.result == "skipped":
                ElementTree.SubElement(case, "skipped", {"message": _xml(test.skip_reason)})
            elif not test.ran:
                ElementTree.SubElement(case, "error", {"message": test.result})
    temporary = path.with_name(f".{path.name}.new")
    try:
        ElementTree.ElementTree(root).write(temporary, encoding="utf-8", xml_declaration=True)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _totals(tests: Sequence[Verified]) -> dict[str, str]:
    return {"tests": str(len(tests)),
            "failures": str(sum(test.result == "failed" for test in tests)),
            "skipped": str(sum(test.result == "skipped" for test in tests)),
            "errors": str(sum(not test.ran and test.result != "skipped" for test in tests))}


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
