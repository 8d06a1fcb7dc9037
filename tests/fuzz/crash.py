"""`python -m tests.fuzz.crash --kills 200 [--seed N]`: SIGKILL at random moments of a rebuild.

Half of the kills come at a moment spread evenly over a rebuild's measured length, half at one of the
moments when a receipt is being written; half hit doit alone, whose build then goes on, half the whole
tree. After each, the next `status` must be right and the next `rebuild_fmha` must succeed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.checks import Judge
from tests.fuzz.doit_fork import ForkedDoit
from tests.fuzz.edits import Editor
from tests.fuzz.model import Artifacts
from tests.fuzz.world import POOL, VARIANTS, World, kill

__all__ = ["CrashTest"]

# Receipts of one rebuild are written up to this often: withdrawn, written anew, and the link's.
_WRITES = 22
_DIFFERENT = 60  # kills after which the other generator is used


class CrashTest:
    """Kills rebuilds in a world, one after the other."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self.moments: Counter[str] = Counter()
        self._begin(0)

    def _begin(self, number: int) -> None:
        self._world.reset(number)
        self._edits = Editor(self._world)
        self._judge = Judge(self._world, self._edits.remember_built)
        self._edit()
        started = time.monotonic()
        assert self._world.doit("rebuild_fmha").status == 0
        self._length = time.monotonic() - started
        faults = self._judge.status()[1]
        assert not faults, faults

    def _edit(self) -> None:
        self._edits.edit(self._world.path(self._random.choice(POOL[:4])))

    def one_kill(self, number: int) -> list[str] | None:
        """Edit, begin a rebuild, kill it, judge, rebuild; what was wrong, None where the run ended before the kill."""
        if number and number % _DIFFERENT == 0:
            self._begin(number // _DIFFERENT % len(self._world.variants))
        world, model = self._world, self._world.model
        self._edit()
        units, before = world.units(), world.artifacts()
        model.begun(units, before)
        process = world.start("rebuild_fmha")
        whole_tree = number % 2 == 1
        moment = self._wait_for_a_write(process) if number // 2 % 2 else self._wait_evenly(process)
        if process.poll() is not None:
            world.model.compiled(before, world.artifacts(), world.seen(), quiet=True)
            return None
        building = bool(world.build_processes())
        kill(process, world, whole_tree)
        self.moments[f"{'tree' if whole_tree else 'doit'} killed, {moment}, {'build ran' if building else 'no build'}"
                     ] += 1
        return self._afterwards(before, whole_tree)

    def _wait_evenly(self, process: ForkedDoit) -> str:
        end = time.monotonic() + self._length * self._random.random()
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.001)
        return "any moment"

    def _wait_for_a_write(self, process: ForkedDoit) -> str:
        """Until receipts were written a random number of times, and at most 2 ms more."""
        wanted, folder = self._random.randint(1, _WRITES), self._world.state / "receipts"
        seen, writes = _names(folder), 0
        while process.poll() is None and writes < wanted:
            now = _names(folder)
            writes += now != seen
            seen = now
        time.sleep(self._random.random() * 0.002)
        return "at a receipt"

    def _afterwards(self, before: Artifacts, whole_tree: bool) -> list[str]:
        world = self._world
        early = world.judge()  # the build may go on: it is right to doubt, and wrong to claim
        faults = []
        if early["verdict"] == "fresh" and not self._is_right():
            faults.append("false green right after the kill")
        then = self._random.choice(("rebuild", "judge", "undo", "edit", "hand"))
        if then == "rebuild":
            done = world.doit("rebuild_fmha", "wait=1")
            world.model.compiled(before, world.artifacts(), world.seen(), quiet=done.status == 0)
            if done.status != 0:
                faults.append(f"rebuild_fmha wait=1 failed after the kill:\n{done.text}")
            document, wrong = self._judge.status()
            if document["verdict"] != "fresh":
                faults.append(f"{document['verdict']} after a rebuild that succeeded")
            return faults + wrong
        world.wait_for_orphans()
        world.model.compiled(before, world.artifacts(), world.seen(), quiet=not whole_tree)
        if then == "undo":
            self._edits.restore_built()
        elif then == "edit":
            self._edit()
        elif then == "hand":
            before = world.artifacts()
            world.hand_build().wait(timeout=120)
            world.model.compiled(before, world.artifacts(), world.seen(), quiet=True)
        return faults + self._judge.status()[1] + self._judge.rebuild()

    def _is_right(self) -> bool:
        built = self._world.built()
        return built is not None and all(built.get(name) == unit.revisions
                                         for name, unit in self._world.units().items() if unit.watched)

    def run(self, kills: int, say: Callable[[str], None]) -> list[str]:
        """This many kills; what was wrong, each with its number."""
        faults: list[str] = []
        for number in range(kills):
            while (found := self.one_kill(number)) is None:
                pass
            faults += [f"kill {number}: {fault}" for fault in found]
            if number % 20 == 19:
                say(f"{number + 1} kills, {len(faults)} faults")
        return faults


def _names(folder: Path) -> list[tuple[str, int]]:
    """Names and times of what lies in the folder, temporary files among them."""
    try:
        return sorted((entry.name, entry.stat().st_mtime_ns) for entry in os.scandir(folder))
    except OSError:
        return []


def main() -> int:
    """Exit status 1 where a verdict was wrong or a rebuild failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.crash", description="SIGKILL in the midst of rebuilds")
    parser.add_argument("--kills", type=int, default=200, help="kills (200)")
    parser.add_argument("--seed", type=int, default=1, help="what is drawn (1)")
    arguments = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fmha-crash-") as folder:
        world = World(Path(folder), VARIANTS)
        test = CrashTest(world, arguments.seed)
        faults = test.run(arguments.kills, lambda line: print(line, flush=True))
    print(f"{arguments.kills} kills, {time.monotonic() - started:.0f} s")
    for moment, count in sorted(test.moments.items()):
        print(f"  {count:4} {moment}")
    print("verdicts: " + ", ".join(f"{name} {count}" for name, count in world.figures.verdicts.most_common()))
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
