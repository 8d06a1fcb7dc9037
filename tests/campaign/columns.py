"""The columns: this project, and three ways that people go without it. Each brings a place up to date and says so.

A column's word is only a claim; whether it is true is for the oracle.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.campaign.oracle import read_compiles
from tests.campaign.place import Place
from tests.support import FMHA, PROJECT, Run, clean_environment, run

__all__ = ["COLUMNS", "Claim", "Column"]


@dataclass(frozen=True)
class Claim:
    """What a column says: `fresh`, or a word for why not. `text` is for whoever asks why."""

    word: str
    text: str = ""

    @property
    def fresh(self) -> bool:
        return self.word == "fresh"


class Column(Protocol):
    """One way to go from an edit to the belief that it is built."""

    name: str

    def update(self, place: Place, target: str = "") -> Claim:
        """Bring everything up to date (by `target` where the way builds targets), then say whether it is."""

    def look(self, place: Place) -> Claim | None:
        """Say whether all is up to date, without building; None where the way has no such question."""

    def words(self, place: Place) -> list[str]:
        """The command of `update`'s build."""

    def manage(self, place: Place, *words: str) -> None:
        """A command to the engine's own state (`ignore`, `forget`, `reset-dep`), where the way has an engine."""

    def state(self, place: Place) -> Iterable[Path]:
        """The files that the way keeps its state in."""


class _Doit:
    """What both ways through doit share."""

    def _environ(self, place: Place) -> dict[str, str]:
        return {"FMHA_ORT_ROOT": str(place.root), "FMHA_BUILD_DIR": str(place.build_dir), "FMHA_JOBS": "1",
                **place.environ}

    def environ(self, place: Place) -> dict[str, str]:
        """The environment of a command in the background."""
        return clean_environment(self._environ(place))

    def _doit(self, place: Place, *words: str) -> Run:
        return run([*self._engine(place), *words], PROJECT, self._environ(place))

    def _engine(self, place: Place) -> list[str]:
        raise NotImplementedError


class Project(_Doit):
    """`doit rebuild_fmha`, then the verdict of `doit -s verify`."""

    name = "fmha-doit"

    def _engine(self, place: Place) -> list[str]:
        del place
        return [sys.executable, "-m", "doit"]

    def words(self, place: Place) -> list[str]:
        return [*self._engine(place), "rebuild_fmha"]

    def update(self, place: Place, target: str = "") -> Claim:
        del target
        built = self._doit(place, "rebuild_fmha")
        claim = self._claim(self._doit(place, "-s", "verify", "--json"))
        if built.status != 0 and claim.fresh:
            return Claim("failed", f"rebuild_fmha failed, yet verify is fresh\n{built.text}")
        return Claim(claim.word, claim.text if claim.fresh else built.text + claim.text)

    def look(self, place: Place) -> Claim:
        return self._claim(self._doit(place, "status", "--json"))

    def manage(self, place: Place, *words: str) -> None:
        self._doit(place, *words)

    def state(self, place: Place) -> Iterable[Path]:
        return (place.build_dir / ".fmha" / name for name in ("doit.sqlite3", "report.json"))

    @staticmethod
    def _claim(done: Run) -> Claim:
        document = json.loads(done.out)
        word = str(document.get("verdict", "refused"))
        if (word == "fresh") != (done.status == 0):
            # A verdict and an exit status that differ: whoever reads one of them is misled.
            word = "fresh" if done.status == 0 else "failed"
        return Claim(word, "\n".join(document.get("error") or (
            line for link in document.get("links", [])[:3] if link["verdict"] != "fresh" for line in link["evidence"])))


class Ritual:
    """By hand: touch the units of the folder, build, compare the times of objects and provider with the headers'."""

    name = "manual ritual"

    def words(self, place: Place) -> list[str]:
        units = sorted(str(path) for path in place.fmha.glob("*.cu"))
        return ["sh", "-c", 'touch "$@"; exec "$BUILD" --build --parallel 1 --build_dir "$ROOT" --config "$CONFIG"',
                "sh", *units]

    def environ(self, place: Place) -> dict[str, str]:
        return clean_environment(place.environ | self._names(place))

    def update(self, place: Place, target: str = "") -> Claim:
        for unit in place.fmha.glob("*.cu"):
            os.utime(unit)
        done = place.build(*(("--target", target) if target else ()))
        return self.look(place) if done.status == 0 else Claim("failed", done.text)

    def look(self, place: Place) -> Claim:
        newest = max(path.stat().st_mtime_ns for path in place.fmha.glob("*.h"))
        objects = [one.object for one in read_compiles(place.build_dir) if str(FMHA) in str(one.source)]
        for path in (*objects, place.provider):
            if not path.exists() or path.stat().st_mtime_ns < newest:
                return Claim("stale", f"{path.name} is older than a header")
        return Claim("fresh")

    def manage(self, place: Place, *words: str) -> None:
        """Nothing keeps state."""

    def state(self, place: Place) -> Iterable[Path]:
        del place
        return ()

    @staticmethod
    def _names(place: Place) -> dict[str, str]:
        return {"BUILD": str(place.root / "build.sh"), "ROOT": str(place.build_dir.parent),
                "CONFIG": place.build_dir.name}


