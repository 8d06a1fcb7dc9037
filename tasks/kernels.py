"""`doit kernels`: the kernels of the watched units, whether the provider holds them, and what they need of a GPU.

Reads files only: no program is run.
"""

from __future__ import annotations

import json as json_format
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.device_code import containments, object_images
from tasks.session import Session
from tasks.unit_code import UnitCode, read_unit_code

if TYPE_CHECKING:
    from tasks.binary.image import DeviceImage
    from tasks.binary.kernels import Kernel
    from tasks.survey import Survey

__all__ = ["UnitKernels", "complaints", "kernels", "list_kernels"]


@dataclass(frozen=True)
class UnitKernels:
    """One unit's kernels. `status` is ``contained``, ``missing``, ``ambiguous``, ``none`` or ``no provider``."""

    name: str
    object: str
    status: str
    evidence: str
    kernels: tuple[Kernel, ...]
    code: UnitCode


def _linked(provider: DeviceImage | None, images: Mapping[str, DeviceImage]) -> dict[tuple[str, str], Kernel]:
    """What the device link made of relocatable kernels, by architecture and name: it decides their shared memory."""
    from tasks.binary.image import RELOCATABLE_CODE
    from tasks.binary.kernels import kernels as kernels_of

    if provider is None or not any(c.section == RELOCATABLE_CODE for image in images.values()
                                   for c in image.containers):
        return {}
    return {(kernel.arch, kernel.name): kernel for kernel in kernels_of(provider, provider.device_linked)}


def list_kernels(session: Session, survey: Survey) -> list[UnitKernels]:
    """Every watched unit that has device code. Raises :class:`tasks.binary.fatbin.BadFatbin`."""
    from tasks.binary.image import device_image
    from tasks.binary.kernels import kernels as kernels_of

    images = object_images(survey)
    provider = device_image(Path(survey.provider)) if os.path.isfile(survey.provider) else None
    held = containments(provider, images) if provider is not None else {}
    linked = _linked(provider, images)
    observer = session.judged().observer
    found = []
    for name, image in images.items():
        unit = survey.units[name]
        listed = tuple(linked.get((kernel.arch, kernel.name), kernel) for kernel in kernels_of(image))
        code = read_unit_code(unit, session.state, observer.digest(unit.facts.object))
        status, evidence = ((held[name].status, held[name].evidence) if name in held
                            else ("no provider", f"{survey.provider} does not exist"))
        found.append(UnitKernels(name, unit.facts.object, status, evidence, listed, code))
    return found


def complaints(units: list[UnitKernels]) -> list[str]:
    """One line for each kernel that its own architecture cannot run."""
    from tasks.binary.limits import complaint, oversized

    return [f"{unit.name}: {complaint(kernel)}" for unit in units for kernel in oversized(unit.kernels)]


def kernels(session: Session, json: bool = False) -> None:
    """`kernels`: the table, the kernels that are too large, and what the numbers do not cover."""
    from tasks.report.kernels_table import as_document, print_table

    survey = session.survey(again=True)
    units = list_kernels(session, survey)
    if json:
        document = as_document(units, complaints(units), str(survey.location.ort_root),
                               str(survey.location.build_dir), survey.provider)
        session.document("kernels", json_format.dumps(document, indent=1))
    else:
        print_table(units, complaints(units), survey.provider)
