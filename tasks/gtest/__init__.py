"""Runs GoogleTest programs guarded and judges links 4 to 7: mapped library, tests, dispatch lines, GPU.

Knows nothing of doit, CMake or receipts. `run_tests(request, progress, environ) -> Outcome` is the way in.
"""

from __future__ import annotations

from collections.abc import Mapping

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

__all__ = ["LINK_NAMES", "REFUSALS", "DeviceCode", "LinkFinding", "Outcome", "Progress", "ProgressCallback",
           "TestRequest", "Verdict", "run_tests"]


def run_tests(request: TestRequest, progress: ProgressCallback | None, environ: Mapping[str, str]) -> Outcome:
    """List, run and judge. Never raises for what the outside world can cause, Ctrl-C included.

    `environ` is the environment to start from (`os.environ`); the scrubbed names are in `tests`.
    """
    from tasks.gtest import run  # the machinery costs 0.05 s of import, the request nothing

    return run.run_tests(request, progress, environ)
