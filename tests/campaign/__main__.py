"""`python -m tests.campaign`: run scenarios, print the table; 0 only where this project had no false word at all."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.campaign import scenarios  # noqa: F401 - fills SCENARIOS
from tests.campaign.cells import DEVICE, GRID, QUICK, SHAPES, Cell
from tests.campaign.columns import COLUMNS, Project
from tests.campaign.runner import Outcome, run_cells
from tests.campaign.scenario import SCENARIOS, Scenario
from tests.campaign.table import as_document, is_clean, print_table, write_document


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the seconds-long part that continuous integration runs")
    parser.add_argument("--json", metavar="FILE", help="write everything there (- for stdout, table to stderr)")
    parser.add_argument("--jobs", type=int, default=2, help="cells side by side (2)")
    parser.add_argument("--no-device", action="store_true", help="leave out what needs nvcc")
    parser.add_argument("--cell", action="append", default=[], metavar="WORD", help="only cells with this word")
    parser.add_argument("--column", action="append", default=[], metavar="TEXT", help="only columns with this text")
    parser.add_argument("--scenario", action="append", default=[], metavar="TEXT", help="only scenarios with this text")
    parser.add_argument("--folder", type=Path, help="where to build (a temporary folder)")
    return parser.parse_args()


def _work(arguments: argparse.Namespace) -> list[tuple[Cell, list[Scenario]]]:
    cells = QUICK if arguments.quick else (*GRID, *SHAPES, *DEVICE[: 0 if arguments.no_device else None])
    cells = tuple(cell for cell in cells if all(word in cell.label for word in arguments.cell))
    chosen = [one for one in SCENARIOS if (one.quick or not arguments.quick)
              and (not arguments.scenario or any(text in one.name for text in arguments.scenario))]
    fitting = [(cell, [one for one in chosen if one.fits(cell)]) for cell in cells]
    if not arguments.quick:
        return fitting
    # What fits several quick cells runs in one of them, in turn.
    return [(cell, [one for number, one in enumerate(chosen) if one.fits(cell)
                    and (number % len(cells) == place or sum(one.fits(other) for other in cells) == 1)])
            for place, (cell, _) in enumerate(fitting)]


def main() -> int:
    arguments = _arguments()
    to_stdout = arguments.json == "-"
    console = Console(stderr=to_stdout, width=None if sys.stdout.isatty() else 150)
    done: list[Outcome] = []

    def tell(outcomes: list[Outcome]) -> None:
        done.extend(outcomes)
        console.print(f"{outcomes[0].cell if outcomes else '-'}: {len(outcomes)} runs done")
        if arguments.json and not to_stdout:
            write_document(as_document(done, time.monotonic() - started), arguments.json)
        for outcome in outcomes:
            if outcome.error:
                console.print(f"BROKEN {outcome.scenario} [{outcome.column}]\n{outcome.error}", markup=False)
            for check in outcome.checks:
                if outcome.column == Project.name and check.kind.startswith("false") and not outcome.undecided:
                    console.print(f"{check.kind}: {outcome.scenario} [{outcome.cell}] {check.step}: {check.claim}: "
                                  f"{check.why}", markup=False)

    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="campaign-", dir=arguments.folder) as folder:
        columns = [one for one in COLUMNS if not arguments.column or any(text in one.name for text in arguments.column)]
        run_cells(_work(arguments), Path(folder).resolve(), arguments.jobs, tell, columns)
    seconds = time.monotonic() - started
    print_table(done, seconds, console)
    if arguments.json:
        write_document(as_document(done, seconds), arguments.json)
    return 0 if is_clean(done, Project.name) else 1


if __name__ == "__main__":
    sys.exit(main())
