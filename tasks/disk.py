"""`doit disk`: what lies in the build folders, who uses it, and what could be won. Changes nothing, runs nothing."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import UserError
from tasks.session import Session

if TYPE_CHECKING:
    from tasks.box.space import FileSystem
    from tasks.box.survey import Box

__all__ = ["disk", "look_at_box"]


def _configured(session: Session) -> Path | None:
    """The build directory that the settings mean; None where they leave it open."""
    try:
        return session.location.build_dir
    except UserError:
        return session.settings.build_dir


def look_at_box(session: Session) -> Box:
    """Every build folder of the checkout, judged. Raises :class:`UserError` without settings or checkout."""
    from tasks.box.space import human
    from tasks.box.survey import survey
    from tasks.checkout.locate import _find_root
    from tasks.report.live import LiveLine

    settings = session.settings
    root = _find_root(settings.ort_root, settings.start_dir).resolve()
    line = LiveLine(session.output)
    try:
        return survey(root, _configured(session), settings.stale_after_days, started_in=session.start_dir,
                      progress=lambda sum_: line.draw(f"   {sum_.files:,} files, {human(sum_.bytes)}"))
    finally:
        line.clear()


def _space(session: Session, box: Box) -> list[FileSystem]:
    from tasks.box.space import file_systems

    return file_systems(box.configured or box.ort_root / "build", box.ort_root, session.environ, 0)


def disk(session: Session, json: bool = False) -> None:
    """`disk`: the folders, the sum, and what is free where a build writes."""
    from tasks.box.table import as_dict, box_lines, space_lines

    box = look_at_box(session)
    systems = _space(session, box)
    if not json:
        print("\n".join((*box_lines(box), *space_lines(systems))), flush=True)
        return
    document: dict[str, Any] = {
        "schema": 1, "task": "disk", "ort_root": str(box.ort_root), "build_root": str(box.ort_root / "build"),
        "build_dir": str(box.configured) if box.configured else None, "stale_after_days": box.stale_after_days,
        "folders": [as_dict(folder) for folder in box.folders], "gain_bytes": box.gain,
        "file_systems": [{"folders": [{"role": need.role, "path": str(need.folder)} for need in system.needs],
                          "free_bytes": system.free, "free_inodes": system.free_inodes, "bytes": system.size,
                          "read_only": system.read_only, "by_quota": system.by_quota} for system in systems]}
    session.document("disk", json_format.dumps(document, indent=1))
