"""The stateful fuzz and the crash tests with fixed seeds: what a CI run has time for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.campaign import run_fuzz
from tests.fuzz.crash import CrashTest
from tests.fuzz.world import VARIANTS, World


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Makefiles and Ninja, and a build system that does not know the watched headers."""
    world = World(tmp_path_factory.mktemp("fuzz"), VARIANTS[:2])
    yield world
    world.wait_for_orphans()


def test_no_verdict_of_300_random_steps_is_wrong(world: World) -> None:
    world.figures.steps = 0
    faults = run_fuzz(world, 300, 20, print)
    assert not faults, "\n\n".join(faults)
    assert world.figures.steps >= 300
    assert min(world.figures.verdicts[word] for word in ("fresh", "stale", "unproven")) > 5, "all of them were seen"


def test_no_verdict_after_a_kill_is_wrong_and_the_next_rebuild_succeeds(world: World) -> None:
    test = CrashTest(world, 20)
    faults = test.run(6, print)
    assert not faults, "\n\n".join(faults)
    assert test.moments.total() == 6
