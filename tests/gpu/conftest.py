from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gpu.trees import GpuTree
from tests.support import Tree


def _capability() -> int:
    """Of the first GPU, such as 90. Skips the test that asks where there is none."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        pytest.skip("needs an NVIDIA GPU: no driver here (libcuda.so.1)")
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if error := cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0):
        pytest.skip(f"needs a usable NVIDIA GPU: the driver answers with CUDA error {error}")
    cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return major.value * 10 + minor.value


@pytest.fixture
def capability() -> int:
    return _capability()


@pytest.fixture(scope="session")
def gpu_trees() -> dict[tuple[str, ...], GpuTree]:
    """Trees by generator and defines, each built by the first test that wants it."""
    return {}


@pytest.fixture
def tree_for(capability: int, gpu_trees: dict[tuple[str, ...], GpuTree],
             tmp_path_factory: pytest.TempPathFactory) -> Callable[..., GpuTree]:
    """A function from a generator and defines to a tree built for the GPU at hand, sources as they were."""
    def get(generator: str = "Ninja", *defines: str) -> GpuTree:
        key = (generator, *defines)
        if key not in gpu_trees:
            folder: Path = tmp_path_factory.mktemp("gpu") / "miniort"
            archs = () if any(define.startswith("CMAKE_CUDA_ARCHITECTURES") for define in defines) else (
                f"CMAKE_CUDA_ARCHITECTURES={capability}-real",)
            tree = Tree(folder, generator, (*defines, *archs, "MINIORT_DEPFILE_GAP=ON"))
            tree.configure()
            gpu_trees[key] = GpuTree(tree)
        gpu_trees[key].tree.pristine()
        return gpu_trees[key]
    return get
