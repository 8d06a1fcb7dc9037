"""Assembles the user's build command from what the build directory says. Runs nothing."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from tasks.errors import UserError

__all__ = ["assemble", "default_jobs", "shown"]

# One nvcc process of a CUTLASS attention unit peaks at 3 to 4 GB.
_BYTES_PER_JOB = 4_000_000_000
_PLACES = ("build_dir", "build_root", "config", "jobs", "targets")


def default_jobs(threads: int = 1) -> int:
    """Parallel compile jobs: as many as cores and available memory (4 GB each) allow.

    `threads` is how many compiles each of them runs at once (nvcc's `--threads`).
    """
    from tasks.box.limits import read_limits

    limits = read_limits()
    return max(1, int(min(limits.cores, limits.memory // _BYTES_PER_JOB)) // threads)


def _script_command(ort_root: Path, build_dir: Path, config: str, jobs: int, target: str) -> list[str]:
    words = [str(ort_root / "build.sh"), "--build_dir", str(build_dir.parent), "--config", config, "--build",
             "--parallel", str(jobs), "--target", target]
    # ORT's build.py refuses to run as root without being told.
    return [*words, "--allow_running_as_root"] if os.geteuid() == 0 else words


def _filled(template: Sequence[str], places: dict[str, str], targets: Sequence[str]) -> list[str]:
    words: list[str] = []
    for word in template:
        if word == "{targets}":
            words.extend(targets)
            continue
        for name, value in places.items():
            word = word.replace("{" + name + "}", value)
        words.append(word)
    return words


def _checked(words: list[str], ort_root: Path) -> list[str]:
    """The command with its program as an absolute path, or an error that names it."""
    program = words[0]
    path = os.path.join(ort_root, program) if "/" in program else shutil.which(program)
    mend = "mend build_command in fmha.toml, or leave it out for the default"
    if path is None or not os.path.exists(path):
        raise UserError(f"The build command's program {program!r} does not exist.", mend)
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        raise UserError(f"The build command's program {path} is not executable.", f"chmod +x {shlex.quote(path)}")
    return [path, *words[1:]]


def assemble(ort_root: Path, build_dir: Path, config: str, targets: Sequence[str], jobs: int,
             template: Sequence[str] | None = None) -> list[list[str]]:
    """The commands to run, in order, as words.

    `template` is the user's `build_command`. Without one: `build.sh` once for each target where the
    folder is `<dir>/<config>` (its `--target` takes one name), else one `cmake --build`.
    """
    if template is not None:
        if not template:
            raise UserError("build_command is empty.", "leave it out for the default, or name a program")
        places = {"build_dir": str(build_dir), "build_root": str(build_dir.parent), "config": config,
                  "jobs": str(jobs), "targets": " ".join(targets)}
        return [_checked(_filled(template, places, targets), ort_root)]
    if build_dir.name == config and (ort_root / "build.sh").is_file():
        return [_checked(_script_command(ort_root, build_dir, config, jobs, target), ort_root) for target in targets]
    words = ["cmake", "--build", str(build_dir), "--parallel", str(jobs), "--target", *targets]
    return [_checked(words, ort_root)]


def shown(words: Sequence[str]) -> str:
    """The command as it can be pasted into a shell."""
    return shlex.join(words)
