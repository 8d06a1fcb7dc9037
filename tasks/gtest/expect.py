"""Which attention path a test must dispatch, by its name: ONNX Runtime's own names, or the user's table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tasks.gtest.filters import matches

__all__ = ["DEFAULT_PATHS", "Expectations"]

# ONNX Runtime's names. A CPU test dispatches nothing, whatever else its name says.
DEFAULT_PATHS = (
    ("*_CPU", "none"),
    ("*MEA*", "mea"),
    ("*ForceFlashDisabled*", "mea"),
    ("*Flash*", "flash"),
)
# Flash attention exists for half precision on compute capability 8.0 and newer.
_HALF = re.compile(r"FP16|BF16|BFloat16|Float16|Half", re.I)
_FLASH_CAPABILITY = 80


@dataclass(frozen=True)
class Expectations:
    """The table to go by. `table` None means the default one, in which Flash depends on build and GPU."""

    table: tuple[tuple[str, str], ...] | None
    flash_built: bool
    quick_build: bool
    capability: int | None

    def of(self, name: str) -> str:
        """``mea``, ``flash``, ``any`` or ``none``; ``any`` where nothing matches."""
        for pattern, path in DEFAULT_PATHS if self.table is None else self.table:
            if matches(pattern, name):
                conditional = self.table is None and path == "flash"
                return "any" if conditional and not self._flash_runs(name) else path
        return "any"

    def _flash_runs(self, name: str) -> bool:
        return (self.flash_built and not self.quick_build and self.capability is not None
                and self.capability >= _FLASH_CAPABILITY and _HALF.search(name) is not None)
