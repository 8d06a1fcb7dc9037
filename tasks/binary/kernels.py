"""The kernels of an image with what they need on a GPU. Only lists; compares and judges nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tasks.binary.cubin import read_cubin
from tasks.binary.fatbin import Container, payload
from tasks.binary.image import RELOCATABLE_CODE, DeviceImage
from tasks.binary.names import demangle
from tasks.binary.ptx import read_ptx
from tasks.binary.source import memory_source

__all__ = ["Kernel", "kernels"]


@dataclass(frozen=True)
class Kernel:
    """One kernel for one architecture (``sm_80``; ``compute_90`` is PTX: it leaves all but `shared` open).

    `registers` per thread; in bytes: `stack` per thread (spilled registers are in it), `shared` per block
    (static, with the 1024 that the system reserves since sm_90), `code`. `shared` is None for
    relocatable code: the device link decides it.
    """

    name: str
    arch: str
    registers: int | None
    stack: int | None
    shared: int | None
    code: int | None

    @cached_property
    def demangled(self) -> str:
        """The name as C++ writes it; the mangled one where no C++ runtime is installed."""
        return demangle(self.name)


def kernels(image: DeviceImage, containers: Iterable[Container] | None = None) -> list[Kernel]:
    """All kernels, by architecture and name, of an image or of some of its containers.

    Device functions are none. Where a device link made the code of relocatable containers, only its
    result is listed unless `containers` names others. Link-time-optimisation code names no kernels.
    Raises :class:`BadFatbin`.
    """
    if containers is None:
        linked = image.registered is not None and bool(image.device_linked)
        containers = [c for c in image.containers if not (linked and c.section == RELOCATABLE_CODE)]
    found: list[Kernel] = []
    with image.open() as source:
        for container in containers:
            for entry in container.entries:
                if entry.kind == "elf":
                    cubin = read_cubin(memory_source(image.path, payload(source, entry), f"cubin for {entry.arch}"))
                    found += [Kernel(f.name, entry.arch, f.registers, f.stack, f.shared, len(f.code))
                              for f in cubin.functions if f.entry]
                elif entry.kind == "ptx":
                    found += [Kernel(f.name, entry.arch, None, None, f.shared, None)
                              for f in read_ptx(payload(source, entry))[0] if f.entry]
    return sorted(found, key=lambda kernel: (kernel.arch, kernel.name))
