"""`doit audit compiler=1`: our closures against what the units' own compilers list."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from tasks.auditing import AuditedUnit, Finding
from tasks.closure.compiler import list_headers
from tasks.closure.matrix import judge_cell, read_compile
from tasks.closure.recorded import Files
from tasks.report.live import LiveLine
from tasks.session import Session
from tasks.survey import Survey, WatchedUnit

__all__ = ["compare"]

_SHOWN = 5


def _named(paths: list[str], root: str) -> str:
    shown = [os.path.relpath(path, root) for path in paths[:_SHOWN]]
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(shown) + more


def _opened(unit: WatchedUnit, listed: tuple[str, ...], survey: Survey, files: Files) -> set[str]:
    """Keys of what the compiler opened besides the source, system and toolkit folders left out."""
    own = (f"{survey.location.ort_root}/", f"{survey.location.build_dir}/")
    system = tuple(folder + "/" for folder in survey.toolchain.system_folders)
    keys = {files.key(os.path.join(unit.line.workdir, path)) for path in listed}
    # `#line 1 "nowhere.h"` lists a file that is not there.
    return {key for key in keys if files.mtime(key) is not None and key != files.key(unit.facts.source)
            and (key.startswith(own) or not key.startswith(system))}


def compare(session: Session, survey: Survey, files: Files, rows: list[AuditedUnit],
            finding: Callable[..., Finding]) -> tuple[list[AuditedUnit], list[Finding]]:
    """The rows, with cells for what the compiler opens and none for what it does not; and the differences."""
    live = LiveLine(session.output)
    total = len(survey.units)

    def on_unit(name: str, done: int) -> None:
        live.draw(f"   [{done}/{total}] asking the compiler: {name}")
        if not live.live:
            live.say(f"   asking the compiler: {name}")

    jobs = session.settings.jobs or len(os.sched_getaffinity(0))
    try:
        lines = {name: unit.line for name, unit in survey.units.items()}
        listings = list_headers(lines, session.environ, jobs, on_unit)
    finally:
        live.clear()
    found = []
    changed = []
    root = str(survey.location.ort_root)
    for row in rows:
        unit = survey.units.get(row.name)
        if unit is None:
            changed.append(row)
            continue
        listing = listings[row.name]
        if listing.error:
            found.append(finding("compiler-failed", [row.name], detail=listing.error, row=row))
            changed.append(row)
            continue
        opened = _opened(unit, listing.files, survey, files)
        missed, surplus = sorted(opened - unit.closure.files), sorted(unit.closure.files - opened)
        if missed:
            found.append(finding("closure-fault", [row.name], missed, f"{row.name}: {_named(missed, root)}"))
        if surplus:
            found.append(finding("closure-surplus", [row.name], surplus, f"{row.name}: {_named(surplus, root)}"))
        changed.append(_with_compiler(row, unit, survey, opened))
    return changed, found


def _with_compiler(row: AuditedUnit, unit: WatchedUnit, survey: Survey, opened: set[str]) -> AuditedUnit:
    real = {os.path.realpath(path) for path in opened}
    cells = {header: cell for header, cell in row.cells.items()
             if header in opened or os.path.realpath(header) in real or cell.cause == "shadowed"}
    recorded = set(row.record.files or ())
    for header in survey.headers:
        if header in opened and header not in row.cells:
            cells[header] = judge_cell(row.name, header, row.record, read_compile(unit.line.words), header in recorded,
                                       row.record.files is not None, None, True)
    return replace(row, cells=cells)
