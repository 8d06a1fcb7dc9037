"""What may be cleaned: the rules, over facts that others gathered. Reads no file and no process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.box.processes import Holder
from tasks.box.tally import Tally

__all__ = ["ACTIVE", "RECENT", "STALE", "UNCLEAR", "Folder", "judge"]

ACTIVE, RECENT, STALE, UNCLEAR = "active", "yours, recent", "stale and regenerable", "unclear"

_DAY_S = 86400.0


@dataclass(frozen=True)
class Folder:
    """A folder with everything that counts. `identity` is (device, inode) of the directory that was judged.

    `owner` is a user's name, `age_s` seconds since a build wrote a file in it, None where none did. `reasons` tell
    why the verdict is not `stale and regenerable`.
    """

    path: Path
    kind: str
    identity: tuple[int, int] | None
    owner: str
    configuration: str
    generator: str
    tally: Tally
    age_s: float | None
    holders: tuple[Holder, ...]
    verdict: str
    reasons: tuple[str, ...]


def judge(tally: Tally, age_s: float | None, limit_days: float, *, configured: bool, mine: bool,
          holders: Sequence[Holder], shape: Sequence[str], unknowns: Sequence[str],
          other_age_s: float | None) -> tuple[str, tuple[str, ...]]:
    """(verdict, reasons). `shape` tells why it is no plain build folder of this checkout and user, `unknowns` what
    keeps one from knowing that nobody uses it; `other_age_s` is the age of the newest file that no build writes.
    """
    limit = limit_days * _DAY_S
    if configured:
        return ACTIVE, ("the configured build directory", *(str(holder) for holder in holders))
    if holders:
        return ACTIVE, tuple(str(holder) for holder in holders)
    if not mine or shape:
        return UNCLEAR, tuple(shape)
    if age_s is not None and age_s <= limit:
        return RECENT, ()
    reasons = list(tally.doubts.values()) + list(unknowns)
    if age_s is None:
        reasons.append("it holds no file that a build writes")
    if other_age_s is not None and other_age_s <= limit:
        reasons.append(f"{tally.other_path} is newer than {limit_days:g} days, and not a file that a build writes")
    return (UNCLEAR, tuple(reasons)) if reasons else (STALE, ())
