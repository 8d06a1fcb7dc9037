"""A command loads what it uses: nobody waits for modules of another path."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time

import pytest

from tests.support import PROJECT, Tree, clean_environment

# What only a build, a test run, device code or a mistake needs.
_HEAVY = {"plumbum", "psutil", "rich", "difflib", "elftools", "tasks.building", "tasks.builder.run",
          "tasks.box.space", "tasks.binary.elf", "tasks.gtest", "tasks.closure.resolve",
          "tasks.checkout.makefiles", "tasks.checkout.ninja"}


def _loaded(tree: Tree, *arguments: str) -> set[str]:
    done = subprocess.run([sys.executable, "-X", "importtime", "-m", "doit", *arguments], cwd=PROJECT,
                          env=clean_environment(tree.environment()), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "tasks.session" in modules
    return modules


@pytest.mark.parametrize("command", ["list", "status", "rebuild_fmha"])
def test_a_command_that_finds_nothing_to_do_loads_nothing_of_a_build(tree: Tree, command: str) -> None:
    # An old copy of the provider, of an earlier test, is told with the build's own line that makes it.
    name = "libonnxruntime_providers_cuda.so"
    for copy in (tree.build_dir / "onnxruntime").rglob(name):
        shutil.copy(tree.build_dir / name, copy)
    time.sleep(0.05)
    tree.doit("status")
    assert sorted(_loaded(tree, command) & _HEAVY) == []


def test_a_list_judges_nothing(tree: Tree) -> None:
    assert "tasks.guarded_build" not in _loaded(tree, "list")
