"""The campaign's results: a table for people, a document for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.campaign.ledger import COUNTS
from tests.campaign.runner import Outcome

__all__ = ["as_document", "is_clean", "print_table"]


def _totals(outcomes: Sequence[Outcome]) -> dict[str, int]:
    return {kind: sum(outcome.count(kind) for outcome in outcomes if not outcome.undecided) for kind in COUNTS}


def _columns(outcomes: Sequence[Outcome]) -> list[str]:
    return list(dict.fromkeys(outcome.column for outcome in outcomes))


def _of(outcomes: Sequence[Outcome], **wanted: str) -> list[Outcome]:
    return [outcome for outcome in outcomes
            if all(getattr(outcome, name) == value for name, value in wanted.items())]


def is_clean(outcomes: Sequence[Outcome], column: str) -> bool:
    """Whether no scenario broke, and this column had no false green and no false alarm in any cell."""
    totals = _totals(_of(outcomes, column=column))
    return bool(outcomes) and not any(outcome.error for outcome in outcomes) and \
        totals["false_green"] == totals["false_alarm"] == 0


def as_document(outcomes: Sequence[Outcome], seconds: float) -> dict[str, Any]:
    """Everything, for `--json`. `scenarios` counts scenarios in cells; an undecidable one is in none of the counts."""
    decided = {(outcome.scenario, outcome.cell) for outcome in outcomes if not outcome.undecided}
    return {
        "schema": 1,
        "scenarios": len(decided),
        "seconds": round(seconds, 1),
        "columns": {name: _totals(_of(outcomes, column=name)) for name in _columns(outcomes)},
        "cells": {cell: {name: _totals(_of(outcomes, cell=cell, column=name)) for name in _columns(outcomes)}
                  for cell in dict.fromkeys(outcome.cell for outcome in outcomes)},
        "undecidable": _undecidable(outcomes),
        "errors": [{"scenario": o.scenario, "cell": o.cell, "column": o.column, "error": o.error}
                   for o in outcomes if o.error],
        "findings": [{"scenario": o.scenario, "cell": o.cell, "column": o.column, "kind": check.kind,
                      "step": check.step, "claim": check.claim, "why": check.why}
                     for o in outcomes for check in o.checks if check.kind and not o.undecided],
    }


def _undecidable(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    found = []
    for name in dict.fromkeys(outcome.scenario for outcome in outcomes if outcome.undecided):
        rows = [outcome for outcome in outcomes if outcome.scenario == name and outcome.undecided]
        found.append({"scenario": name, "reason": rows[0].undecided, "cells": len({row.cell for row in rows}),
                      "columns": {column: {kind: sum(row.count(kind) for row in rows if row.column == column)
                                           for kind in COUNTS} for column in _columns(rows)}})
    return found


def print_table(outcomes: Sequence[Outcome], seconds: float, console: Console) -> None:
    """One row a cell with the three figures of each column, then what there is to know of them."""
    columns = _columns(outcomes)
    table = Table(title="false green / false alarm / units recompiled needlessly", title_justify="left")
    table.add_column("cell")
    table.add_column("scenarios", justify="right")
    for name in columns:
        table.add_column(name, justify="right")
    for cell in dict.fromkeys(outcome.cell for outcome in outcomes):
        rows = _of(outcomes, cell=cell)
        table.add_row(cell, str(len({row.scenario for row in rows if not row.undecided})),
                      *(_figures(_of(rows, column=name)) for name in columns))
    document = as_document(outcomes, seconds)
    table.add_section()
    table.add_row("all", str(document["scenarios"]), *(_figures(_of(outcomes, column=name)) for name in columns),
                  style="bold")
    console.print(table)
    by_design = {name: count for name in columns
                 if (count := document["columns"][name]["unproven_by_design"])}
    for name, count in by_design.items():
        console.print(f"{name}: {count} times unproven by design (never built by it, or built by others since)")
    for entry in document["undecidable"]:
        console.print(f"not decidable: {entry['scenario']}: {entry['reason']}")
    console.print(f"{seconds:.0f} s")


def _figures(outcomes: Sequence[Outcome]) -> str:
    totals = _totals(outcomes)
    return f"{totals['false_green']} / {totals['false_alarm']} / {totals['recompiled_needlessly']}"


def write_document(document: dict[str, Any], path: str) -> None:
    """The document as a file, or on stdout for `-`."""
    text = json.dumps(document, indent=1)
    if path == "-":
        print(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")
