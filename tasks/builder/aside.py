"""Files set aside so that the build makes them again. Knows nothing of receipts or build tools."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["Aside"]


class Aside:
    """Files moved out of the way, so that the build tool makes them; put back where it does not."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moved: list[tuple[Path, Path]] = []

    def move(self, outputs: Iterable[str]) -> None:
        """Move those that exist into the folder, which is made."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for output in map(Path, outputs):
            kept = self._folder / output.name
            if any(kept == taken for _, taken in self._moved):
                kept = self._folder / f"{len(self._moved)}.{output.name}"
            if output.exists():
                output.replace(kept)
                self._moved.append((output, kept))

    def restore(self) -> list[Path]:
        """Put back what has not been made anew; says what that is."""
        back = []
        for output, kept in self._moved:
            if not output.exists() and kept.exists():
                kept.replace(output)
                back.append(output)
        self._moved.clear()
        return back
