from __future__ import annotations

from pathlib import Path

import pytest

from tests.binary.toolkit import Toolkit, tool


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Toolkit:
    nvcc = tool("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc: not on PATH, nor in CUDA_HOME, nor from PyPI")
    return Toolkit(nvcc, tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def cuobjdump() -> Path:
    found = tool("cuobjdump")
    if found is None:
        pytest.skip("no cuobjdump: pip install nvidia-cuda-cuobjdump")
    return found
