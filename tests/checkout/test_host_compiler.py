"""Which host compiler nvcc takes, held against what the real nvcc says that it would run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tasks.checkout.compile_line import read_compile_line
from tasks.checkout.toolchain import host_compiler
from tests.binary.toolkit import tool

pytestmark = pytest.mark.cuda


class Place:
    """A working directory with host compilers under several names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        nvcc, gcc = tool("nvcc"), shutil.which("gcc")
        assert nvcc is not None, "these tests need nvcc"
        assert gcc is not None, "these tests need gcc"
        self.nvcc = nvcc
        for name in ("folder/gcc", "folder/g++", "other/gcc", "path/my-gcc", "path/gcc", "here-gcc", "only-here"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).symlink_to(gcc)
        (root / "x.cu").write_text("")
        (root / "w.rsp").write_text("-ccbin=other")

    def environ(self, **variables: str) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("NVCC_")}
        return {**clean, "PATH": f"{self.root / 'path'}:{clean['PATH']}", **variables}

    def ours(self, *words: str, **variables: str) -> str | None:
        line = read_compile_line((str(self.nvcc), *words, "-c", "x.cu"), str(self.root), self.environ(**variables))
        return host_compiler(line, self.environ(**variables))

    def real(self, *words: str, **variables: str) -> str | None:
        """The program that nvcc would preprocess the unit with; None where it finds none."""
        environ = self.environ(**variables)
        done = subprocess.run([self.nvcc, *words, "--dryrun", "-c", "x.cu"], cwd=self.root, env=environ,
                              capture_output=True, text=True, check=False)
        found = re.search(r"^#\$ (\S+) -D__CUDA_ARCH", done.stderr, re.M)
        if done.returncode or found is None:
            return None
        name = found[1].replace('"', "")
        return os.path.join(self.root, name) if "/" in name else shutil.which(name, path=environ["PATH"])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize(("words", "variables", "found"), [
    ("", {}, "path/gcc"),
    ("-ccbin folder", {}, "folder/gcc"),
    ("-ccbin=folder/", {}, "folder/gcc"),
    ("--compiler-bindir folder/g++", {}, "folder/g++"),
    ("--compiler-bindir=./here-gcc", {}, "here-gcc"),
    ("-ccbin my-gcc", {}, "path/my-gcc"),
    ("-ccbin other -ccbin folder", {}, "folder/gcc"),
    ("-optf w.rsp", {}, "other/gcc"),
    ("", {"NVCC_CCBIN": "folder"}, "folder/gcc"),
    ("-ccbin other", {"NVCC_CCBIN": "folder"}, "other/gcc"),
    ("-ccbin other", {"NVCC_PREPEND_FLAGS": "-ccbin folder"}, "other/gcc"),
    ("-ccbin other", {"NVCC_APPEND_FLAGS": "-ccbin folder"}, "folder/gcc"),
    ("", {"NVCC_APPEND_FLAGS": "-ccbin other", "NVCC_CCBIN": "folder"}, "other/gcc"),
])
def test_the_host_compiler_is_the_one_that_nvcc_takes(place: Place, words: str, variables: dict[str, str],
                                                            found: str) -> None:
    ours = place.ours(*words.split(), **variables)
    assert ours is not None
    assert os.path.normpath(ours) == f"{place.root}/{found}"
    real = place.real(*words.split(), **variables)
    assert real is not None
    assert os.path.samefile(os.path.dirname(ours), os.path.dirname(real))
    assert os.path.basename(ours) == os.path.basename(real)


@pytest.mark.parametrize("words", ["-ccbin only-here", "-ccbin nowhere", "-ccbin nothing/here"])
def test_what_nvcc_does_not_find_is_none(place: Place, words: str) -> None:
    assert place.ours(*words.split()) is place.real(*words.split()) is None


def test_a_unit_that_nvcc_does_not_compile_has_none(place: Place) -> None:
    line = read_compile_line(("/usr/bin/g++", "-c", "x.cc"), str(place.root), {"NVCC_CCBIN": "folder"})
    assert line.ccbin == ""
    assert host_compiler(line, place.environ()) is None
