"""How much shared memory a block may have on which architecture, and which kernels ask for more. Reads no file.

Source: NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", row "Maximum
amount of shared memory per thread block", and "Shared Memory" of each capability: more than 48 KB must be dynamic
and opted in to with `cudaFuncSetAttribute`. Since sm_90 a cubin's size includes 1 KB that the system reserves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tasks.binary.kernels import Kernel
from tasks.binary.names import short

__all__ = ["COVERS", "block_limit", "complaint", "oversized", "static_limit"]

_KB = 1024
_STATIC = 48 * _KB
_RESERVED = _KB
_BLOCK = {50: 48, 52: 48, 53: 48, 60: 48, 61: 48, 62: 48, 70: 96, 72: 96, 75: 64, 80: 163, 86: 99, 87: 163, 88: 99,
          89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99}

COVERS = ("static shared memory as compiled is covered; dynamic shared memory is asked for at each launch"
          " and known at run time only")


def _capability(arch: str) -> tuple[str, int] | None:
    match = re.fullmatch(r"(sm|compute)_(\d+)[af]?", arch)
    return (match[1], int(match[2])) if match else None


def static_limit(arch: str) -> int | None:
    """Bytes of static shared memory that a kernel's code for `arch` may show; None for what is no architecture."""
    parsed = _capability(arch)
    if parsed is None:
        return None
    return _STATIC + (_RESERVED if parsed[0] == "sm" and parsed[1] >= 90 else 0)


def block_limit(arch: str) -> int | None:
    """Bytes of static and dynamic shared memory together that a block may have there; None where it is not known."""
    parsed = _capability(arch)
    return _BLOCK[parsed[1]] * _KB if parsed is not None and parsed[1] in _BLOCK else None


def oversized(kernels: Iterable[Kernel]) -> list[Kernel]:
    """The kernels that no GPU of their architecture can run, since their static shared memory is too large."""
    return [kernel for kernel in kernels if kernel.shared is not None
            and (limit := static_limit(kernel.arch)) is not None and kernel.shared > limit]


def complaint(kernel: Kernel) -> str:
    """What is wrong with an oversized kernel, in one line."""
    return (f"{short(kernel.name)} has {kernel.shared} bytes of static shared memory,"
            f" {kernel.arch} allows {static_limit(kernel.arch)}: it cannot run there")
