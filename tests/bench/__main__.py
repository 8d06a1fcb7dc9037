"""`python -m tests.bench`: what the commands cost beside make, ninja, a plain doit graph and the manual ritual.

Every figure is a whole process, medians of runs taken in turn, on a generated tree of ONNX Runtime's
size (700 units, 3,000 headers, 330 headers a unit) that is compiled by the host compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.devicecode import device_code_figures
from tests.bench.generated import FAMILIES, FMHA, generate
from tests.bench.loader import loader_figures
from tests.bench.measure import Figure, in_turn, run
from tests.support import PROJECT, clean_environment

_PROVIDER = "onnxruntime_providers_cuda"
_STOCK = """def task_one():
    return {"actions": ["true"], "file_dep": ["dodo.py"], "targets": []}
"""
# The same dependencies as this project's, in doit's own words.
_STOCK_EDIT = """from pathlib import Path

HEADERS = [*Path(@FMHA@).glob("*.h"), *Path(@INCLUDE@).glob("part*/*.h")]


def task_unit():
    for unit in sorted(Path(@FMHA@).glob("*.cu")):
        yield {"name": unit.stem, "actions": [["touch", str(unit)]], "file_dep": [unit, *HEADERS]}


def task_build():
    return {"actions": [@BUILD@], "task_dep": ["unit"]}
