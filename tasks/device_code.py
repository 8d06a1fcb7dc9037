"""What the device code says beside the receipts: whether the provider holds that of the objects, and for which GPUs.

Joins the reading of binaries with the units of a survey; decides nothing about receipts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.evidence.chain import Link, Verdict
from tasks.unit_code import UnitCode, read_unit_code

if TYPE_CHECKING:
    from tasks.binary.containment import Containment
    from tasks.binary.image import DeviceImage
    from tasks.evidence.snapshot import Observer
    from tasks.guarded_build import Judged
    from tasks.survey import Survey, WatchedUnit

__all__ = ["compiled_archs", "confirm_link", "containments", "contradicts_link", "has_device_code", "object_images"]


def has_device_code(unit: WatchedUnit) -> bool:
    """Whether nvcc compiles the unit."""
    return unit.line.language == "CUDA"


def object_images(survey: Survey) -> dict[str, DeviceImage]:
    """The device code of every watched unit's object, as far as there is one. Raises :class:`BadFatbin`."""
    from tasks.binary.image import device_image

    return {name: device_image(Path(unit.facts.object)) for name, unit in survey.units.items()
            if has_device_code(unit) and os.path.isfile(unit.facts.object)}


def containments(provider: DeviceImage, images: Mapping[str, DeviceImage]) -> dict[str, Containment]:
    """For each unit whether the provider holds its object's device code. Raises :class:`BadFatbin`."""
    from tasks.binary.containment import contains

    return contains(provider, images) if images else {}


def _codes(survey: Survey, observer: Observer, state: Path) -> dict[str, UnitCode]:
    return {name: read_unit_code(unit, state, observer.digest(unit.facts.object))
            for name, unit in survey.units.items()}


def contradicts_link(survey: Survey, observer: Observer, state: Path) -> bool:
    """Whether the provider cannot have been linked from the objects as they are, and from these alone.

    True too where device code cannot be read. What the linker's times prove counts no more then: an old
    device link may be younger than the objects that it does not hold.
    """
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.image import device_image

    try:
        provider = device_image(Path(survey.provider))
        found = containments(provider, object_images(survey))
        left = _former_code(provider, _codes(survey, observer, state))
    except (BadFatbin, OSError):
        return True
    return bool(left) or any(held.status == "missing" for held in found.values())


def confirm_link(link: Link, survey: Survey, judged: Judged, state: Path, remedy: str) -> Link:
    """Link 3 with what lies in the provider: the receipt alone is not enough where there is device code.

    Missing code of a proved object disproves the provider. Code that cannot be told apart (two units
    with the same kernels) is said; there the receipt decides. Code from before a recompile that still
    lies there beside the new leaves open which of the two runs.
    """
    if not any(has_device_code(unit) for unit in survey.units.values()):
        return link.with_evidence("no unit has device code: the receipt alone decides")
    if not os.path.isfile(survey.provider):
        return link
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.image import device_image

    try:
        provider = device_image(Path(survey.provider))
        found = containments(provider, object_images(survey))
        left = _former_code(provider, _codes(survey, judged.observer, state))
    except (BadFatbin, OSError) as error:
        word: Verdict = "unproven" if link.verdict == "fresh" else link.verdict
        return Link(3, word, (*link.evidence, f"device code cannot be read: {str(error).splitlines()[0]}"), remedy)
    return _with_device_code(link, found, left, judged, remedy)


def _former_code(provider: DeviceImage, codes: Mapping[str, UnitCode]) -> list[str]:
    """Units whose device code from before their last recompile lies in the provider, and is no unit's now."""
    from tasks.binary.containment import former_left

    now = {container for code in codes.values() for container in code.containers}
    return [name for name, code in codes.items()
            if code.state == "changed" and code.former and former_left(provider, set(code.former) - now)]


def _with_device_code(link: Link, found: Mapping[str, Containment], left: list[str], judged: Judged,
                      remedy: str) -> Link:
    missing = [name for name, held in found.items() if held.status == "missing"]
    bad = [f"{name}: its device code is not in the provider: {found[name].evidence}" for name in missing]
    bad += [f"{name}: its device code from before the last recompile lies in the provider" for name in left]
    good = [f"{name}: ambiguous: {held.evidence}" for name, held in found.items() if held.status == "ambiguous"]
    if held := sum(held.status == "contained" for held in found.values()):
        good.append(f"the device code of {held} objects lies in the provider")
    if not bad:
        return link.with_evidence(*good)
    verdict: Verdict = "unproven" if link.verdict == "fresh" else link.verdict
    if any(judged.units[name].verdict == "fresh" for name in missing):
        verdict = "stale"
    return Link(3, verdict, (*bad, *link.evidence, *good), remedy)


def compiled_archs(survey: Survey) -> dict[str, tuple[str, ...]]:
    """Architectures that each watched unit's object holds code for, such as ``sm_80`` and ``compute_90``."""
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.image import device_image

    found = {}
    for name, unit in survey.units.items():
        if has_device_code(unit):
            try:
                found[name] = device_image(Path(unit.facts.object)).archs
            except (BadFatbin, OSError):
                continue
    return found
