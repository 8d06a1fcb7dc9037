"""PTX text without what varies or does not matter: its kernels, functions and the rest. Compares nothing.

Syntax: NVIDIA, "PTX ISA" 9.0, chapters 4, 5 and 11 (directives `.file`, `.loc`, `.section`, `.entry`,
`.func`), one statement a line as nvcc writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tasks.binary.names import stable_bytes

__all__ = ["PtxFunction", "read_ptx"]

# With -lineinfo `.file` holds the source's mtime and `.loc` the lines that a comment moves.
_DROPPED = re.compile(rb"\s*(?:\.file\b|\.loc\b|//|\$L__(?:tmp|func_begin|func_end)\d+:|$)")
_HEAD = re.compile(rb"(?:\.(?:visible|extern|weak|common)\s+)*\.(entry|func)\b(?:\s*\([^)]*\))?\s*([\w$.%]+)")
# Numbered through the file: a new kernel shifts those of the kernels after it. Patterns here begin with a fixed string
# where they can, which the regular expression engine looks for much faster than for an alternative or a look behind.
_NUMBERED = ((re.compile(rb"\$L__BB\d+(?=_)"), b"$L__BB"), (re.compile(rb"__local_depot\d+"), b"__local_depot"))


# `.shared .align 4 .b8 s[256];`; an `.extern` one has no size: it is dynamic.
_SHARED = re.compile(rb"\.shared(?<!\.extern \.shared)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
                     rb"\.[busf](?P<bits>8|16|32|64)\s+(?P<name>[\w$.%]+)(?:\[(?P<count>\d+)\])?;")


@dataclass(frozen=True)
class PtxFunction:
    """A kernel (`entry`) or device function by its mangled name, with its normalised text.

    `shared` is the static shared memory in bytes that it names itself; functions that it calls may name more.
    """

    name: str
    entry: bool
    text: bytes
    shared: int = 0


def read_ptx(payload: bytes) -> tuple[list[PtxFunction], bytes]:
    """(functions with a body, all other text), without comments, line information and debug sections."""
    functions: list[PtxFunction] = []
    rest: list[bytes] = []
    block: list[bytes] = []  # lines since the last statement at the top level ended
    depth = 0
    for raw in stable_bytes(payload.rstrip(b"\0")).split(b"\n"):
        if _DROPPED.match(raw):
            continue
        line = raw.rstrip()
        block.append(line)
        depth += line.count(b"{") - line.count(b"}")
        if depth > 0 or not line.endswith((b"}", b";")):
            continue
        depth = 0
        text = _unnumbered(b"\n".join(block))
        head = _HEAD.search(text) if b"{" in text and not block[0].startswith(b".section") else None
        if head:
            rest.append(text[:head.start()])
            functions.append(PtxFunction(head[2].decode("ascii", "backslashreplace"), head[1] == b"entry",
                                         text[head.start():]))
        elif not block[0].lstrip().startswith(b".section"):
            rest.append(text)
        block = []
    outside = b"\n".join([*rest, *map(_unnumbered, block)])
    return [replace(function, shared=_shared(function.text, outside)) for function in functions], outside


def _unnumbered(text: bytes) -> bytes:
    for pattern, name in _NUMBERED:
        text = pattern.sub(name, text)
    return text


def _shared(text: bytes, outside: bytes) -> int:
    """Bytes of the shared variables in a function's text, and of those outside that it names, each aligned."""
    total = 0
    named = [found for found in _SHARED.finditer(outside) if found["name"] in text]
    for found in (*_SHARED.finditer(text), *named):
        alignment = int(found["align"] or 1)
        total += -total % alignment + int(found["bits"]) // 8 * int(found["count"] or 1)
    return total
