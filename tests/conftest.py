from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Tree

GENERATORS = ["Unix Makefiles", "Ninja"]
PROGRAMS = Path(__file__).parent / "gtest" / "programs"


@pytest.fixture(scope="session")
def built_trees(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tree]:
    """Trees by generator, built once: host compiler only, and the build system knows nothing of the headers."""
    trees: dict[str, Tree] = {}
    folder = tmp_path_factory.mktemp("trees")
    for generator in GENERATORS:
        name = generator.split()[-1].lower()
        tree = Tree(folder / name, generator, ["MINIORT_HOST_ONLY=ON", "MINIORT_DEPFILE_GAP=ON",
                                               "onnxruntime_ENABLE_PYTHON=ON"])
        tree.configure()
        done = tree.make()
        assert done.status == 0, done.text
        trees[generator] = tree
    return trees


@pytest.fixture(params=GENERATORS)
def tree(request: pytest.FixtureRequest, built_trees: dict[str, Tree]) -> Iterator[Tree]:
    """A fresh tree of each generator."""
    tree = built_trees[request.param]
    tree.pristine()
    return tree


@pytest.fixture
def make_tree(built_trees: dict[str, Tree]) -> Tree:
    """A fresh tree of the Makefile generator, for what no generator changes."""
    tree = built_trees["Unix Makefiles"]
    tree.pristine()
    return tree


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled programs. Fails, never skips, where GoogleTest is missing."""
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.fail("These tests need a C++ compiler: apt-get install g++", pytrace=False)
    probe = subprocess.run([compiler, "-x", "c++", "-E", "-", "-o", os.devnull], input=b"#include <gtest/gtest.h>",
                           capture_output=True, check=False)
    if probe.returncode:
        pytest.fail("These tests need the real GoogleTest: apt-get install libgtest-dev", pytrace=False)
    folder = tmp_path_factory.mktemp("programs")
    library = ["-shared", "-fPIC"]
    commands = [
        [str(PROGRAMS / "scripted.cc"), "-o", str(folder / "scripted"), "-lgtest", "-lpthread", "-ldl"],
        [str(PROGRAMS / "shapes.cc"), "-o", str(folder / "shapes"), "-lgtest", "-lgtest_main", "-lpthread"],
        [*library, str(PROGRAMS / "provider.cc"), "-o", str(folder / "provider.so")],
        [*library, str(PROGRAMS / "provider.cc"), "-o", str(folder / "libcudnn.so.9")],
        [*library, str(PROGRAMS / "provider.cc"), "-o", str(folder / "needy.so"), "-Wl,--no-as-needed",
         f"-L{folder}", "-l:libcudnn.so.9"],
    ]
    first = [subprocess.Popen([compiler, "-std=c++17", "-O0", *command]) for command in commands[:2]]
    for command in commands[2:]:
        subprocess.run([compiler, *command], check=True)
    assert [process.wait() for process in first] == [0, 0]
    (folder / "libcudnn.so.9").unlink()
    return folder
