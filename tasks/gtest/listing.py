"""Asks a GoogleTest program which tests it holds, and believes only what has the shape of a list.

The answer is read from the JSON file that gtest writes beside the text (since 1.10), and from the
text where a program writes none; log lines in between do no harm.
"""

from __future__ import annotations

import json
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from tasks.gtest.environment import Environment
from tasks.gtest.process import Ended, NotStartedError, run_guarded

__all__ = ["ListError", "describe_status", "list_tests", "parse_text"]

_OUTPUT_LIMIT = 64 << 20
# gtest 1.12, `UnitTestImpl::ListTestsMatchingFilter`: parameters follow two spaces and a `#`.
_SUITE = re.compile(r"(?P<suite>[^\s.#]+)\.(?:  # .*)?")
_TEST = re.compile(r"  (?P<test>[^\s.#]+)(?:  # .*)?")


class ListError(Exception):
    """The program could not be asked; the text says why in one line."""


@dataclass
class _Collector:
    deadline: float
    limit_s: float
    text: bytearray

    def feed(self, data: bytes) -> None:
        self.text += data[: max(0, _OUTPUT_LIMIT + 1 - len(self.text))]

    def over(self, now: float) -> str | None:
        if len(self.text) > _OUTPUT_LIMIT:
            return f"printed more than {_OUTPUT_LIMIT >> 20} MB when asked for its tests"
        return f"did not list its tests within {self.limit_s:g} s" if now > self.deadline else None


def parse_text(text: str) -> tuple[str, ...]:
    """`Suite.Test` names of the output of `--gtest_list_tests`; lines of any other shape are no tests."""
    names: dict[str, None] = {}
    suite: str | None = None
    for line in text.split("\n"):
        line = line.rstrip("\r")
        if match := _SUITE.fullmatch(line):
            suite = match["suite"]
        elif suite is not None and (match := _TEST.fullmatch(line)):
            names[f"{suite}.{match['test']}"] = None
    return tuple(names)


def _parse_json(path: Path) -> tuple[str, ...]:
    try:
        data = json.loads(path.read_text(encoding="utf-8", errors="replace"), strict=False)
        return tuple(f"{suite['name']}.{test['name']}"
                     for suite in data["testsuites"] for test in suite["testsuite"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ()


def describe_status(status: int | None) -> str:
    """`died of SIGSEGV` or `ended with status 3`."""
    if status is None:
        return "could not be ended"
    # A launcher or a shell passes a signal on as 128 + number.
    number = -status if status < 0 else status - 128 if 129 <= status <= 159 else 0
    return f"died of {_signal(number)}" if number else f"ended with status {status}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reason(ended: Ended, text: str) -> str:
    if ended.stopped:
        return ended.stopped
    if missing := re.search(r"error while loading shared libraries: (.+)", text):
        return f"lacks a library: {missing[1].strip()}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = f" (last line: {lines[-1][:120]!r})" if lines else ""
    if ended.status:
        return f"{describe_status(ended.status)} when asked for its tests{last}"
    return f"printed no list of tests: is it a GoogleTest program?{last}"


def list_tests(binary: Path, workdir: Path, environment: Environment, list_file: Path,
               timeout_s: float) -> tuple[str, ...]:
    """Every test of the program, disabled ones included, in its own order. Raises :class:`ListError`.

    `list_file` is written by the program, read and removed. A program that dies after it has printed
    its list has listed its tests: the run itself judges deaths. KeyboardInterrupt passes through.
    """
    collector = _Collector(time.monotonic() + timeout_s, timeout_s, bytearray())
    words = environment.command((str(binary), "--gtest_list_tests", f"--gtest_output=json:{list_file}"))
    list_file.unlink(missing_ok=True)
    try:
        ended = run_guarded(words, environment.variables(), workdir, collector)
        if ended.stopped == "interrupted":
            raise KeyboardInterrupt
        text = collector.text.decode("utf-8", errors="replace")
        names = () if ended.stopped else _parse_json(list_file) or parse_text(text)
    except NotStartedError as error:
        raise ListError(f"cannot be started: {error}") from None
    finally:
        list_file.unlink(missing_ok=True)
    if not names:
        raise ListError(_reason(ended, text))
    return names
