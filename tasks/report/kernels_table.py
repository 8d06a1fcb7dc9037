"""The kernels as a table and as a JSON document. A pipe gets one line a kernel, a terminal what fits its width."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tasks.binary.limits import COVERS, block_limit, oversized, static_limit
from tasks.binary.names import short
from tasks.report.wrap import fitted_lines

if TYPE_CHECKING:
    from tasks.binary.kernels import Kernel
    from tasks.kernels import UnitKernels

__all__ = ["as_document", "plain_lines", "print_table", "terminal_lines"]


def _archs(units: Iterable[UnitKernels]) -> list[str]:
    return sorted({kernel.arch for unit in units for kernel in unit.kernels})


def as_document(units: Sequence[UnitKernels], complaints: Sequence[str], ort_root: str, build_dir: str,
                provider: str) -> dict[str, Any]:
    """The JSON document. Sizes in bytes; null where the code (PTX, relocatable code) leaves a number open."""
    return {
        "schema": 1, "task": "kernels", "ort_root": ort_root, "build_dir": build_dir, "provider": provider,
        "units": [{
            "name": unit.name, "object": unit.object, "status": unit.status, "evidence": unit.evidence,
            "last_compile": unit.code.text, "kernels": [{
                "name": kernel.name, "demangled": kernel.demangled, "arch": kernel.arch,
                "registers": kernel.registers, "stack": kernel.stack, "shared": kernel.shared, "code": kernel.code,
                "changed": kernel.name in unit.code.kernels, "too_large": bool(oversized([kernel]))}
                for kernel in unit.kernels]} for unit in units],
        "limits": {arch: {"static": static_limit(arch), "block": block_limit(arch)} for arch in _archs(units)},
        "too_large": list(complaints), "covers": COVERS,
    }


def _numbers(kernel: Kernel) -> tuple[str, ...]:
    return tuple("-" if value is None else str(value)
                 for value in (kernel.registers, kernel.stack, kernel.shared, kernel.code))


def _note(unit: UnitKernels, kernel: Kernel) -> str:
    notes = ["too large"] if oversized([kernel]) else []
    return ", ".join([*notes, *(["changed"] if kernel.name in unit.code.kernels else [])])


def _title(unit: UnitKernels) -> str:
    last = f"; last compile: {unit.code.text}" if unit.code.text else ""
    return f"{unit.name}: {unit.status}: {unit.evidence}{last}"


def _footer(units: Sequence[UnitKernels], complaints: Sequence[str]) -> list[str]:
    limits = [f"{arch} {static // 1024} KB static" + (f", {block // 1024} KB in all" if block else "")
              for arch in _archs(units) if (static := static_limit(arch)) is not None
              for block in (block_limit(arch),)]
    return [*complaints, f"shared memory a block may have: {'; '.join(limits)}" if limits else "no kernels",
            f"  ({COVERS})"]


def plain_lines(units: Sequence[UnitKernels], complaints: Sequence[str], provider: str) -> list[str]:
    """One line a kernel, by unit and architecture. Sizes in bytes."""
    lines = [f"provider  {provider}", f"{'':10}{'registers':>9} {'stack':>6} {'shared':>7} {'code':>8}  kernel"]
    for unit in units:
        lines.append(_title(unit))
        for kernel in unit.kernels:
            registers, stack, shared, code = _numbers(kernel)
            note = _note(unit, kernel)
            lines.append(f"  {kernel.arch:<11}{registers:>6} {stack:>6} {shared:>7} {code:>8}  {short(kernel.name)}"
                         + (f"  ({note})" if note else ""))
    return [*lines, *_footer(units, complaints)]


def terminal_lines(units: Sequence[UnitKernels], complaints: Sequence[str]) -> list[str]:
    """A kernel's name, which is longer than what a row leaves for it, above its rows for each architecture."""
    lines = [f"{'':15}{'registers':>9} {'stack':>6} {'shared':>7} {'code':>8}"]
    for unit in units:
        lines.append(_title(unit))
        for name in dict.fromkeys(kernel.name for kernel in unit.kernels):
            lines.append(f"  {short(name)}")
            for kernel in unit.kernels:
                if kernel.name == name:
                    registers, stack, shared, code = _numbers(kernel)
                    lines.append(f"    {kernel.arch:<11}{registers:>9} {stack:>6} {shared:>7} {code:>8}"
                                 f"  {_note(unit, kernel)}".rstrip())
    return [*lines, *_footer(units, complaints)]


def print_table(units: Sequence[UnitKernels], complaints: Sequence[str], provider: str) -> None:
    """Print the table to standard output."""
    lines = terminal_lines(units, complaints) if sys.stdout.isatty() else plain_lines(units, complaints, provider)
    print(fitted_lines(lines, sys.stdout), flush=True)
