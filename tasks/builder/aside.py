"""Files set aside so that the build makes them again. Knows nothing of receipts or build tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Aside"]


class Aside:
    """Files moved out of the way, so that the build tool makes them; put back where it does not.

    In the build directory's `state` folder each lies at its own absolute path: so what a killed run has left there is
    known for what it is.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / "previous" / "by-path"

    def move(self, outputs: Iterable[str]) -> None:
        """Move those that exist into the folder, which is made."""
        for output in map(Path, outputs):
            if output.exists():
                kept = self._folder / output.relative_to(output.anchor)
                kept.parent.mkdir(parents=True, exist_ok=True)
                output.replace(kept)

    def restore(self) -> list[Path]:
        """Put back what has not been made anew, also since an earlier run; says what that is. The rest is removed."""
        back = []
        for folder, _, names in os.walk(self._folder):
            for kept in (Path(folder, name) for name in names):
                output = Path("/") / kept.relative_to(self._folder)
                if output.exists() or not output.parent.is_dir():
                    kept.unlink()
                else:
                    kept.replace(output)
                    back.append(output)
        return sorted(back)
