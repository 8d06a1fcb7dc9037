"""Runs sequences of the fuzz, seed after seed, until enough steps are done."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.machine import machine_class
from tests.fuzz.world import World

__all__ = ["run_fuzz"]

SEQUENCE_STEPS = 40
_SEQUENCES_A_SEED = 12
# More faults than this are most likely one.
_FAULTS_TOLD = 5


def run_fuzz(world: World, steps: int, first_seed: int, say: Callable[[str], None]) -> list[str]:
    """Run at least `steps` steps; one text for each fault, with the shortest sequence that was found to show it."""
    faults: list[str] = []
    number = first_seed
    while world.figures.steps < steps and len(faults) < _FAULTS_TOLD:
        sequences = min(_SEQUENCES_A_SEED, 1 + (steps - world.figures.steps) // SEQUENCE_STEPS)
        wanted = settings(max_examples=sequences, stateful_step_count=SEQUENCE_STEPS, deadline=None,
                          database=None, report_multiple_bugs=False, verbosity=Verbosity.quiet,
                          phases=(Phase.generate, Phase.shrink), suppress_health_check=list(HealthCheck))
        shortest: list[str] = []
        machine = seed(number)(machine_class(world, shortest))
        try:
            with redirect_stdout(io.StringIO()):
                run_state_machine_as_test(machine, settings=wanted)
        except Exception as error:
            last = "\n".join((repr(error), f"{world.variant}, after:", *(f"  {line}" for line in world.trace)))
            faults.append(f"seed {number}: {min(shortest, key=str.__len__) if shortest else last}")
            say(faults[-1])
        say(f"seed {number}: {world.figures.steps} steps, {world.figures.verdicts.total()} verdicts")
        number += 1
    return faults
