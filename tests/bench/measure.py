"""Times whole processes, in turn, so that a machine whose speed drifts drifts for all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Figure", "in_turn", "run"]


@dataclass
class Figure:
    """Wall and processor seconds of one command's runs, and its largest resident set in MB."""

    name: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_mb: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.wall)

    @property
    def median_cpu(self) -> float:
        return statistics.median(self.cpu)


def run(words: Sequence[str], cwd: Path, env: Mapping[str, str], expected: int = 0) -> tuple[float, float, float]:
    """(wall s, user + system s, MB) of one process with its children; the MB are never less than this process has."""
    started = time.monotonic()
    process = subprocess.Popen(words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != expected:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}, expected {expected}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def in_turn(commands: Mapping[str, Callable[[], tuple[float, float, float]]], rounds: int) -> dict[str, Figure]:
    """Each command once a round, after one round that is not counted."""
    figures = {name: Figure(name) for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            wall, cpu, peak = command()
            if number:
                figure = figures[name]
                figure.wall.append(wall)
                figure.cpu.append(cpu)
                figure.peak_mb = max(figure.peak_mb, peak)
    return figures
