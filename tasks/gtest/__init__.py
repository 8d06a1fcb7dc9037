"""Runs GoogleTest programs guarded and judges links 4 to 7: mapped library, tests, dispatch lines, GPU.

Knows nothing of doit, CMake or receipts. `run_tests(request, progress, environ) -> Outcome` is the way in.
"""

from __future__ import annotations

from tasks.gtest.request import (
    LINK_NAMES,
    REFUSALS,
    DeviceCode,
    LinkFinding,
    Outcome,
    Progress,
    ProgressCallback,
    TestRequest,
    Verdict,
)
from tasks.gtest.run import run_tests

__all__ = ["LINK_NAMES", "REFUSALS", "DeviceCode", "LinkFinding", "Outcome", "Progress", "ProgressCallback",
           "TestRequest", "Verdict", "run_tests"]
