from __future__ import annotations

from pathlib import Path

import pytest

from tests.closure.forest import Forest


@pytest.fixture
def forest(tmp_path: Path) -> Forest:
    return Forest(tmp_path)
