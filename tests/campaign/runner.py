"""Runs scenarios in cells: each column starts from its own copy of the same state, with everything in place."""

from __future__ import annotations

import ctypes
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tests.campaign.cells import Cell
from tests.campaign.columns import COLUMNS, Column
from tests.campaign.ledger import COUNTS, Check, Ledger
from tests.campaign.oracle import Oracle
from tests.campaign.place import Place, Pristine
from tests.campaign.scenario import Scenario
from tests.campaign.world import World

__all__ = ["Outcome", "run_cell", "run_cells"]


@dataclass(frozen=True)
class Outcome:
    """One scenario in one cell for one column. `error`: the scenario itself broke, and proves nothing."""

    scenario: str
    cell: str
    column: str
    checks: tuple[Check, ...]
    seconds: float
    undecided: str = ""
    error: str = ""

    def count(self, kind: str) -> int:
        return sum(check.units for check in self.checks if check.kind == kind)

    @property
    def counts(self) -> dict[str, int]:
        return {kind: self.count(kind) for kind in COUNTS}


class _Column:
    """A column with its own starting state in one place."""

    def __init__(self, column: Column, place: Place, oracle: Oracle, base: Pristine, store: Path) -> None:
        self.column = column
        self._place = place
        self._oracle = oracle
        self._store = store
        base.restore(everything=True)
        self._adopt()

    def _adopt(self) -> None:
        """Up to date by its own way: what every scenario starts from."""
        claim = self.column.update(self._place)
        ledger = Ledger(self._place, self._oracle)
        ready = claim.fresh and ledger.see().holds
        assert ready, f"{self.column.name} has no state to start from: {claim}"
        self._pristine = Pristine(self._place, self._store)

    def run(self, scenario: Scenario) -> Outcome:
        started = time.monotonic()
        ledger = Ledger(self._place, self._oracle)
        error = ""
        try:
            ledger.begin()
            scenario.act(World(self._place, self.column, ledger))
        except Exception:
            error = traceback.format_exc(limit=6)
        finally:
            if not self._pristine.restore():
                self._adopt()
        return Outcome(scenario.name, self._place.cell.label, self.column.name, tuple(ledger.checks),
                       time.monotonic() - started, scenario.undecided_in(self._place.cell), error)


def run_cell(cell: Cell, scenarios: Sequence[Scenario], folder: Path, columns: Sequence[Column] = COLUMNS,
             tell: Callable[[Outcome], object] = bool) -> list[Outcome]:
    """All scenarios of one cell, column after column, in `folder`, which is removed afterwards."""
    place = Place(folder / "place", cell)
    place.configure()
    done = place.build()
    assert done.status == 0, done.text
    base = Pristine(place, folder / "base")
    oracle = Oracle()
    outcomes = []
    for number, column in enumerate(columns):
        own = _Column(column, place, oracle, base, folder / f"column{number}")
        for scenario in scenarios:
            if scenario.fits(cell):
                outcomes.append(own.run(scenario))
                tell(outcomes[-1])
    shutil.rmtree(folder)
    return outcomes


def _end_with_parent() -> None:
    """A worker whose campaign was killed must not go on (prctl(2): PR_SET_PDEATHSIG is 1)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run_cells(work: Iterable[tuple[Cell, Sequence[Scenario]]], folder: Path, jobs: int,
              tell: Callable[[list[Outcome]], None], columns: Sequence[Column] = COLUMNS) -> list[Outcome]:
    """Cells side by side, `jobs` at a time."""
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        waiting = [pool.submit(run_cell, cell, tuple(scenarios), folder / str(number), columns)
                   for number, (cell, scenarios) in enumerate(work)]
        for finished in as_completed(waiting):
            outcomes += finished.result()
            tell(finished.result())
    return outcomes