"""
Timing = tuple[float, float, float]


class Bench:
    """One generated tree, built once with make and once with ninja, under proof in both; and with make and ccache."""

    def __init__(self, folder: Path, units: int, headers: int) -> None:
        self.root = folder / "ort"
        generate(self.root, units, headers, each=max(10, headers // 9))
        self.make, self.ninja = self.root / "build/Linux/Make", self.root / "build/Linux/Ninja"
        (folder / "stock").mkdir()
        (folder / "stock/dodo.py").write_text(_STOCK)
        self.environ = clean_environment()
        self.environ.pop("PYTHONDONTWRITEBYTECODE")  # a user's modules are compiled once
        self.environ["CCACHE_DIR"] = str(folder / "ccache")
        for build_dir, generator in ((self.make, "Unix Makefiles"), (self.ninja, "Ninja")):
            self._configure(build_dir, generator)
            self.doit("rebuild_fmha", build_dir)
        self.cached = self.root / "build/Cached/Make" if shutil.which("ccache") else None
        if self.cached is not None:
            self._configure(self.cached, "Unix Makefiles", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
            self.plain(self.cached)
        (folder / "stock-edit").mkdir()
        words = {"@FMHA@": str(self.root / FMHA), "@INCLUDE@": str(self.root / "include"),
                 "@BUILD@": self._build_words(self.make)}
        text = _STOCK_EDIT
        for mark, value in words.items():
            text = text.replace(mark, repr(value))
        (folder / "stock-edit/dodo.py").write_text(text)

    def _configure(self, build_dir: Path, generator: str, *options: str) -> None:
        self.run("cmake", "-G", generator, "-S", str(self.root / "cmake"), "-B", str(build_dir),
                 "-DCMAKE_BUILD_TYPE=Release", *options)

    @staticmethod
    def _build_words(build_dir: Path) -> list[str]:
        return ["cmake", "--build", str(build_dir), "--target", _PROVIDER, "--parallel", "2"]

    def run(self, *words: str, cwd: Path = PROJECT) -> Timing:
        return run(words, cwd, self.environ)

    def doit(self, task: str, build_dir: Path) -> Timing:
        return self.run(sys.executable, "-m", "doit", *task.split(), f"ort_root={self.root}", f"build_dir={build_dir}")

    def plain(self, build_dir: Path) -> Timing:
        return self.run(*self._build_words(build_dir))

    def stock(self, name: str = "stock") -> Timing:
        return self.run(sys.executable, "-m", "doit", cwd=self.root.parent / name)

    def unit(self, name: str) -> Path:
        return self.root / FMHA / f"{name}.cu"

    def edit(self, path: Path) -> None:
        with path.open("a") as file:
            file.write(f"// {time.time_ns()}\n")

    def edited(self, path: Path, build: Callable[[], Timing]) -> Timing:
        self.edit(path)
        return build()

    def ritual(self, path: Path) -> Timing:
        """Edit, touch every unit of the folder, build, compare times."""
        self.edit(path)
        for name in FAMILIES:
            os.utime(self.unit(name))
        timing = self.plain(self.make)
        for built in (*self.make.rglob("fmha_*.o"), *self.make.glob("*.so")):
            assert built.stat().st_mtime_ns > path.stat().st_mtime_ns
        return timing


def _nothing_to_do(bench: Bench, rounds: int) -> dict[str, Figure]:
    return in_turn({
        "plain doit graph of one task": bench.stock,
        "doit status": lambda: bench.doit("status", bench.make),
        "doit rebuild_fmha": lambda: bench.doit("rebuild_fmha", bench.make),
        "doit verify": lambda: bench.doit("verify", bench.make),
        "doit audit": lambda: bench.doit("audit", bench.make),
        "doit rebuild_fmha, Ninja": lambda: bench.doit("rebuild_fmha", bench.ninja),
        "doit audit, Ninja": lambda: bench.doit("audit", bench.ninja),
        "cmake --build, Makefiles": lambda: bench.plain(bench.make),
        "cmake --build, Ninja": lambda: bench.plain(bench.ninja),
    }, rounds)


def _edits(bench: Bench, rounds: int) -> dict[str, Figure]:
    header, unit = bench.root / FMHA / "kernel_forward.h", bench.unit("fmha_sm80")

    def edit_then(build: Callable[[], Timing]) -> Callable[[], Timing]:
        return lambda: bench.edited(header, build)

    cached = bench.cached
    figures = in_turn({
        "header of four units: doit verify": edit_then(lambda: bench.doit("verify", bench.make)),
        "header of four units: touch, build, compare times": lambda: bench.ritual(header),
        "header of four units: cmake --build": edit_then(lambda: bench.plain(bench.make)),
        **({"header of four units: cmake --build behind ccache": edit_then(lambda: bench.plain(cached))}
           if cached is not None else {}),
        "header of four units: plain doit graph that touches and builds": edit_then(lambda: bench.stock("stock-edit")),
        "header of four units: doit verify, Ninja": edit_then(lambda: bench.doit("verify", bench.ninja)),
        "header of four units: cmake --build, Ninja": edit_then(lambda: bench.plain(bench.ninja)),
        "one unit: doit verify": lambda: bench.edited(unit, lambda: bench.doit("verify", bench.make)),
        "one unit: cmake --build": lambda: bench.edited(unit, lambda: bench.plain(bench.make)),
        "one unit: touch, build, compare times": lambda: bench.ritual(unit),
    }, rounds)
    bench.doit("rebuild_fmha", bench.make)
    return figures


def _closures(bench: Bench) -> dict[str, Any]:
    """The closures of all units, cold and kept, and the compiler's own `-M` on a sample."""
    from tasks.checkout.locate import locate
    from tasks.checkout.model import read_checkout
    from tasks.closure.cache import ClosureCache

    location = locate(bench.root, bench.make, bench.root)
    checkout = read_checkout(location, "auto", "onnxruntime_provider_test")
    units = {unit.name: (unit.source, unit.compile_line(bench.environ).search) for unit in checkout.units}
    kept = bench.root.parent / "closures"

    def look() -> float:
        started = time.perf_counter()
        cache = ClosureCache(kept, (), (str(bench.root),))
        cache.closures(units)
        took = time.perf_counter() - started
        cache.save()
        return took

    cold = look()
    time.sleep(0.1)
    look()
    warm = min(look() for _ in range(3))
    sample = list(units.values())[:: max(1, len(units) // 20)]
    started = time.perf_counter()
    for source, search in sample:
        folders = [f"-I{folder}" for folder in (*search.quote, *search.angle)]
        bench.run("g++", "-M", "-MF", "/dev/null", "-x", "c++", *folders, str(source))
    compiler = (time.perf_counter() - started) / len(sample) * len(units)
    return {"units": len(units), "cold_s": cold, "kept_s": warm, "compiler_M_s_extrapolated": compiler}


def _show(console: Console, title: str, figures: dict[str, Figure]) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("", "wall s", "processor s", "peak MB", "of the first"):
        table.add_column(column, justify="left" if not column else "right")
    first = next(iter(figures.values())).median
    for name, figure in figures.items():
        table.add_row(name, f"{figure.median:.2f}", f"{figure.median_cpu:.2f}", f"{figure.peak_mb:.0f}",
                      f"{figure.median / first:.2f}")
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write every figure there")
    parser.add_argument("--rounds", type=int, default=7, help="counted runs of each command (7)")
    parser.add_argument("--units", type=int, default=700)
    parser.add_argument("--headers", type=int, default=3_000)
    parser.add_argument("--provider", metavar="FILE", type=Path,
                        help="also walk this libonnxruntime_providers_cuda.so, beside cuobjdump where there is one")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 110)
    folder = Path(tempfile.mkdtemp(prefix="fmha-bench-"))
    try:
        small = Bench(folder / "small", arguments.units // 10, arguments.headers // 10)
        bench = Bench(folder / "large", arguments.units, arguments.headers)
        groups = {"nothing to do": _nothing_to_do(bench, arguments.rounds),
                  "nothing to do, a tenth of the tree": _nothing_to_do(small, arguments.rounds),
                  "an edit": _edits(bench, max(3, arguments.rounds // 2)),
                  "a test run of which it is known what it mapped": loader_figures(folder, 2 * arguments.rounds),
                  "device code of a provider": device_code_figures(folder, arguments.provider, arguments.rounds)}
        closures = _closures(bench)
    finally:
        shutil.rmtree(folder)
    for title, figures in groups.items():
        _show(console, title, figures)
    console.print(f"closures of {closures['units']} units: {closures['cold_s']:.2f} s from the sources, "
                  f"{closures['kept_s']:.3f} s kept; g++ -M: {closures['compiler_M_s_extrapolated']:.0f} s "
                  "(20 units, extrapolated)")
    if arguments.json:
        document = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                    "python": platform.python_version(), "closures": closures,
                    "groups": {title: {name: {"wall": figure.wall, "cpu": figure.cpu, "peak_mb": figure.peak_mb}
                                       for name, figure in figures.items()} for title, figures in groups.items()}}
        Path(arguments.json).write_text(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
