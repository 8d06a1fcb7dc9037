"""What is checked around a command: its verdict against the model, its recompiles against what was needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.fuzz.model import Artifacts
from tests.fuzz.sources import UnitSource
from tests.fuzz.world import World

__all__ = ["FaultError", "Judge"]


class FaultError(AssertionError):
    """The project said or did something wrong."""


class Judge:
    """Runs commands in a world and holds them against the world's model."""

    def __init__(self, world: World, on_fresh: Callable[[], None]) -> None:
        self._world = world
        self._on_fresh = on_fresh

    def status(self, *arguments: str) -> tuple[dict[str, Any], list[str]]:
        """The document of `status` (or of `arguments`) where nothing else runs, and what is wrong with it."""
        world = self._world
        document = world.judge(*arguments)
        units, seen, now = world.units(), world.seen(), world.artifacts()
        faults = world.model.faults(document, units, seen, now, world.built())
        if not faults:
            world.model.called_fresh(document, seen, now)
            if document["verdict"] == "fresh":
                self._on_fresh()
        return document, faults

    def rebuild(self) -> list[str]:
        """`rebuild_fmha` where nothing else runs: exact, fresh afterwards, and idle the second time."""
        world, model = self._world, self._world.model
        units, before = world.units(), world.artifacts()
        idle = model.must_be_fresh(units, world.seen(), before)
        needed = {name for name, unit in units.items() if unit.watched and model.holds(name, units, before) is False}
        allowed = {name for name in units if not units[name].watched or not model.is_proven(name, units, before)
                   or self._build_tool_would(units[name], before)}
        model.begun(units, before)
        done = world.doit("rebuild_fmha")
        after = world.artifacts()
        changed = model.compiled(before, after, world.seen(), quiet=True)
        world.figures.recompiled += len(changed)
        # A run of CMake copies the third-party headers again, also over an edit.
        allowed |= {name for name, unit in world.units().items() if unit.content != units[name].content}
        faults = []
        if idle and after != before:
            faults.append(f"everything was fresh, but a rebuild wrote {sorted(changed) or 'the provider'}")
        if changed - allowed:
            faults.append(f"recompiled needlessly: {sorted(changed - allowed)}")
        compiles = all(unit.compiles for unit in units.values())
        if (done.status == 0) and needed - changed:
            faults.append(f"not recompiled: {sorted(needed - changed)}")
        if done.status != 0 and compiles:
            faults.append(f"rebuild_fmha failed, and nothing is wrong with the sources:\n{done.text}")
        document, wrong = self.status()
        if done.status == 0 and document["verdict"] != "fresh":
            faults.append(f"{document['verdict']} after a rebuild that succeeded: {_evidence(document)}")
        return faults + wrong + (self._second_run(after) if done.status == 0 else [])

    def _build_tool_would(self, unit: UnitSource, before: Artifacts) -> bool:
        """Whether make or ninja has a reason of its own to compile the unit."""
        entry = before.objects[unit.name]
        if entry is None or any(path.stat().st_mtime_ns >= entry[0][2] for path in unit.closure):
            return True
        # Ninja believes its record of a unit's headers only as long as the object has the time that it had then.
        ninja = self._world.variant.generator == "Ninja"
        return ninja and self._world.model.written.get(unit.name) != entry[0][2]

    def _second_run(self, before: Artifacts) -> list[str]:
        done = self._world.doit("rebuild_fmha")
        if done.status != 0:
            return [f"the second rebuild failed:\n{done.text}"]
        return [] if self._world.artifacts() == before else ["the second rebuild was not idle"]


def _evidence(document: Mapping[str, Any]) -> list[str]:
    return [line for link in document.get("links", ())[:3] if link["verdict"] != "fresh" for line in link["evidence"]]

