"""Before anything runs: does this executable hold the tests that were asked for, and if not, which does?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.gtest.environment import Environment
from tasks.gtest.filters import Filter, Selection, is_disabled, nearest, select
from tasks.gtest.listing import ListError, list_tests
from tasks.gtest.request import TestRequest

__all__ = ["ATTENTION_SUITES", "NoChoiceError", "choose"]

# Where ONNX Runtime keeps the operator's tests; parameterised ones have more words around the suite's.
ATTENTION_SUITES = ("AttentionTest", "ContribOpAttentionTest")
_CANDIDATE_TIMEOUT_S = 20.0


@dataclass
class NoChoiceError(Exception):
    """There is nothing to run: `word` is the refusal."""

    word: str
    cause: str
    mend: str


def choose(request: TestRequest, binary: Path, wanted: Filter, environment: Environment,
           list_file: Path) -> tuple[tuple[str, ...], Selection]:
    """The listed tests and the selected ones. Raises :class:`NoChoiceError`."""
    if not binary.is_file():
        raise NoChoiceError("binary-not-runnable", f"There is no test executable {binary}.",
                            "build it, or set test_binary to another")
    try:
        listed = list_tests(binary, request.workdir, environment, list_file, request.list_timeout_s)
    except ListError as error:
        raise NoChoiceError("binary-not-runnable", f"{binary} {error}.", _mend_binary(str(error))) from None
    selection = select(wanted, listed)
    if not selection.selected:
        raise _wrong_binary(request, wanted, listed, environment, list_file) or _unmatched(selection, listed)
    if request.every_pattern_must_match and selection.unmatched:
        raise _unmatched(selection, listed)
    return listed, selection


def _mend_binary(reason: str) -> str:
    if missing := re.search(r"lacks a library: ([^\s:]+)", reason):
        return f"put the folder of {missing[1]} on LD_LIBRARY_PATH, then: doit test_mea"
    return "set test_binary to ONNX Runtime's onnxruntime_provider_test of this build directory"


def _has_attention(names: Sequence[str]) -> bool:
    return any(word in ATTENTION_SUITES for name in names for word in name.split(".")[0].split("/"))


def _wrong_binary(request: TestRequest, wanted: Filter, listed: Sequence[str], environment: Environment,
                  list_file: Path) -> NoChoiceError | None:
    binary = request.binary
    for candidate in request.candidates:
        if candidate.resolve() == binary.resolve():
            continue
        try:
            names = list_tests(candidate.resolve(), request.workdir, environment, list_file, _CANDIDATE_TIMEOUT_S)
        except ListError:
            continue
        if any(wanted.selects(name) and not is_disabled(name) for name in names):
            return NoChoiceError("wrong-binary", f"{binary.name} holds none of these tests; {candidate.name} does.",
                                 f"doit test_mea test_binary={candidate.name}")
    if _has_attention(listed):
        return None
    return NoChoiceError(
        "wrong-binary", f"{binary.name} holds {len(listed)} tests, none of them in {' or '.join(ATTENTION_SUITES)}.",
        "set test_binary: onnxruntime_provider_test, or onnxruntime_test_all in trees before 1.23")


def _unmatched(selection: Selection, listed: Sequence[str]) -> NoChoiceError:
    cause = "; ".join(f"`{pattern}` {why}" for pattern, why in selection.unmatched[:3])
    if len(selection.unmatched) > 3:
        cause += f"; and {len(selection.unmatched) - 3} more patterns"
    cause = cause or "The filter names no test"
    pattern = selection.unmatched[0][0] if selection.unmatched else "*"
    near = " or ".join(f"'{name}'" for name in nearest(pattern, listed))
    return NoChoiceError("no-tests-matched", f"{cause}. Patterns match the whole Suite.Test.",
                         f"nearest: {near} (set test_filter)")
