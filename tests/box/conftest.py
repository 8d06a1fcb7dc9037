from __future__ import annotations

from tests.box.world import world

__all__ = ["world"]
