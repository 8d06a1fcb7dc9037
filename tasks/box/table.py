"""Build folders and free space as lines for a terminal of 80 columns, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tasks.box.judge import STALE, Folder
from tasks.box.space import FileSystem, human
from tasks.box.survey import Box

__all__ = ["age", "as_dict", "box_lines", "folder_lines", "space_lines"]

# More files than this are never the trouble.
_FEW_INODES = 100_000


def age(seconds: float | None) -> str:
    """An age in its largest unit; `?` where it is not known."""
    if seconds is None:
        return "?"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return "now"


def _shown(folder: Folder, box: Box) -> str:
    path = folder.path
    return str(path.relative_to(box.ort_root)) if path.is_relative_to(box.ort_root) else str(path)


def folder_lines(folder: Folder, box: Box) -> Iterator[str]:
    """One row, and below it what explains the verdict."""
    made = " ".join(part for part in (folder.configuration, folder.generator) if part)
    yield f"{human(folder.tally.bytes):>8} {age(folder.age_s):>6}  {folder.verdict:<21}  {_shown(folder, box)}"
    notes = [", ".join(part for part in (made, f"of {folder.owner}") if part), *folder.reasons[:3]]
    if len(folder.reasons) > 3:
        notes.append(f"and {len(folder.reasons) - 3} more (--json has all)")
    for note in notes:
        yield f"{'':17}{note}"


def box_lines(box: Box) -> Iterator[str]:
    """All folders, then the sum that could be won."""
    yield f"checkout {box.ort_root}"
    if not box.folders:
        yield "  no build folder in it"
        return
    yield f"{'size':>8} {'built':>6}  {'verdict':<21}  folder"
    for folder in box.folders:
        yield from folder_lines(folder, box)
    many = len(box.stale)
    if many:
        yield (f"{human(box.gain):>8} could be won from {many} folder{'' if many == 1 else 's'}, not built for"
               f" {box.stale_after_days:g} days: doit disk_clean")
    else:
        yield f"nothing to clean: no folder is clearly yours, unused and not built for {box.stale_after_days:g} days"


def space_lines(systems: Iterable[FileSystem]) -> Iterator[str]:
    """What is free where a build writes."""
    for system in systems:
        told = [f"{human(system.free):>8} free{' (quota)' if system.by_quota else ''} of {human(system.size)}"]
        if system.free_inodes is not None and system.free_inodes < _FEW_INODES:
            told.append(f"{system.free_inodes} inodes (files) free")
        if system.read_only:
            told.append("mounted read-only")
        yield f"{', '.join(told)} for"
        yield f"{'':17}{', '.join(dict.fromkeys(need.role for need in system.needs))}"


def as_dict(folder: Folder) -> dict[str, Any]:
    """A folder as `--json` prints it; `age_days` is null where no build wrote a file."""
    tally = folder.tally
    return {
        "path": str(folder.path), "verdict": folder.verdict, "reasons": list(folder.reasons),
        "bytes": tally.bytes, "gain_bytes": tally.gain if folder.verdict == STALE else 0, "files": tally.files,
        "age_days": None if folder.age_s is None else round(folder.age_s / 86400, 3),
        "newest_file": tally.newest_path or None, "configuration": folder.configuration or None,
        "generator": folder.generator or None, "owner": folder.owner,
        "users": [{"pid": holder.pid, "name": holder.name, "user": holder.user, "how": holder.how}
                  for holder in folder.holders],
    }
