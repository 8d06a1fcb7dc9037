"""How long a build will take, by the earlier builds of the same directory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tasks.evidence.receipts import write_atomically

__all__ = ["PastBuild", "about", "past_builds", "remember"]

_KEPT = 20


@dataclass(frozen=True)
class PastBuild:
    """The watched units that a build compiled, and the seconds that it took, link included."""

    units: tuple[str, ...]
    seconds: float


def _file(state: Path) -> Path:
    return state / "builds.json"


def past_builds(state: Path) -> list[PastBuild]:
    """Builds of this directory, oldest first; what cannot be read counts as none."""
    try:
        data = json.loads(_file(state).read_text(encoding="utf-8"))
        return [PastBuild(tuple(map(str, one["units"])), float(one["seconds"])) for one in data]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def remember(state: Path, units: Iterable[str], seconds: float) -> None:
    """Add a finished build; the oldest beyond twenty are forgotten."""
    builds = [*past_builds(state), PastBuild(tuple(sorted(units)), round(seconds, 1))][-_KEPT:]
    write_atomically(_file(state), json.dumps([asdict(build) for build in builds]))


def about(builds: Sequence[PastBuild], units: Iterable[str]) -> float | None:
    """Seconds: those of the last build of the same units, else of the last one in proportion; None without any."""
    wanted = tuple(sorted(units))
    for build in reversed(builds):
        if build.units == wanted:
            return build.seconds
    last = next((build for build in reversed(builds) if build.units), None)
    return None if last is None or not wanted else last.seconds * len(wanted) / len(last.units)
