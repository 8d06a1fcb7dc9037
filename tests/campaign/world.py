"""What a scenario can do to the world of one column: edit, set times, build by hand, break; then ask the column."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.campaign.columns import Claim, Column, start
from tests.campaign.ledger import Ledger
from tests.campaign.oracle import Compile, read_compiles
from tests.campaign.place import Place
from tests.support import Run, end, wait_for

__all__ = ["World"]

_LONG_AGO = 1_000_000_000  # 2001


class World:
    """One column in one scenario. Paths are those of the checkout that the column is pointed at."""

    def __init__(self, place: Place, column: Column, ledger: Ledger) -> None:
        self.place = place
        self.column = column
        self.ledger = ledger
        self.cell = place.cell
        self._steps = 0

    # -- asking the column ------------------------------------------------------------------------------------

    def update(self, target: str = "") -> Claim:
        """The column brings all up to date and says whether it is; both are judged."""
        self._steps += 1
        step = f"update {self._steps}"
        before = self.ledger.see()
        claim = self.column.update(self.place, target)
        after = self.ledger.see()
        self.ledger.judge_recompiles(step, before, after)
        self.ledger.left_by_column(after)
        self.ledger.judge(step, claim, after)
        return claim

    def look(self) -> None:
        """The column says, without building, whether all is up to date; judged where it can say anything."""
        self._steps += 1
        claim = self.column.look(self.place)
        if claim is not None:
            self.ledger.judge(f"look {self._steps}", claim, self.ledger.see())

    def adopt(self) -> None:
        """The scenario's own starting state: brought up to date, and no part of what is judged."""
        self.column.update(self.place)
        assert self.ledger.see().holds or self.column.update(self.place).fresh, "no state to start from"
        self.ledger.begin()

    @contextmanager
    def running(self) -> Iterator[None]:
        """The column's build runs in the background meanwhile; all is over at the end of the block."""
        before = self.ledger.see()
        process = start(self.column, self.place)
        try:
            yield
            process.wait(timeout=120)
        finally:
            end(process)
            self._wait_for_orphans()
        self.ledger.note_compiles(before, self.ledger.see())

    def killed(self, after_s: float) -> None:
        """The column's build, killed after a moment; what it started may run to its end."""
        self._killed(lambda: time.sleep(after_s))

    def killed_at(self, *words: str) -> None:
        """The column's build, killed when a process with these words runs below it."""
        self._killed(lambda: self.wait_for_process(*words))

    def _killed(self, wait: Callable[[], None]) -> None:
        before = self.ledger.see()
        process = start(self.column, self.place)
        wait()
        end(process)
        self._wait_for_orphans()
        self.ledger.note_compiles(before, self.ledger.see())

    def by_hand(self, *options: str) -> Run:
        """A build by hand: what it remakes is not the column's."""
        with self.others():
            return self.place.build(*options)

    @contextmanager
    def others(self) -> Iterator[None]:
        """Whatever is compiled meanwhile is compiled by others, from the sources as they are at the end."""
        before = self.ledger.see()
        yield
        self.ledger.note_compiles(before, self.ledger.see())

    def processes(self, *words: str) -> list[psutil.Process]:
        """Processes that work in this place and have all `words` in their command line."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            if str(self.place.folder) in line and all(word in line for word in words):
                found.append(process)
        return found

    def _wait_for_orphans(self) -> None:
        wait_for(lambda: not self.processes(str(self.place.build_dir)), 60)

    def wait_for_compile_of(self, unit: str) -> None:
        """Until the compiler proper reads the unit, and a moment longer: its headers are read then."""
        self.wait_for_process("cc1plus", f"/{unit}.cu")

    def wait_for_process(self, *words: str) -> None:
        """Until such a process runs in this place, and a moment longer; not for ever: a column may start none."""
        with suppress(AssertionError):
            wait_for(lambda: self.processes(*words), 10)
            time.sleep(0.3)

    # -- sources ----------------------------------------------------------------------------------------------

    def header(self, name: str) -> Path:
        """A watched header."""
        return self.place.fmha / f"{name}.h"

    def unit(self, name: str) -> Path:
        """A unit beside the watched headers."""
        return self.place.fmha / f"{name}.cu"

    def edit(self, name: str | Path = "kernel_forward", by: int = 1) -> None:
        """Another revision, in as many digits: the header's code is another one."""
        path = self.header(name) if isinstance(name, str) else name
        text = path.read_text()
        new = re.sub(r"(#define MINIORT_\w+_REVISION )(\d+)", lambda m: f"{m[1]}{int(m[2]) + by}", text, count=1)
        assert new != text, f"{path} has no revision"
        path.write_text(new)

    def edit_upstream(self, path: Path, name: str) -> None:
        """Edit what the build makes the header `name` from: from now on that revision is right, and no other."""
        self.edit(path)
        revision = re.search(r"#define MINIORT_\w+_REVISION (\d+)", path.read_text())
        assert revision is not None
        self.ledger.meant[name] = int(revision[1])

    def write(self, path: Path, name: str, more: str = "", revision: int = 1) -> Path:
        """A new header that leaves its revision in whoever includes it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        macro = f"MINIORT_{name.upper()}_REVISION"
        path.write_text(f'#pragma once\n{more}\n#include "core/providers/cuda/unit_record.h"\n'
                        f"#define {macro} {revision}\nMINIORT_WATCHED_HEADER({name}, {macro})\n")
        return path

    def include(self, what: str, path: Path | None = None) -> None:
        """Add lines to the top of a file (by default to kernel_forward.h), behind `#pragma once`."""
        path = path or self.header("kernel_forward")
        text = path.read_text()
        mark = "#pragma once\n"
        path.write_text(text.replace(mark, f"{mark}{what}\n", 1) if mark in text else f"{what}\n{text}")

    def replace(self, path: Path, old: str, new: str) -> None:
        """Replace a text that must be there."""
        text = path.read_text()
        assert old in text, f"{path}: no {old!r}"
        path.write_text(text.replace(old, new))

    def age(self, path: Path, moment: float = _LONG_AGO) -> None:
        """Set the modification time."""
        os.utime(path, (moment, moment))

    @contextmanager
    def same_time(self, path: Path) -> Iterator[None]:
        """Whatever is done to the file, its modification time stays."""
        stat = path.stat()
        yield
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    # -- the build directory ----------------------------------------------------------------------------------

    def compile_of(self, unit: str) -> Compile:
        """A unit's compile."""
        return next(one for one in read_compiles(self.place.build_dir) if one.name == unit)

    def object(self, unit: str) -> Path:
        """A unit's object."""
        return self.compile_of(unit).object

    def objects(self) -> list[Path]:
        """The objects of all units."""
        return [one.object for one in read_compiles(self.place.build_dir)]

    def depfiles(self) -> list[Path]:
        """The depfiles that lie beside the objects (with ninja there are none)."""
        return [path for one in self.objects() if (path := one.with_name(f"{one.name}.d")).exists()]

    def forget_records(self) -> None:
        """make's records of the headers, as they are after configuring and before the first build."""
        for folder in self.place.build_dir.glob("CMakeFiles/*.dir"):
            (folder / "compiler_depend.internal").unlink(missing_ok=True)
            if (made := folder / "compiler_depend.make").exists():
                made.write_text("# Empty compiler generated dependencies file.\n")

    def reconfigure(self, *defines: str) -> None:
        """CMake once more, with more cache entries."""
        done = self.place.script("--update", "--cmake_extra_defines", *defines) if defines else \
            self.place.script("--update")
        assert done.status == 0, done.text

    def in_cmake(self, text: str, file: str = "onnxruntime_providers_cuda.cmake") -> None:
        """Add lines to the end of a CMake file of the checkout."""
        path = self.place.root / "cmake" / file
        path.write_text(path.read_text() + text + "\n")

    def on_each_target(self, command: str) -> None:
        """Add a CMake command on `${target}`, for every target that compiles a unit."""
        self.in_cmake("foreach(target ${onnxruntime_providers_cuda_target} ${provider_parts})\n"
                      f"  {command}\nendforeach()")

    def wrap_build(self, before: str = ":", after: str = "exit $status", build: str = '"$0.real" "$@"') -> None:
        """The next build.sh runs these shell lines around the real one; it is itself again afterwards."""
        script = self.place.root / "build.sh"
        real = script.with_name("build.sh.real")
        script.rename(real)
        script.write_text(f'#!/bin/bash\ncd "{self.place.root}"\ncp -p "$0.real" "$0.next"; mv "$0.next" "$0"\n'
                          f"{before}\n{build.replace('$0.real', '$0')}\nstatus=$?\n{after}\nexit $status\n")
        script.chmod(0o755)

    def swap(self, path: Path, change: Callable[[], object]) -> bytes:
        """Do something and give back what `path` held before."""
        held = path.read_bytes()
        change()
        return held

    def copy_build_dir(self, to: Path, times: bool) -> None:
        """Copy the build directory, with its times or with new ones."""
        shutil.copytree(self.place.build_dir, to, symlinks=True,
                        copy_function=shutil.copy2 if times else shutil.copyfile)
        if not times:
            shutil.copymode(self.place.build_dir / "onnxruntime_provider_test", to / "onnxruntime_provider_test")
