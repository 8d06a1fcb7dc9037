"""The GPU: what it is, which compiled code it can run, and what the test process said about not having one.

`no-gpu` is only ever concluded from the test process's own output; the probe here names the GPU of a run
that used one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.gtest.environment import Environment
from tasks.gtest.process import NotStartedError, run_guarded
from tasks.gtest.stream import Trouble

__all__ = ["Device", "code_for", "gpu_trouble", "is_named", "probe", "says_no_gpu"]

_DRIVER = Path("/proc/driver/nvidia/version")
_PROBE_TIMEOUT_S = 20.0

# cudaError_t (driver_types.h of CUDA 13) as numbers, and the names and texts that they are printed as.
_NO_GPU = {"100", "38", "cudaErrorNoDevice", "no CUDA-capable device is detected"}
_OLD_DRIVER = {"35", "cudaErrorInsufficientDriver", "CUDA driver version is insufficient"}
_UNUSABLE = {
    "2", "cudaErrorMemoryAllocation", "Failed to allocate memory for requested buffer",
    "46", "cudaErrorDevicesUnavailable",
    "209", "cudaErrorNoKernelImageForDevice", "no kernel image is available for execution",
    "214", "cudaErrorECCUncorrectable",
    "222", "cudaErrorUnsupportedPtxVersion",
    "802", "cudaErrorSystemNotReady",
    "803", "cudaErrorSystemDriverMismatch",
    "804", "cudaErrorCompatNotSupportedOnDevice",
}
_NO_GPU_REASON = re.compile(
    r"\bno (?:usable )?(?:CUDA|GPU|NVIDIA)\b"
    r"|(?:CUDA|GPU)\b.{0,40}\b(?:unavailable|not available|not found|missing)", re.I)

# Device 0 of the CUDA enumeration, as the test process sees it: it obeys CUDA_VISIBLE_DEVICES.
_PROBE = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
device, number = ctypes.c_int(), ctypes.c_int()
uuid, name = (ctypes.c_ubyte * 16)(), ctypes.create_string_buffer(256)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
cuda.cuDeviceGetName(name, 256, device)
getattr(cuda, "cuDeviceGetUuid_v2", cuda.cuDeviceGetUuid)(uuid, device)
def attribute(which):
    assert cuda.cuDeviceGetAttribute(ctypes.byref(number), which, device) == 0
    return number.value
capability = attribute(75) * 10 + attribute(76)
text = bytes(uuid).hex()
free, total, context = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_void_p()
if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0:
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    cuda.cuDevicePrimaryCtxRelease_v2(device)
print("device", capability, free.value >> 20, total.value >> 20,
      "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])), name.value.decode())
"""


@dataclass(frozen=True)
class Device:
    """One GPU. `capability` is a number such as 90; memory in MB, 0 where unknown."""

    name: str
    uuid: str
    capability: int
    free_mb: int
    total_mb: int


@dataclass
class _Collector:
    deadline: float
    text: bytearray

    def feed(self, data: bytes) -> None:
        self.text += data[:max(0, 65536 - len(self.text))]

    def over(self, now: float) -> str | None:
        return "took too long" if now > self.deadline else None


def probe(environment: Environment, workdir: Path) -> Device | None:
    """The GPU that a process of this environment gets, or None where it cannot be told."""
    import time

    collector = _Collector(time.monotonic() + _PROBE_TIMEOUT_S, bytearray())
    python = "python3" if environment.launcher else sys.executable
    words = environment.command((python, "-c", _PROBE))
    try:
        ended = run_guarded(words, environment.variables(), workdir, collector)
    except NotStartedError:
        return None
    if ended.stopped == "interrupted":
        raise KeyboardInterrupt
    text = collector.text.decode("utf-8", errors="replace")
    match = re.search(r"^device (\d+) (\d+) (\d+) (GPU-\S+) (.+)$", text, re.M)
    if match is None:
        return None
    return Device(match[5].strip(), match[4], int(match[1]), int(match[2]), int(match[3]))


def gpu_trouble(troubles: Iterable[Trouble], harmless: Sequence[str]) -> tuple[str, str] | None:
    """(`no-gpu` or `gpu-unusable`, the line that says so), or None.

    `harmless` are tests that passed and dispatched: an error that they provoked is no trouble.
    """
    seen = [trouble for trouble in troubles if trouble.test not in harmless]
    for trouble in seen:
        if trouble.code in _NO_GPU or (trouble.code in _OLD_DRIVER and not _DRIVER.exists()):
            return "no-gpu", trouble.text
    for trouble in seen:
        if trouble.code in _OLD_DRIVER or trouble.code in _UNUSABLE:
            return "gpu-unusable", trouble.text
    return None


def says_no_gpu(reason: str) -> bool:
    """Whether a test's reason for skipping is that there is no GPU."""
    return _NO_GPU_REASON.search(reason) is not None


def code_for(archs: Iterable[str], capability: int) -> str | None:
    """The compiled code that such a GPU runs: its best cubin, else PTX it can compile, else None.

    A cubin runs on the same major capability and an equal or newer minor one; PTX on any newer. An `a`
    behind the number means that very capability, an `f` its family (CUDA C++ Programming Guide, 5.1).
    """
    parsed = [(match[1] == "compute", int(match[2]), match[3], name) for name in archs
              if (match := re.fullmatch(r"(sm|compute)_(\d+)([af]?)", name))]
    fitting = [
        (not is_ptx, number, name) for is_ptx, number, suffix, name in parsed
        if number <= capability and (suffix != "a" or number == capability)
        and (number // 10 == capability // 10 or (is_ptx and not suffix))
    ]
    return max(fitting)[2] if fitting else None


def is_named(arch: str, capability: int) -> bool:
    """Whether a user's word (``90``, ``9.0``, ``sm_90a``, ``compute_90``) means this capability."""
    match = re.fullmatch(r"(?:sm_|compute_)?(\d+)(?:\.(\d))?[af]?", arch.strip())
    return match is not None and int(match[1] + (match[2] or "")) == capability