class PlainBuild:
    """The incremental build: it ended with 0, so it is built."""

    name = "plain build"

    def words(self, place: Place) -> list[str]:
        return place.script_words("--build", "--parallel", "1")

    def environ(self, place: Place) -> dict[str, str]:
        return clean_environment(place.environ)

    def update(self, place: Place, target: str = "") -> Claim:
        done = place.build(*(("--target", target) if target else ()))
        return Claim("fresh" if done.status == 0 else "failed", done.text)

    def look(self, place: Place) -> None:
        del place

    def manage(self, place: Place, *words: str) -> None:
        """Nothing keeps state."""

    def state(self, place: Place) -> Iterable[Path]:
        del place
        return ()


# As somebody would write it with the task engine alone. The closures are even this project's own, made
# new at every start: what differs is who decides what is up to date.
_STOCK = '''\
import os
import sys
from pathlib import Path

sys.path.insert(0, {project!r})
from tasks.session import Session

survey = Session(Path({project!r}), Path.cwd(), os.environ, {{}}).survey()
build_dir = survey.location.build_dir
DOIT_CONFIG = {{"dep_file": {database!r}, "default_tasks": ["build"], "verbosity": 0}}


def inputs(unit):
    return [path for path in sorted(unit.closure.files | {{unit.facts.source}}) if os.path.isfile(path)]


def task_object():
    for unit in survey.units.values():
        yield {{"name": unit.name, "file_dep": inputs(unit), "targets": [unit.facts.object],
               "actions": [["touch", unit.facts.source]]}}


def task_build():
    everything = {{path for unit in survey.units.values() for path in inputs(unit)}}
    return {{"task_dep": ["object"], "file_dep": sorted(everything),
            "targets": [survey.provider],
            "actions": [[str(survey.location.ort_root / "build.sh"), "--build", "--parallel", "1",
                         "--build_dir", str(build_dir.parent), "--config", build_dir.name]]}}
'''


class StockDoit(_Doit):
    """A dodo of its own: an `object` task a unit that touches it, a `build` task, doit's own checker."""

    name = "stock doit"

    def _engine(self, place: Place) -> list[str]:
        folder = place.folder / "stock"
        dodo = folder / "dodo.py"
        if not dodo.exists():
            folder.mkdir(exist_ok=True)
            dodo.write_text(_STOCK.format(project=str(PROJECT), database=str(folder / "doit.db")))
        return [sys.executable, "-m", "doit", "-f", str(dodo)]

    def _doit(self, place: Place, *words: str) -> Run:
        # doit wants `-f` behind the command's name.
        engine = self._engine(place)
        command = [*engine[:3], *words[:1], *engine[3:], *words[1:]]
        return run(command, place.folder, self._environ(place))

    def words(self, place: Place) -> list[str]:
        engine = self._engine(place)
        return [*engine[:3], "run", *engine[3:]]

    def update(self, place: Place, target: str = "") -> Claim:
        del target
        done = self._doit(place, "run")
        return Claim("fresh" if done.status == 0 else "failed", done.text)

    def look(self, place: Place) -> Claim:
        done = self._doit(place, "list", "--all", "--status")
        states = {line.split()[0] for line in done.out.splitlines() if line.strip()}
        # "U": up to date; the group task `object` itself has no state worth the name.
        tasks = [line for line in done.out.splitlines() if " object:" in line or " build" in line]
        word = "fresh" if done.status == 0 and tasks and all(line.startswith("U") for line in tasks) else "stale"
        return Claim(word, f"{states}\n{done.text}")

    def manage(self, place: Place, *words: str) -> None:
        self._doit(place, *words)

    def state(self, place: Place) -> Iterable[Path]:
        return (place.folder / "stock").glob("doit.db*")


COLUMNS: tuple[Column, ...] = (Project(), Ritual(), PlainBuild(), StockDoit())


def start(column: Column, place: Place) -> subprocess.Popen[bytes]:
    """The column's build in the background, in a session of its own."""
    return subprocess.Popen(column.words(place), cwd=PROJECT if isinstance(column, Project) else place.folder,
                            env=column.environ(place), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, start_new_session=True)
