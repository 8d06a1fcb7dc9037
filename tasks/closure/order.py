"""What else depends on the provider, or copies it: asked from the build files, as text. Runs nothing."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.graph import absolute
from tasks.checkout.locate import Location
from tasks.checkout.words import split_words
from tasks.closure.ninja_records import NinjaRules

__all__ = ["Copy", "builds_first", "copies_of"]

_ALL = re.compile(r"^(\S*CMakeFiles/\S+\.dir)/all: (\S*CMakeFiles/\S+\.dir)/all$", re.M)
_COPY_WORDS = ("copy", "copy_if_different")


class Copy(NamedTuple):
    """A file that another target's build copies, where to, and that target."""

    source: str
    destination: str
    target: str


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def builds_first(location: Location, output: str, target: str, wanted: str, wanted_target: str) -> bool:
    """Whether a build of `output` (of `target`) brings `wanted` (of `wanted_target`) up to date first."""
    if location.cache.generator != "Unix Makefiles":
        rules = NinjaRules(location.build_dir, location.cache.get("CMAKE_BUILD_TYPE"))
        return wanted in rules.below(output)
    needs: dict[str, list[str]] = defaultdict(list)
    for match in _ALL.finditer(_text(location.build_dir / "CMakeFiles" / "Makefile2")):
        needs[os.path.basename(match[1])].append(os.path.basename(match[2]))
    waiting, seen = [f"{target}.dir"], set()
    while waiting:
        folder = waiting.pop()
        if folder not in seen:
            seen.add(folder)
            waiting += needs[folder]
    return f"{wanted_target}.dir" in seen


def _copy_lines(location: Location) -> Iterator[tuple[str, str]]:
    """(target, command line) of every `cmake -E copy...` in the build files."""
    build_dir = location.build_dir
    if location.cache.generator == "Unix Makefiles":
        for folder in _text(build_dir / "CMakeFiles" / "TargetDirectories.txt").splitlines():
            text = _text(build_dir / os.path.relpath(folder, location.cache.made_in) / "build.make")
            if "-E copy" in text:
                for line in text.splitlines():
                    if "-E copy" in line:
                        yield os.path.basename(folder).removesuffix(".dir"), line.replace("$$", "$")
        return
    target = ""
    for line in _text(build_dir / "build.ninja").splitlines():
        if line.startswith("build "):
            target = os.path.basename(line[6:].partition(":")[0].split(" ")[0])
        elif line.startswith("  OBJECT_DIR = "):
            # A library's output bears another name than its target.
            target = os.path.basename(line).removesuffix(".dir")
        elif "-E copy" in line:
            yield target, line.replace("$:", ":").replace("$ ", " ").replace("$$", "$")


def copies_of(location: Location, linked: str, own_targets: tuple[str, ...]) -> Iterator[Copy]:
    """Copies of `linked` that other targets than `own_targets` make in steps of their own."""
    name = os.path.basename(linked)
    for target, line in _copy_lines(location):
        if name not in line or target in own_targets:
            continue
        words = split_words(line)
        workdir = str(location.build_dir)
        for at, word in enumerate(words):
            if word == "cd" and at + 1 < len(words):
                workdir = words[at + 1]
            if word in _COPY_WORDS and words[at - 1] == "-E":
                end = next((n for n in range(at, len(words)) if words[n] in ("&&", ";")), len(words))
                paths = [absolute(Path(workdir), path) for path in words[at + 1:end]]
                if len(paths) >= 2 and linked in paths[:-1]:
                    into = paths[-1]
                    yield Copy(linked, os.path.join(into, name) if os.path.isdir(into) else into, target)
