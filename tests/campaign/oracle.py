"""What is right: what the sources mean by the compiler's preprocessor, and what the built artifact says of itself.

Knows nothing of the product: no verdict, no receipt and no closure of its making is looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.binary.toolkit import tool
from tests.campaign.place import Place
from tests.support import clean_environment, run

__all__ = ["Compile", "Oracle", "Truth", "device_revisions", "held_by", "holds", "read_compiles"]

Revisions = Mapping[str, Mapping[str, int]]

_REVISION = re.compile(rb"\bminiort_rev_(\w+)_(\d+)\s*=")
# The compiler puts more in front of a static variable's name.
_DEVICE_REVISION = re.compile(r"miniort_rev_(\w+?)_(\d+)(?!\w)")
_LINE_MARKER = re.compile(rb'^# \d+ "((?:[^"\\]|\\.)*)"', re.M)
_SUFFIXES = (".h", ".cu", ".cc", ".in", ".txt", ".cmake", ".rsp", ".cuh", ".inc", ".ninja")


@dataclass(frozen=True)
class Compile:
    """One unit's compile, as CMake exports it."""

    name: str
    source: Path
    object: Path
    words: tuple[str, ...]
    workdir: Path


@dataclass(frozen=True)
class Truth:
    """What a compile of these very sources yields.

    `revisions` maps units that open a watched header to the revision of each header they contain; other units are
    no part of any claim. `openings` maps them to a digest of everything that the compiler opens for them and of its
    command, `edits` to one of what people edit of it: what lies outside the build directory. All lack a unit that
    does not compile; then `compiles` is False.
    """

    compiles: bool
    revisions: Revisions
    openings: Mapping[str, str]
    edits: Mapping[str, str]


def _unit_names(sources: list[Path]) -> list[str]:
    """As `--print_revisions` names them: the stem, or the shortest trailing path that is unique."""
    stems = Counter(source.stem for source in sources)
    names = []
    for source in sources:
        depth = 1
        while stems[source.stem] > 1 and sum(other.parts[-depth:] == source.parts[-depth:]
                                             for other in sources if other.stem == source.stem) > 1:
            depth += 1
        names.append(source.stem if stems[source.stem] == 1 else "/".join(source.parts[-depth:]))
    return names


def _preprocessing(words: list[str]) -> tuple[str, ...]:
    """The compile's words with `-E` for `-c` and no output or depfile."""
    kept, waiting = [], iter(words)
    for word in waiting:
        if word in ("-o", "-MF", "-MT"):
            next(waiting)
        elif word not in ("-c", "-MD", "-MMD"):
            kept.append(word)
    return (*kept, "-E")


def read_compiles(build_dir: Path) -> list[Compile]:
    """The provider's units, from `compile_commands.json`."""
    entries = [entry for entry in json.loads((build_dir / "compile_commands.json").read_text())
               if "/onnxruntime/test/" not in entry["file"]]
    names = _unit_names([Path(entry["file"]) for entry in entries])
    compiles = []
    for name, entry in zip(names, entries, strict=True):
        words, workdir = shlex.split(entry["command"]), Path(entry["directory"])
        output = workdir / words[words.index("-o") + 1]
        compiles.append(Compile(name, Path(entry["file"]), output, _preprocessing(words), workdir))
    return compiles


class Oracle:
    """Answers for one cell. A state of the sources that was preprocessed before is not preprocessed again."""

    def __init__(self, jobs: int = 1) -> None:
        self._known: dict[str, Truth] = {}
        self._jobs = jobs

    def truth(self, place: Place) -> Truth:
        """What the sources mean now."""
        key = _state_of(place)
        if key not in self._known:
            watched = {os.path.realpath(path) for path in place.fmha.glob("*.h")}
            with ThreadPoolExecutor(self._jobs) as pool:
                found = list(pool.map(lambda one: _preprocess(one, place, watched), read_compiles(place.build_dir)))
            watching = {one.name: one for one in found if one.revisions}
            self._known[key] = Truth(all(one.revisions is not None for one in found),
                                     {name: one.revisions or {} for name, one in watching.items()},
                                     {name: one.opened for name, one in watching.items()},
                                     {name: one.edited for name, one in watching.items()})
        return self._known[key]


