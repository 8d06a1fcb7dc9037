"""What the device code says beside the receipts: whether an edit changed any, and whether the provider holds it.

Joins the reading of binaries with the units of a survey; decides nothing about receipts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.evidence.chain import Link, Verdict
from tasks.evidence.receipts import write_atomically

if TYPE_CHECKING:
    from tasks.binary.containment import Containment
    from tasks.guarded_build import Judged
    from tasks.survey import Survey, WatchedUnit

__all__ = ["UnitCode", "compiled_archs", "confirm_link", "read_unit_code", "record_unit_code", "told"]

_FORMAT = 1


@dataclass(frozen=True)
class UnitCode:
    """One unit's device code against that of its build before: ``changed``, ``unchanged`` or ``none``, in words too."""

    state: str
    text: str
    kernels: tuple[str, ...]


def _file(state: Path, unit: str) -> Path:
    from tasks.evidence.receipts import file_name

    return state / "fingerprints" / f"{file_name(unit)}.json"


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("format") == _FORMAT else {}


def _has_device_code(unit: WatchedUnit) -> bool:
    return unit.line.language == "CUDA"


def record_unit_code(survey: Survey, state: Path, objects: Mapping[str, str]) -> None:
    """Keep the fingerprints of proved objects. `objects` maps units to the SHA-256 of their object."""
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.fingerprint import Fingerprint, compare, fingerprint

    for name, digest in objects.items():
        unit = survey.units.get(name)
        if unit is None or not _has_device_code(unit):
            continue
        path = _file(state, name)
        old = _load(path)
        if old.get("object") == digest:
            continue
        try:
            now = fingerprint(Path(unit.facts.object))
        except (BadFatbin, OSError):
            path.unlink(missing_ok=True)
            continue
        entry: dict[str, Any] = {"format": _FORMAT, "object": digest, "now": now.to_json(), "state": "changed",
                                 "text": "device code of a first build", "kernels": []}
        try:
            change = compare(Fingerprint.from_json(old["now"]), now)
        except (KeyError, ValueError):
            entry["state"] = "changed" if now.containers else "none"
        else:
            kernels = sorted({kernel for names in change.kernels.values() for kernel in names})
            entry |= {"state": change.device_code, "text": change.text, "kernels": kernels}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(entry))


def read_unit_code(unit: WatchedUnit, state: Path, digest: str | None) -> UnitCode:
    """What is known of the object with this digest."""
    if not _has_device_code(unit):
        return UnitCode("none", "", ())
    entry = _load(_file(state, unit.name))
    if digest is None or entry.get("object") != digest:
        return UnitCode("none", "", ())
    return UnitCode(entry["state"], entry["text"], tuple(entry["kernels"]))


def _containments(survey: Survey) -> dict[str, Containment]:
    from tasks.binary.containment import contains
    from tasks.binary.image import device_image

    images = {name: device_image(Path(unit.facts.object)) for name, unit in survey.units.items()
              if _has_device_code(unit) and os.path.isfile(unit.facts.object)}
    return contains(device_image(Path(survey.provider)), images) if images else {}


def confirm_link(link: Link, survey: Survey, judged: Judged) -> Link:
    """Link 3 with what lies in the provider: the receipt alone is not enough where there is device code.

    Missing code of a proved object disproves the provider. Code that cannot be told apart (two units
    with the same kernels) is said; there the receipt decides.
    """
    if not any(_has_device_code(unit) for unit in survey.units.values()):
        return link.with_evidence("no unit has device code: the receipt alone decides")
    if not os.path.isfile(survey.provider):
        return link
    from tasks.binary.fatbin import BadFatbin

    try:
        found = _containments(survey)
    except (BadFatbin, OSError) as error:
        word: Verdict = "unproven" if link.verdict == "fresh" else link.verdict
        return Link(3, word, (*link.evidence, f"device code cannot be read: {str(error).splitlines()[0]}"), link.remedy)
    return _with_containments(link, found, judged)


def _with_containments(link: Link, found: Mapping[str, Containment], judged: Judged) -> Link:
    missing = [name for name, held in found.items() if held.status == "missing"]
    ambiguous = [name for name, held in found.items() if held.status == "ambiguous"]
    held = sum(held.status == "contained" for held in found.values())
    lines = [f"{name}: its device code is not in the provider: {found[name].evidence}" for name in missing]
    lines += [f"{name}: ambiguous: {found[name].evidence}" for name in ambiguous]
    if held:
        lines.append(f"the device code of {held} objects lies in the provider")
    verdict = link.verdict
    if any(judged.units[name].verdict == "fresh" for name in missing):
        verdict = "stale"
    elif missing and verdict == "fresh":
        verdict = "unproven"
    evidence = (*lines, *link.evidence) if missing else (*link.evidence, *lines)
    return Link(3, verdict, evidence, link.remedy)


def compiled_archs(survey: Survey) -> dict[str, tuple[str, ...]]:
    """Architectures that each watched unit's object holds code for, such as ``sm_80`` and ``compute_90``."""
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.image import device_image

    found = {}
    for name, unit in survey.units.items():
        if _has_device_code(unit):
            try:
                found[name] = device_image(Path(unit.facts.object)).archs
            except (BadFatbin, OSError):
                continue
    return found


def told(units: Iterable[tuple[str, UnitCode]]) -> list[str]:
    """One line for each recompiled unit that has device code."""
    return [f"   {name}: recompiled; {code.text}" for name, code in units if code.text]
