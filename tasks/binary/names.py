"""Symbol names of device and host code: what varies between two compiles of one source, and demangling."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

__all__ = ["demangle", "short", "stable", "stable_bytes"]

# nvcc puts a hash of the source's path into names of internal linkage, older ones a temporary file's name with a
# process id: `_ZN33_GLOBAL__N__704178c0_4_k_cu_table6hiddenEPf`, `__nv_static_22__704178c0_4_k_cu_table__Z2stPi`.
# `table` is the unit's first global name; a unit without one has a checksum there in relocatable code, and perhaps the
# compiler's process id: `__nv_static_39__b4d19867_12_fmha_sm80_cu_4cd3d5c3_9298_st`.
_VARYING = re.compile(
    rb"(?P<total>\d{0,4})"
    rb"(?P<lead>_GLOBAL__N__|_INTERNAL_|__fatbinwrap_|RegisterLinkedBinary_|__nv_static_(?P<static>\d{1,4})__)"
    rb"[0-9a-f]{8}(?=_(?P<size>\d{1,4})_)"
    rb"|(?<=tmpxft_)[0-9a-f]{8}_[0-9a-f]{8}|(?<=_cpp1_ii_)[0-9a-f]{8}|(?<=NV_MODULE_ID_)[0-9a-f]{8}"
)
# What stands in it, and what stands before it.
_LEADS = (b"_GLOBAL__N__", b"_INTERNAL_", b"__fatbinwrap_", b"RegisterLinkedBinary_", b"__nv_static_")
_BEFORE = (b"tmpxft_", b"_cpp1_ii_", b"NV_MODULE_ID_")
_CHECKSUM = re.compile(rb"_[0-9a-f]{8}(?:_(?P<id>\d+))?")
_STATIC = re.compile(r"__nv_static_(\d+)_")
_LONGEST = 16384  # characters; the deepest CUTLASS kernel of the published provider has 3,000


def stable_bytes(data: bytes) -> bytes:
    """`data` with every varying part of a name overwritten by as many zeros; a process id becomes one zero."""
    pieces: list[bytes] = []
    at = 0
    for first, last in sorted(_places(data)):
        found = next(filter(None, (_VARYING.match(data, place) for place in range(max(first, at), last + 1))), None)
        if found is None:
            continue
        pieces.append(data[at:found.start()])
        at = found.end()
        if not found["lead"]:
            pieces.append(b"0" * len(found[0]))
            continue
        # `_<size>_<file name of that size>`, and perhaps `_<checksum>_<process id>`.
        named = at + len(found["size"]) + 2 + int(found["size"])
        checksum = _CHECKSUM.match(data, named)
        if checksum is None:
            pieces.append(found["total"] + found["lead"] + b"00000000")
            continue
        at = _id_end(found, checksum)
        pieces.append(_without_id(found, checksum, data[found.end():named], at))
    return b"".join((*pieces, data[at:])) if pieces else data


def _places(data: bytes) -> Iterator[tuple[int, int]]:
    """(first, last) offset at which the pattern may match, for each mark.

    A search for eight fixed strings is a hundred times faster than the pattern, which tries every byte.
    """
    for mark in (*_LEADS, *_BEFORE):
        at = data.find(mark)
        while at >= 0:
            if mark in _BEFORE:
                yield at + len(mark), at + len(mark)
            else:
                # The whole name's length, of up to four digits, may stand before it.
                before = data[max(at - 4, 0):at]
                yield at - (len(before) - len(before.rstrip(b"0123456789"))), at
            at = data.find(mark, at + 1)


def _id_end(found: re.Match[bytes], checksum: re.Match[bytes]) -> int:
    """Where checksum and process id end. A digit of the next part may follow in a mangled name: its length counts."""
    if checksum["id"] is None:
        return checksum.end()
    end = checksum.end()
    if found["static"]:
        end = found.end() - len("_00000000") + int(found["static"])
    elif found["total"]:
        end = found.start("lead") + int(found["total"])
    return min(max(end, checksum.start("id")), checksum.end())


def _without_id(found: re.Match[bytes], checksum: re.Match[bytes], named: bytes, end: int) -> bytes:
    """The name's part up to `end` with zeros, its length corrected so that it still demangles."""
    has_id = checksum["id"] is not None
    shorter = end - checksum.start("id") - 1 if has_id else 0
    total = b"%d" % (int(found["total"]) - shorter) if found["total"] else b""
    lead = b"__nv_static_%d__" % (int(found["static"]) - shorter) if found["static"] else found["lead"]
    return total + lead + b"00000000" + named + b"_00000000" + (b"_0" if has_id else b"")


def stable(name: str) -> str:
    """The name with its varying part overwritten by zeros; it still demangles."""
    return stable_bytes(name.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


@cache
def _demangler() -> Callable[[str], str] | None:
    """The C++ runtime's own demangler: no program is started. None where there is no libstdc++."""
    import ctypes

    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
        function = runtime.__cxa_demangle
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    free.argtypes = [ctypes.c_void_p]

    def demangled(name: str) -> str:
        status = ctypes.c_int()
        address = function(name.encode("utf-8", "surrogateescape"), None, None, ctypes.byref(status))
        if not address:
            return name
        try:
            return ctypes.string_at(address).decode("utf-8", "replace")
        finally:
            free(address)

    return demangled


def demangle(name: str) -> str:
    """The name as C++ writes it; the mangled one where it is none or no C++ runtime is installed."""
    static = _STATIC.match(name)
    if static:
        # `__nv_static_<length>_<id>_<mangled>`
        name = name[static.end() + int(static[1]) + 1:] or name
    function = _demangler()
    if function is None or not name.startswith("_Z") or len(name) > _LONGEST:
        return name
    return function(name)


def short(name: str) -> str:
    """The demangled name without the return type and parameters that follow from its template arguments."""
    text = demangle(name)
    depth = 0
    for i in reversed(range(len(text) if text.endswith(")") else 0)):
        depth += (text[i] == ")") - (text[i] == "(")
        if depth == 0:
            text = text[:i]
            break
    return text.removeprefix("void ").replace(" >", ">")