def _state_of(place: Place) -> str:
    """A digest of all sources, of the build's own headers and of the compile commands."""
    digest = hashlib.sha256(repr((sorted(place.environ.items()), str(place.root))).encode())
    for top in (place.folder, *((place.root,) if not place.root.is_relative_to(place.folder) else ())):
        for at, folders, files in os.walk(top):
            folders.sort()
            links = [path for name in folders if os.path.islink(path := os.path.join(at, name))]
            digest.update(repr([(path, os.readlink(path)) for path in links]).encode())
            for name in sorted(files):
                if name.endswith(_SUFFIXES) or name == "compile_commands.json":
                    path = os.path.join(at, name)
                    digest.update(path.encode() + b"\0")
                    digest.update(Path(path).read_bytes() if os.path.isfile(path) else b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class _Unit:
    """One preprocessed unit: revisions (None where it does not compile), digests of what was opened and edited."""

    name: str
    revisions: dict[str, int] | None
    opened: str = ""
    edited: str = ""


def _preprocess(compile_: Compile, place: Place, watched: set[str]) -> _Unit:
    told = place.tree.root
    words = [word.replace(str(told), str(place.root)) if place.root != told and str(place.build_dir) not in word
             else word for word in compile_.words]
    done = subprocess.run(words, cwd=compile_.workdir, env=clean_environment(place.environ), capture_output=True,
                          check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return _Unit(compile_.name, None)
    opened = {compile_.workdir / os.fsdecode(name) for name in set(_LINE_MARKER.findall(done.stdout))
              if not name.startswith((b"/usr/", b"<"))}
    if not watched.intersection(map(os.path.realpath, opened)):
        return _Unit(compile_.name, {})
    files = sorted(path for path in opened if path.is_file())
    edited = [path for path in files if not path.is_relative_to(place.build_dir)]
    revisions = {name.decode(): int(number) for name, number in _REVISION.findall(done.stdout)}
    return _Unit(compile_.name, revisions, _digest(words, files), _digest([], edited))


def _digest(words: list[str], files: list[Path]) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for path in files:
        digest.update(os.fsencode(path) + b"\0" + path.read_bytes())
    return digest.hexdigest()


def held_by(place: Place) -> Revisions | None:
    """What the built artifact says that its units were compiled from; None where it cannot say anything.

    Host code speaks by running the test executable, device code by the symbols that `cuobjdump` lists.
    """
    if not place.executable.exists():
        return None
    done = run([place.executable, "--print_revisions"], place.build_dir)
    if done.status != 0:
        return None
    lines = (line.split() for line in done.out.splitlines())
    return {unit: {name: int(number) for name, _, number in (pair.partition("=") for pair in pairs)}
            for unit, *pairs in lines}


def device_revisions(place: Place) -> dict[str, set[int]]:
    """Header -> the revisions whose symbols stand in the linked cubins."""
    program = tool("cuobjdump")
    assert program is not None, "the device part needs cuobjdump (pip install nvidia-cuda-cuobjdump)"
    found: dict[str, set[int]] = {}
    for name, number in _DEVICE_REVISION.findall(run([program, "-elf", place.provider], place.build_dir).out):
        found.setdefault(name, set()).add(int(number))
    return found


def holds(place: Place, truth: Truth, meant: Mapping[str, int]) -> dict[str, bool]:
    """Unit -> whether the artifact holds what its sources mean; all False where nothing can be asked.

    `meant` gives revisions of headers that the build has yet to make: the preprocessor sees the present ones.
    """
    held = held_by(place)
    if held is None or not truth.compiles:
        return dict.fromkeys(truth.revisions, False) or {"": False}
    answer = {unit: held.get(unit) == revisions for unit, revisions in truth.revisions.items()}
    for name, revision in meant.items():
        answer[f"what {name} is made from"] = {unit[name] for unit in held.values() if name in unit} == {revision}
    if place.cell.device:
        answer |= _device_answer(place, truth)
    return answer


def _device_answer(place: Place, truth: Truth) -> dict[str, bool]:
    """Cubins do not tell the unit: every revision of a header found in them must be one that the sources mean."""
    wanted: dict[str, set[int]] = {}
    for revisions in truth.revisions.values():
        for name, number in revisions.items():
            wanted.setdefault(name, set()).add(number)
    found = device_revisions(place)
    held = {f"device code of {name}": numbers <= wanted.get(name, set()) for name, numbers in found.items()}
    return held or {"device code": False}
