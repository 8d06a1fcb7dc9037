"""A CUDA compiler for the tests: found, not assumed; each object is compiled once a session."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# One kernel with each thing that a compile makes vary or that a fingerprint must see: internal linkage, a
# template's instance, shared memory, a constant, a variable, a string literal, host code.
SOURCE = """\
#include <cstdio>
__constant__ float table[4] = {1.f, 2.f, 3.f, 4.f};
__device__ int counter = 7;
namespace { __global__ void hidden(float* x) { x[threadIdx.x] += table[threadIdx.x & 3]; } }
template <typename T, int N> __global__ void scale(T* x, T f) {
  __shared__ T s[N]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[N - 1 - threadIdx.x] * f;
}
template __global__ void scale<double, 32>(double*, double);
static __global__ void count(int* p) { atomicAdd(&counter, *p); printf("%d\\n", *p); }
void launch(float* x, int* p) { hidden<<<1, 4>>>(x); scale<float, 64><<<1, 64>>>(x, 2.f); count<<<1, 1>>>(p); }
"""

ARCHS = ("-gencode", "arch=compute_90a,code=sm_90a", "-gencode", "arch=compute_90,code=compute_90")


def tool(name: str) -> Path | None:
    """A program of the CUDA toolkit: on PATH, in CUDA_HOME, or from PyPI beside this interpreter."""
    folders = [Path(sysconfig.get_path("purelib")) / "nvidia" / "cu13" / "bin", Path(sys.executable).parent]
    if home := os.environ.get("CUDA_HOME"):
        folders.insert(0, Path(home) / "bin")
    found = shutil.which(name) or next((str(f / name) for f in folders if (f / name).is_file()), None)
    return Path(found) if found else None


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False,
                          stdin=subprocess.DEVNULL,
                          env={k: v for k, v in os.environ.items() if not k.startswith("NVCC_")})
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


class Toolkit:
    """nvcc with a folder to work in. A source's folder matters: a hash of its path is part of names."""

    def __init__(self, nvcc: Path, folder: Path) -> None:
        self.nvcc = nvcc
        self.folder = folder
        self._done: dict[tuple[object, ...], Path] = {}
        self._numbers = itertools.count()

    def compile(self, source: str, *flags: str, place: str = "here", mtime: int = 1_000_000_000,
                name: str = "unit") -> Path:
        """The object of `source` in the folder `place`; the same question has the same object."""
        key = (source, flags, place, mtime, name)
        if key not in self._done:
            # A folder a source: threads must not write each other's.
            folder = self.folder / place / hashlib.sha256(source.encode()).hexdigest()[:8]
            folder.mkdir(parents=True, exist_ok=True)
            unit = folder / f"{name}.cu"
            output = self.folder / f"{next(self._numbers)}.{name}.o"
            unit.write_text(source)
            os.utime(unit, (mtime, mtime))
            run(self.nvcc, *flags, "-Xcompiler", "-fPIC", "-c", unit, "-o", output)
            self._done[key] = output
        return self._done[key]

    def compile_all(self, sources: Sequence[tuple[str, str]], *flags: str) -> list[Path]:
        """The objects of several (source, name), two at a time."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda one: self.compile(one[0], *flags, name=one[1]), sources))

    def again(self, source: str, *flags: str, place: str = "here", name: str = "unit") -> Path:
        """The object of a second compile of the same source, touched meanwhile."""
        return self.compile(source, *flags, place=place, mtime=1_500_000_000, name=name)

    def device_link(self, objects: Sequence[Path], *flags: str) -> Path:
        output = self.folder / f"{next(self._numbers)}.dlink.o"
        run(self.nvcc, *flags, "-Xcompiler", "-fPIC", "-dlink", *objects, "-o", output)
        return output

    def link(self, objects: Sequence[Path], *flags: str, compiler: str = "g++", name: str = "provider.so") -> Path:
        """A shared library (with `-shared`) or an executable that is never run: undefined symbols are let be."""
        folder = self.folder / f"link{next(self._numbers)}"
        folder.mkdir()
        output = folder / name
        run(compiler, *objects, "-o", output, "-Wl,--unresolved-symbols=ignore-all", *flags)
        return output
