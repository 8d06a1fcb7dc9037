"""Asks make and ninja themselves whether an edit of a header would recompile a unit. Needs a trusted build directory.

make: ``make -n -W HEADER -f <target>.dir/build.make OBJECT...`` prints what it would run and runs
nothing (through the top-level Makefile `-W` is lost). ninja: a dry run whose `builddir` is a folder
with copies of its logs, in which the header's path leads to a file of this moment. Nothing that a
build reads is touched.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tasks.checkout.graph import Statement, absolute
from tasks.checkout.words import split_words
from tasks.child import start_child
from tasks.closure.deps_log import DepsLog, read_deps_log, redirected
from tasks.closure.ninja_records import content_of
from tasks.closure.recorded import Files

__all__ = ["MOST_HEADERS", "Answers", "ask_make", "ask_ninja"]

# One dry run a header: cheap for the few that are watched, not for thousands.
MOST_HEADERS = 16
_TIMEOUT_S = 60
# What the whole asking may cost: a run that would not end in time, as the first one tells, is not begun,
# and the headers that are left stay unconfirmed.
_BUDGET_S = 2.0

# (object, header) -> whether the tool would recompile; pairs that it could not be asked about are missing.
Answers = Mapping[tuple[str, str], bool]


def _output(words: Sequence[str], cwd: Path, environ: Mapping[str, str]) -> tuple[int, str] | None:
    """The command's exit status and standard output; None where it cannot be run or takes too long."""
    import subprocess

    kept = {name: value for name, value in environ.items()
            if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "GNUMAKEFLAGS", "NINJA_STATUS")}
    try:
        process = start_child(words, cwd, kept, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, os.fsdecode(output)


def _compiled(output: str, objects: Iterable[str], build_dir: Path) -> set[str]:
    """The objects that the printed commands would make."""
    wanted = set(objects)
    found = set()
    for line in output.split("\n"):
        if " -o " in line:
            found |= wanted & {absolute(build_dir, word) for word in split_words(line.replace("$$", "$"))
                               if word.endswith((".o", ".obj"))}
    return found


def ask_make(program: str, build_dir: Path, environ: Mapping[str, str], statements: Sequence[Statement],
             headers: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]]) -> Answers:
    """Ask make about every pair of a statement's object and one of its `headers` (by object).

    `names` maps a header to the names under which make may know it.
    """
    by_folder: dict[str, list[str]] = defaultdict(list)
    for statement in statements:
        obj = statement.output
        by_folder[obj[: obj.find(".dir/") + len(".dir")]].append(obj)
    answers: dict[tuple[str, str], bool] = {}
    deadline = time.monotonic() + _BUDGET_S
    for folder, objects in by_folder.items():
        words = [program, "-n", "-f", os.path.relpath(f"{folder}/build.make", build_dir)]
        targets = [os.path.relpath(obj, build_dir) for obj in objects]
        began = time.monotonic()
        now = _output([*words, *targets], build_dir, environ)
        if now is None:
            continue
        last_start = deadline - (time.monotonic() - began)
        # Where make cannot even read its records, it compiles nothing.
        due = _compiled(now[1], objects, build_dir) if now[0] == 0 else set()
        for header in dict.fromkeys(header for obj in objects for header in headers.get(obj, ())):
            if time.monotonic() > last_start:
                return answers
            edited = [word for name in names[header] for word in ("-W", name)]
            told = _output([*words, *edited, *targets], build_dir, environ)
            if told is not None:
                would = _compiled(told[1], objects, build_dir) if told[0] == 0 else set()
                answers.update({(obj, header): obj in would for obj in objects
                                if obj not in due and header in headers.get(obj, ())})
    return answers


def ask_ninja(program: str, build_dir: Path, config: str, environ: Mapping[str, str], folder: Path,
              statements: Sequence[Statement], headers: Mapping[str, Sequence[str]], files: Files) -> Answers:
    """Ask ninja about every pair, on copies of its logs in a new folder below `folder`."""
    content = content_of(build_dir / ".ninja_deps")
    log = read_deps_log(content)
    if content is None or log.state != "read" or log.cut:
        return {}
    manifest = f"build-{config}.ninja" if (build_dir / f"build-{config}.ninja").exists() else "build.ninja"
    objects = [statement.output for statement in statements]
    targets = [os.path.relpath(obj, build_dir) for obj in objects]
    answers: dict[tuple[str, str], bool] = {}
    deadline = time.monotonic() + _BUDGET_S
    with tempfile.TemporaryDirectory(prefix="audit-", dir=folder) as name:
        copies = Path(name)
        # ninja joins lines at `$`, blanks and colons only.
        place = str(copies).replace("$", "$$").replace(" ", "$ ").replace(":", "$:")
        (copies / "build.ninja").write_text(f"include {manifest}\nbuilddir = {place}\n", encoding="utf-8",
                                            errors="surrogateescape")
        (copies / ".ninja_log").write_bytes(content_of(build_dir / ".ninja_log") or b"# ninja log v5\n")
        words = [program, "-n", "-v", "-f", str(copies / "build.ninja"), *targets]

        def would(numbers: Mapping[int, str]) -> set[str] | None:
            (copies / ".ninja_deps").write_bytes(redirected(content, numbers))
            told = _output(words, build_dir, environ)
            return None if told is None or told[0] != 0 else _compiled(told[1], objects, build_dir)

        began = time.monotonic()
        due = would({})
        last_start = deadline - (time.monotonic() - began)
        for header in dict.fromkeys(header for obj in objects for header in headers.get(obj, ())):
            if time.monotonic() > last_start:
                break
            compiled = would(_leading_to(log, header, str(copies / "edited"), files)) if due is not None else None
            if due is not None and compiled is not None:
                answers.update({(obj, header): obj in compiled for obj in objects
                                if obj not in due and header in headers.get(obj, ())})
    return answers


def _leading_to(log: DepsLog, header: str, edited: str, files: Files) -> dict[int, str]:
    """The header's numbers in the log, each with the path of a file that was written just now."""
    real = os.path.realpath(header)
    ends = ("/" + os.path.basename(header), "/" + os.path.basename(real))
    numbers = {}
    for number, path in enumerate(log.paths):
        if path.endswith(ends):
            key = files.key(path)
            if key in (header, real):
                numbers[number] = f"{edited}{number}"
                Path(numbers[number]).touch()
    return numbers
