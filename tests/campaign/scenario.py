"""What a scenario is: a sentence, a function that acts on a world, and where it fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.campaign.cells import Cell, host, nowhere
from tests.campaign.world import World

__all__ = ["SCENARIOS", "Scenario", "scenario"]


@dataclass(frozen=True)
class Scenario:
    """`act` starts with everything in place and asks the column (`update`, `look`) whenever its word matters.

    `undecidable` says where the design cannot know, `reason` why; there the counts stand apart.
    """

    name: str
    act: Callable[[World], None]
    fits: Callable[[Cell], bool] = host
    quick: bool = False
    undecidable: Callable[[Cell], bool] = nowhere
    reason: str = ""

    def undecided_in(self, cell: Cell) -> str:
        """Why the design cannot decide the scenario in this cell; empty where it can."""
        return self.reason if self.undecidable(cell) else ""


SCENARIOS: list[Scenario] = []


def scenario(name: str, fits: Callable[[Cell], bool] = host, quick: bool = False,
             undecidable: Callable[[Cell], bool] = nowhere,
             reason: str = "") -> Callable[[Callable[[World], None]], Callable[[World], None]]:
    """Put a function among the scenarios."""
    def put(act: Callable[[World], None]) -> Callable[[World], None]:
        SCENARIOS.append(Scenario(name, act, fits, quick, undecidable, reason))
        return act

    return put
