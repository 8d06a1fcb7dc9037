"""Reads a test process's output as it comes: which test runs, which attention path it dispatched, what broke.

Standard output and error arrive in one pipe, so gtest's `[ RUN ]` marks order everything else. Lines may
be torn, glued together or interleaved: marks and phrases are looked for anywhere, whole or in two parts.
The phrases are ONNX Runtime's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

__all__ = ["OutputReader", "Trace", "Trouble"]

_PENDING_LIMIT = 1 << 20
_OVERLAP = 4096
_TEXT_LIMIT = 8192
_LIST_LIMIT = 100

_MARK = re.compile(
    rb"\[ RUN      \] (?P<run>\S+)"
    rb"|\[(?P<how>       OK |  FAILED  |  SKIPPED )\] (?P<ended>[^\s,]+)(?:, where [^\n]*?)? \(\d+ ms\)"
    rb"|\[  FAILED  \] (?P<suite>[^\s:]+): (?:SetUpTestSuite or TearDown|SetUpTestCase or TearDown)"
    rb"|\[==========\] \d+ tests? from \d+ test (?:suites?|cases?) (?P<finished>ran)\."
    rb"|(?P<head>Attention: using )(?:(?P<path>[A-Za-z][A-Za-z0-9 _-]{0,60}?) ?\()?"
    rb"|(?P<tail>Flash Attention|Memory Efficient Attention|Unfused Attention|unified unfused path) \("
    rb"|SdpaKernel=(?P<sdpa>[A-Z][A-Z0-9_]*)"
    rb"|(?:CUDA failure |CUDA error )(?P<cuda>\w+)[^\n]{0,200}"
    rb"|(?P<phrase>no CUDA-capable device is detected|CUDA driver version is insufficient"
    rb"|no kernel image is available for execution|Failed to allocate memory for requested buffer)"
    rb"|(?P<library>: cannot open shared object file)"
)
# Every mark holds one of these: finding them first is 50 times as fast on logs that hold none.
_HINTS = (b"[ RUN", b" ms)", b"SetUpTest", b" ran.", b"Attention: using ", b"Attention (", b"unfused path (",
          b"SdpaKernel=", b"CUDA failure ", b"CUDA error ", b"no CUDA-capable", b"CUDA driver version",
          b"no kernel image", b"Failed to allocate", b": cannot open shared")
_RESULTS = {b"       OK ": "passed", b"  FAILED  ": "failed", b"  SKIPPED ": "skipped"}
_ONNX_PATHS = {"flash attention": "flash", "memory efficient attention": "mea",
               "unfused attention": "unfused", "unified unfused path": "unfused"}
_SDPA_PATHS = {"EFFICIENT_ATTENTION": "mea", "FLASH_ATTENTION": "flash", "MATH": "unfused"}
_LOG_LINE = re.compile(r"\x1b\[[0-9;]*m|^\d{4}-\d\d-\d\d [^\n]*\[[A-Z]:[^\n]*\n?", re.M)


@dataclass(frozen=True)
class Trouble:
    """A CUDA error in the output: a number or name as printed, the text, and the test it fell into."""

    code: str
    text: str
    test: str | None


@dataclass
class Trace:
    """What was seen of one test: its dispatches in order of first appearance, how it ended."""

    paths: list[str] = field(default_factory=list)
    result: str | None = None
    skip_reason: str = ""


class OutputReader:
    """Feed it bytes; ask it at any time. Only tests in `known` count, so no test can print another's mark."""

    def __init__(self, known: Collection[str], on_change: Callable[[], None] | None = None) -> None:
        self._known = frozenset(known)
        self._on_change = on_change
        self._pending = b""
        self._text = bytearray()
        self._torn = False
        self.tests: dict[str, Trace] = {}
        self.running: str | None = None
        self.last: str | None = None
        self.changed = time.monotonic()
        self.finished = False
        self.failed_suites: list[str] = []
        self.troubles: list[Trouble] = []
        self.missing_libraries: list[str] = []

    def feed(self, data: bytes) -> None:
        """Take the next piece; an unfinished line waits for its end."""
        block = self._pending + data
        cut = block.rfind(b"\n") + 1
        if len(block) - cut > _PENDING_LIMIT:
            cut = len(block) - _OVERLAP
        self._pending = block[cut:]
        self._scan(block[:cut])

    def close(self) -> None:
        """The output has ended: the last line counts as it is."""
        self._scan(self._pending)
        self._pending = b""

    def text(self) -> str:
        """The end of what the running test has printed so far."""
        return self._text.decode("utf-8", errors="replace")

    def _scan(self, block: bytes) -> None:
        position = 0
        for match in _marks(block):
            self._keep(block, position, match.start())
            position = match.start()
            self._note(match)
        self._keep(block, position, len(block))

    def _keep(self, block: bytes, start: int, end: int) -> None:
        if self.running is not None and end > start:
            self._text += block[max(start, end - _TEXT_LIMIT):end]
            if len(self._text) > 2 * _TEXT_LIMIT:
                del self._text[:-_TEXT_LIMIT]

    def _note(self, match: re.Match[bytes]) -> None:
        kind = match.lastgroup
        if match["head"] is not None:
            self._dispatch(_onnx(match["path"])) if match["path"] else self._tear()
        elif kind == "tail":
            if self._torn:
                self._dispatch(_onnx(match["tail"]))
        elif kind == "sdpa":
            name = match["sdpa"].decode()
            self._dispatch(_SDPA_PATHS.get(name, name.lower().removesuffix("_attention")))
        elif kind == "run":
            self._begin(self._resolve(match["run"]))
        elif match["ended"] is not None:
            self._end(self._resolve(match["ended"]), _RESULTS[match["how"]])
        elif kind == "suite":
            self.failed_suites.append(_decode(match["suite"]))
        elif kind == "finished":
            self.finished = True
        elif kind == "library":
            words = match.string[max(0, match.start() - 1000):match.start()].split()
            _add(self.missing_libraries, _decode(words[-1]) if words else "?")
        elif kind in ("cuda", "phrase") and len(self.troubles) < _LIST_LIMIT:
            text = _decode(match[0]).partition(" ; ")[0].strip()
            self.troubles.append(Trouble(_decode(match[kind]), text, self.running))

    def _resolve(self, raw: bytes) -> str | None:
        name = _decode(raw)
        if name in self._known:
            return name
        # Another thread's text may be glued to the name.
        return max((known for known in self._known if name.startswith(known)), key=len, default=None)

    def _begin(self, name: str | None) -> None:
        if name is None:
            return
        self.running = name
        self.tests[name] = Trace()
        self._text.clear()
        self._torn = False
        self._touch()

    def _end(self, name: str | None, result: str) -> None:
        if name is None or name != self.running:
            return
        trace = self.tests[name]
        trace.result = result
        if result == "skipped":
            trace.skip_reason = _skip_reason(self.text())
        self.last, self.running, self._torn = name, None, False
        self._text.clear()
        self._touch()

    def _touch(self) -> None:
        self.changed = time.monotonic()
        if self._on_change is not None:
            self._on_change()

    def _tear(self) -> None:
        self._torn = True

    def _dispatch(self, path: str) -> None:
        self._torn = False
        if self.running is not None:
            _add(self.tests[self.running].paths, path)


def _marks(block: bytes) -> Iterator[re.Match[bytes]]:
    lines: set[tuple[int, int]] = set()
    for hint in _HINTS:
        position = block.find(hint)
        while position >= 0:
            end = block.find(b"\n", position)
            end = len(block) if end < 0 else end
            lines.add((block.rfind(b"\n", 0, position) + 1, end))
            position = block.find(hint, end)
    for start, end in sorted(lines):
        yield from _MARK.finditer(block, start, end)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _add(values: list[str], value: str) -> None:
    if value not in values and len(values) < _LIST_LIMIT:
        values.append(value)


def _onnx(raw: bytes) -> str:
    phrase = _decode(raw).strip().lower()
    return _ONNX_PATHS.get(phrase, phrase)


def _skip_reason(text: str) -> str:
    """What stands behind gtest's `file:line: Skipped`, without log lines of other origin."""
    _, found, reason = text.rpartition(": Skipped\n")
    return " ".join(_LOG_LINE.sub("", reason).split())[:300] if found else ""
