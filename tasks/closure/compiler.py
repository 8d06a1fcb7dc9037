"""Asks the compiler itself what a unit includes: its own compile line with `-M`. Needs a trusted build directory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tasks.checkout.compile_line import CompileLine
from tasks.child import start_child
from tasks.closure.depfile import Dialect, parse_depfile

__all__ = ["Listing", "list_command", "list_headers"]

_TICK_S = 0.02
# With a value in the next word.
_OUTPUT_OPTIONS = ("-o", "--output-file", "-MF", "-MT", "-MQ", "--dependency-output", "--dependency-target-name")
_DROPPED = ("-c", "--compile", "-dc", "-rdc", "-MD", "-MMD", "-MP", "-M", "-MM",
            "--generate-dependencies-with-compile", "--generate-nonsystem-dependencies-with-compile")


@dataclass(frozen=True)
class Listing:
    """What one unit's compiler lists: paths as it wrote them; `error` is its first line where it failed."""

    files: tuple[str, ...]
    error: str = ""


def list_command(line: CompileLine) -> list[str]:
    """The unit's compile line turned into a listing of what it opens; launchers left out."""
    words = list(line.words)
    words = words[words.index(line.compiler):] if line.compiler in words else words
    kept: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word in _OUTPUT_OPTIONS:
            next(waiting, "")
        elif word not in _DROPPED and not word.startswith(("-MF", "-MT", "-MQ")):
            kept.append(word)
    return [*kept, "-M"]


class _Run:
    """One compiler at work; its output goes to memory, since a pipe could fill up."""

    def __init__(self, words: Sequence[str], workdir: str, environ: Mapping[str, str]) -> None:
        self._out = os.memfd_create("listing")
        self._err = os.memfd_create("errors")
        try:
            self.process = start_child(words, workdir, environ, stdout=self._out, stderr=self._err,
                                       start_new_session=True)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        os.close(self._out)
        os.close(self._err)

    def end(self) -> None:
        from tasks.builder.run import end_session

        end_session(self.process)
        self.close()

    def listing(self, dialect: Dialect) -> Listing:
        """The result of the ended run."""
        content, told = (os.pread(fd, os.fstat(fd).st_size, 0) for fd in (self._out, self._err))
        self.close()
        if self.process.returncode != 0:
            lines = told.decode(errors="replace").strip().splitlines() or [f"exit status {self.process.returncode}"]
            return Listing((), next((line for line in lines if "error" in line), lines[0]))
        return Listing(parse_depfile(content, dialect).prerequisites)


def list_headers(lines: Mapping[str, CompileLine], environ: Mapping[str, str], jobs: int,
                 on_unit: Callable[[str, int], None]) -> dict[str, Listing]:
    """Ask for every unit, `jobs` at a time; `on_unit` hears each unit that begins and how many are done."""
    waiting = list(lines)
    running: dict[str, _Run] = {}
    found: dict[str, Listing] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                on_unit(name, len(found))
                try:
                    running[name] = _Run(list_command(lines[name]), lines[name].workdir, environ)
                except OSError as error:
                    found[name] = Listing((), f"{lines[name].compiler}: {error.strerror or error}")
            ended = [name for name, run in running.items() if run.process.poll() is not None]
            for name in ended:
                dialect: Dialect = "nvcc" if lines[name].language == "CUDA" else "gcc"
                found[name] = running.pop(name).listing(dialect)
            if not ended:
                time.sleep(_TICK_S)
    except BaseException:
        for run in running.values():
            run.end()
        raise
    return found
