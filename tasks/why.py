"""`doit why UNIT`: why the unit would be recompiled now, or why not. Reads only; builds nothing, runs nothing."""

from __future__ import annotations

import json as json_format
import os
import time
from typing import Any

from tasks.errors import UserError
from tasks.evidence.chain import UnitJudgement
from tasks.evidence.receipts import UnitReceipt
from tasks.evidence.snapshot import Observer
from tasks.session import Session
from tasks.survey import WatchedUnit

__all__ = ["why"]

_NAMED = 12


def _what(key: str, unit: WatchedUnit, receipt: UnitReceipt | None) -> str:
    recorded = () if receipt is None else receipt.inputs
    if receipt is not None and key in receipt.moved:
        return "was written while the unit was compiled"
    if key not in recorded and key in unit.facts.inputs:
        return "is an input now"
    if key in recorded and key not in unit.facts.inputs:
        return "is no input any more"
    return "changed"


def _difference(key: str, unit: WatchedUnit, receipt: UnitReceipt | None, observer: Observer) -> dict[str, Any]:
    """One input that is not as the receipt says, with its digests and the way that the unit includes it."""
    is_file = os.path.isabs(key)
    if not is_file:
        was = None if receipt is None else receipt.recipe.get(key)
        return {"input": key, "what": _what(key, unit, receipt), "was": was, "now": unit.facts.recipe.get(key),
                "chain": []}
    was = receipt.inputs[key][1] if receipt is not None and key in receipt.inputs else None
    chain = unit.closure.chain(key) if key in unit.closure.files else []
    return {"input": key, "what": _what(key, unit, receipt), "was": was, "now": observer.digest(key), "chain": chain}


def _answer(session: Session, unit: WatchedUnit, judgement: UnitJudgement, observer: Observer) -> dict[str, Any]:
    receipt = session.store.unit(unit.name)
    return {
        "unit": unit.name, "source": unit.facts.source, "object": unit.facts.object,
        "recompiles": judgement.verdict != "fresh", "verdict": judgement.verdict, "reason": judgement.reason,
        "built": None if receipt is None or receipt.moved else receipt.built, "inputs": len(unit.facts.inputs),
        "reaches": {header: unit.closure.chain(header) for header in unit.reaches},
        "changed": [_difference(key, unit, receipt, observer) for key in judgement.changed],
    }


def _shown_chain(chain: list[str]) -> str:
    return " -> ".join(os.path.basename(path) for path in chain)


def _short(path: str, root: str) -> str:
    """A path of the checkout as it is seen from its root; any other as it is."""
    return path.removeprefix(f"{root}{os.sep}")


def _lines(answer: dict[str, Any], root: str) -> list[str]:
    word = "would be recompiled" if answer["recompiles"] else "would not be recompiled"
    lines = [f"{answer['unit']} {word}: {answer['verdict']}: {answer['reason']}",
             f"  source  {_short(answer['source'], root)}", f"  object  {_short(answer['object'], root)}"]
    if answer["built"] is not None:
        built = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(answer["built"]))
        lines.append(f"  last proved compile  {built}")
    for change in answer["changed"][:_NAMED]:
        name = change["input"]
        lines.append(f"  {_short(name, root)} {change['what']}")
        if change["was"] and change["now"] and change["was"] != change["now"]:
            lines.append(f"    {change['was'][:16]} -> {change['now'][:16]}")
        if len(change["chain"]) > 1:
            lines.append(f"    {_shown_chain(change['chain'])}")
    if len(answer["changed"]) > _NAMED:
        lines.append(f"  ... and {len(answer['changed']) - _NAMED} more (--json has all)")
    if not answer["changed"]:
        lines += [f"  reaches {_shown_chain(chain)}" for chain in answer["reaches"].values()]
    return lines


def _named_units(session: Session, names: list[str]) -> list[WatchedUnit]:
    """The units of these names; :class:`UserError` with the names that there are for any other."""
    survey = session.survey(again=True)
    known = ", ".join(survey.units)
    first = next(iter(survey.units))
    if not names:
        raise UserError(f"Which unit? These reach a watched header: {known}.", session.command(f"why {first}"))
    for name in names:
        if name not in survey.units:
            import difflib

            near = difflib.get_close_matches(name, survey.units, n=1)
            listed = any(unit.name == name for unit in survey.checkout.units)
            about = "reaches no watched header" if listed else "is no unit of the provider"
            raise UserError(f"{name} {about}. These do: {known}.", session.command(f"why {near[0] if near else first}"))
    return [survey.units[name] for name in names]


def why(session: Session, units: list[str] | None = None, json: bool = False) -> None:
    """`why`: the answer for every unit that is named, after what may change it: all that a build would make first."""
    named = _named_units(session, list(units or ()))
    judged = session.judged()
    location = session.survey().location
    answers = [_answer(session, unit, judged.units[unit.name], judged.observer) for unit in named]
    pending = judged.pending.told()
    if json:
        document = {"schema": 1, "task": "why", "ort_root": str(location.ort_root),
                    "build_dir": str(location.build_dir), "pending": pending, "units": answers}
        session.document("why", json_format.dumps(document, indent=1))
        return
    if pending:
        session.say("\n".join(("before any unit, this is open:", *(f"  {line}" for line in pending))))
    for answer in answers:
        session.say("\n".join(_lines(answer, str(location.ort_root))))
