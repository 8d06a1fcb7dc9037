"""`python -m tests.fuzz --steps 10000 [--seed N]`: the stateful fuzz, as long as it takes."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.campaign import run_fuzz
from tests.fuzz.world import World


def main() -> int:
    """Exit status 1 where there was a fault; the shortest sequence that shows it is printed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000, help="steps to run (10000)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (1)")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fmha-fuzz-") as folder:
        world = World(Path(folder))
        faults = run_fuzz(world, arguments.steps, arguments.seed, say=lambda line: print(line, flush=True))
    print(world.figures.told(time.monotonic() - started))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
