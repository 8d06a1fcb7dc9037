"""Symbol names of device and host code: what varies between two compiles of one source, and demangling."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

__all__ = ["demangle", "short", "stable", "stable_bytes"]

# nvcc puts a hash of the source's path into names of internal linkage, older ones a temporary file's name with a
# process id: `_ZN33_GLOBAL__N__704178c0_4_k_cu_table6hiddenEPf`, `__nv_static_22__704178c0_4_k_cu_table__Z2stPi`.
_VARYING = re.compile(
    rb"(?<=_GLOBAL__N__)[0-9a-f]{8}(?=_\d+_)|(?<=_INTERNAL_)[0-9a-f]{8}(?=_\d+_)|(?<=__fatbinwrap_)[0-9a-f]{8}(?=_\d+_)"
    rb"|(?<=RegisterLinkedBinary_)[0-9a-f]{8}(?=_\d+_)|(?<=__nv_static_\d__)[0-9a-f]{8}(?=_\d+_)"
    rb"|(?<=__nv_static_\d\d__)[0-9a-f]{8}(?=_\d+_)|(?<=__nv_static_\d\d\d__)[0-9a-f]{8}(?=_\d+_)"
    rb"|(?<=tmpxft_)[0-9a-f]{8}_[0-9a-f]{8}|(?<=_cpp1_ii_)[0-9a-f]{8}|(?<=NV_MODULE_ID_)[0-9a-f]{8}"
)
_STATIC = re.compile(r"__nv_static_(\d+)_")
_LONGEST = 16384  # characters; the deepest CUTLASS kernel of the published provider has 3,000


def stable_bytes(data: bytes) -> bytes:
    """`data` with every varying part of a name overwritten by as many zeros."""
    return _VARYING.sub(lambda found: b"0" * len(found[0]), data)


def stable(name: str) -> str:
    """The name with its varying part overwritten by as many zeros."""
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
