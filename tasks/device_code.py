"""What the device code says beside the receipts: whether the provider holds that of the objects, and for which GPUs.

Joins the reading of binaries with the units of a survey; decides nothing about receipts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
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
        left = _former_code(provider, survey, _codes(survey, observer, state))
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
        left = _former_code(provider, survey, _codes(survey, judged.observer, state))
    except (BadFatbin, OSError) as error:
        word: Verdict = "unproven" if link.verdict == "fresh" else link.verdict
        return Link(3, word, (*link.evidence, f"device code cannot be read: {str(error).splitlines()[0]}"), remedy)
    return _with_device_code(link, found, left, judged, remedy)


def _former_code(provider: DeviceImage, survey: Survey, codes: Mapping[str, UnitCode]) -> list[str]:
    """Units whose device code from before their last recompile lies in the provider, and is no unit's now.

    A unit's code may have moved to another one, watched or not: what the provider holds no more often
    than the objects of all units do is theirs. They are read only where there is something to explain.
    """
    from tasks.binary.containment import code_copies

    former = {name: set(code.former) for name, code in codes.items() if code.state == "changed"}
    wanted = set().union(*former.values())
    left = code_copies(provider, wanted) if wanted else Counter()
    if left:
        left -= _in_objects(survey, left.keys())
    return [name for name, containers in former.items() if containers & left.keys()]


def _in_objects(survey: Survey, wanted: Collection[tuple[int, str]]) -> Counter[tuple[int, str]]:
    """How often the objects of all units of the provider hold these containers; an unreadable one explains nothing."""
    from tasks.binary.containment import code_copies
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.image import device_image

    found: Counter[tuple[int, str]] = Counter()
    for unit in survey.checkout.units:
        with suppress(BadFatbin, OSError):
            found += code_copies(device_image(unit.object), wanted)
    return found


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
