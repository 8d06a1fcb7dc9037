"""What a recompile did to a unit's machine code, kept with the digest of its object.

Reads objects and the notes in `<build_dir>/.fmha/fingerprints/`; decides no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tasks.evidence.receipts import file_name, write_atomically

if TYPE_CHECKING:
    from tasks.binary.fingerprint import Fingerprint
    from tasks.evidence.snapshot import Observer
    from tasks.survey import Survey, WatchedUnit

__all__ = ["UnitCode", "change_lines", "machine_code", "read_unit_code", "record_unit_code", "told"]

_FORMAT = 2
_NAMED = 3


class UnitCode(NamedTuple):
    """One unit's code against that of its last proved build.

    `state` of the device code is ``changed``, ``unchanged`` or ``none`` (it has none, or nothing is known).
    `by_arch` maps ``sm_80`` to words such as ``device code changed (3 kernels)``, `text` is all of it in one line,
    empty where nothing is known. `kernels` are the mangled names of those that changed; `former` the containers
    (size in bytes, SHA-256) of the build before.
    """

    state: str = "none"
    text: str = ""
    by_arch: Mapping[str, str] = MappingProxyType({})
    kernels: tuple[str, ...] = ()
    first: bool = False
    former: tuple[tuple[int, str], ...] = ()


def _file(state: Path, unit: str) -> Path:
    return state / "fingerprints" / f"{file_name(unit)}.json"


def _load(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) and data.get("format") == _FORMAT else {}


def record_unit_code(survey: Survey, state: Path, objects: Mapping[str, str],
                     former: dict[str, Mapping[str, Any]]) -> None:
    """Keep the fingerprints of objects that were just recompiled. `objects` maps units to the SHA-256 of theirs.

    `former` is filled with the notes that each is compared with: given again, an object that one build compiles twice
    stands beside the one from before that build.
    """
    from tasks.binary.fatbin import BadFatbin
    from tasks.binary.fingerprint import fingerprint

    for name, digest in objects.items():
        unit = survey.units.get(name)
        if unit is None:
            continue
        path = _file(state, name)
        old = former.setdefault(name, _load(path))
        try:
            now = fingerprint(Path(unit.facts.object))
        except (BadFatbin, OSError):
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"format": _FORMAT, "object": digest, "now": now.to_json(),
                                           **_against(old, now)}))


def _against(old: Mapping[str, Any], now: Fingerprint) -> dict[str, Any]:
    """The note on `now` beside the one before it."""
    from tasks.binary.fingerprint import Fingerprint, compare

    try:
        former = Fingerprint.from_json(old["now"])
    except (KeyError, ValueError):
        return {"state": "changed" if now.containers else "none", "text": "first proved build, nothing to compare with",
                "by_arch": {}, "kernels": [], "first": True, "former": []}
    change = compare(former, now)
    kernels = sorted({kernel for names in change.kernels.values() for kernel in names})
    return {"state": change.device_code, "text": change.text, "kernels": kernels, "first": False,
            "by_arch": {arch: change.text_for(arch) for arch in sorted(former.device.keys() | now.device.keys())},
            "former": [list(pair) for pair in former.containers]}


def read_unit_code(unit: WatchedUnit, state: Path, digest: str | None) -> UnitCode:
    """What is known of the object with this digest."""
    entry = _load(_file(state, unit.name))
    if digest is None or entry.get("object") != digest:
        return UnitCode()
    try:
        return UnitCode(entry["state"], _words(entry["text"], entry["by_arch"]), entry["by_arch"],
                        tuple(entry["kernels"]), entry["first"], _pairs(entry["former"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return UnitCode()


def _pairs(listed: Iterable[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    return tuple((int(size), str(text)) for size, text in listed)


def _words(text: str, by_arch: Mapping[str, str]) -> str:
    if len(set(by_arch.values())) > 1:
        return "; ".join(f"{arch}: {words}" for arch, words in by_arch.items())
    return f"{text} for {', '.join(by_arch)}" if by_arch else text


def machine_code(survey: Survey, state: Path, observer: Observer) -> str | None:
    """A digest of all machine code of the watched units, host and device; None where some object's is not known.

    Unlike a digest of the provider it is the same after a recompile that changed nothing.
    """
    from tasks.binary.code import digest

    parts = []
    for name, unit in survey.units.items():
        entry = _load(_file(state, name))
        known = observer.digest(unit.facts.object)
        if known is None or entry.get("object") != known or "now" not in entry:
            return None
        parts.append(json.dumps([name, {**entry["now"], "containers": None}], sort_keys=True))
    return digest(sorted(parts))


def told(units: Iterable[tuple[str, UnitCode]]) -> list[str]:
    """What happened to recompiled units, those with the same words in one line, and to which kernels."""
    from tasks.binary.names import short

    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, code in units:
        if code.text:
            groups.setdefault((code.text, code.kernels), []).append(name)
    lines = []
    for (text, kernels), names in groups.items():
        lines.append(f"   {', '.join(names)}: {text}")
        lines += [f"      {short(kernel)}" for kernel in kernels[:_NAMED]]
        if len(kernels) > _NAMED:
            lines.append(f"      and {len(kernels) - _NAMED} more kernels: doit kernels")
    return lines


def change_lines(units: Iterable[tuple[str, UnitCode]]) -> list[str]:
    """The last compile of proved units, those with the same words in one line."""
    groups: dict[str, list[str]] = {}
    for name, code in units:
        if code.text and not code.first:
            groups.setdefault(code.text, []).append(name)
    return [f"last compile of {', '.join(names)}: {text}" for text, names in groups.items()]
