"""Which variables of the environment change what nvcc runs, by its own account."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tasks.checkout.compile_line import COMPILER_VARIABLES
from tests.binary.toolkit import tool

# Variables that nvcc's binary or its nvcc.profile name, and a value that would show in its commands.
NAMED = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "INCLUDES", "SYSTEM_INCLUDES", "CUDAFE_FLAGS", "PTXAS_FLAGS",
         "NVVM_FLAGS", "CICC_PATH", "NVVMIR_LIBRARY_DIR", "TOP", "OCG_FLAGS", "LLVMC_FLAGS", "NVLINK_FLAGS"]


def commands(folder: Path, **variables: str) -> list[str]:
    """What nvcc would run for a unit, temporary files by one name; without the lines that only show its settings."""
    clean = {name: value for name, value in os.environ.items() if name not in (*COMPILER_VARIABLES, *NAMED)}
    nvcc = tool("nvcc")
    assert nvcc is not None, "this test needs nvcc"
    done = subprocess.run([nvcc, "--dryrun", "--keep", "-c", "x.cu"], cwd=folder, env={**clean, **variables},
                          capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    settings = "#$ _", *(f"#$ {name}=" for name in ("PATH", *NAMED))
    return [line for line in lines if line.startswith("#$ ") and not line.startswith(settings)]


@pytest.mark.cuda
def test_every_variable_that_changes_what_nvcc_runs_counts(tmp_path: Path) -> None:
    (tmp_path / "x.cu").write_text("")
    plain = commands(tmp_path)
    assert len(plain) > 3
    assert commands(tmp_path) == plain
    changing = {name for name in NAMED if commands(tmp_path, **{name: "-DX"}) != plain}
    assert changing >= {"NVCC_APPEND_FLAGS", "INCLUDES", "PTXAS_FLAGS"}
    assert changing <= set(COMPILER_VARIABLES)
