"""The checkout that the fuzz experiments on: made once, reset for every sequence, run in every way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tasks.evidence.receipts import sealed
from tests.fuzz.doit_fork import ForkedDoit, preload
from tests.fuzz.model import Artifacts, Model, look_at
from tests.fuzz.sources import CONFIGURED, FOLDER, UnitSource, read_sources
from tests.support import Run, Tree, clean_environment, run

__all__ = ["POOL", "TARGET", "VARIANTS", "Variant", "World", "record"]

TARGET = "onnxruntime_providers_cuda"
DEFINES = ("MINIORT_HOST_ONLY=ON", "MINIORT_GTEST=OWN")
# A command in this many is run as a process of its own, not as a fork: the forks must not be all that is tested.
_REAL_EVERY = 25

# Files that are edited. `{build}` is the build directory: a header of a fetched dependency lies there.
POOL = (
    f"{FOLDER}/kernel_forward.h", f"{FOLDER}/fmha_launch_template.h", f"{FOLDER}/memory_efficient_attention.h",
    f"{FOLDER}/fmha_sm80.cu", "onnxruntime/contrib_ops/cuda/bert/attention_impl.cu",
    "onnxruntime/core/providers/cuda/device_attention.h", CONFIGURED,
    "{build}/_deps/cutlass-src/include/cutlass/fast_math.h",
)


@dataclass(frozen=True)
class Variant:
    """One way to configure the build directory."""

    generator: str
    gap: bool

    @property
    def defines(self) -> tuple[str, ...]:
        return (*DEFINES, f"MINIORT_DEPFILE_GAP={'ON' if self.gap else 'OFF'}")


VARIANTS = tuple(Variant(generator, gap) for gap in (True, False) for generator in ("Unix Makefiles", "Ninja"))


def record(name: str, revision: int = 100) -> str:
    """The lines that leave the revision of a file in every object that is compiled from it."""
    return (f'#include "core/providers/cuda/unit_record.h"\n#define MINIORT_{name.upper()}_REVISION {revision}\n'
            f"MINIORT_WATCHED_HEADER({name}, MINIORT_{name.upper()}_REVISION)\n")


@dataclass
class Figures:
    """Counts of one campaign."""

    steps: int = 0
    sequences: int = 0
    commands: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    recompiled: int = 0

    def told(self, seconds: float) -> str:
        """The figures as lines."""
        def counts(counter: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in counter.most_common())

        return (f"{self.steps} steps in {self.sequences} sequences, {seconds:.0f} s\n"
                f"runs: {self.commands.total()} ({counts(self.commands)}), {self.recompiled} objects recompiled\n"
                f"verdicts: {self.verdicts.total()} ({counts(self.verdicts)})\nsteps by rule: {counts(self.rules)}")


class World:
    """`folder` holds the checkout, what it is reset from, and what was saved of it."""

    def __init__(self, folder: Path, variants: tuple[Variant, ...] = VARIANTS) -> None:
        preload()
        self.folder = folder
        self.variants = variants
        self.variant = variants[0]
        self.model = Model()
        self.figures = Figures()
        self.environment: dict[str, str] = {}
        self.trace: list[str] = []  # what the sequence that runs has done
        self.tree = Tree(folder / "tree")
        self.root, self.build_dir = self.tree.root, self.tree.build_dir
        self.provider = self.build_dir / f"lib{TARGET}.so"
        self.state = self.build_dir / ".fmha"
        for number, variant in enumerate(variants):
            self._prepare(number, variant)

    def path(self, name: str) -> Path:
        """A file of the pool."""
        return Path(name.format(build=self.build_dir)) if name.startswith("{build}") else self.root / name

    def _prepare(self, number: int, variant: Variant) -> None:
        if number == 0:
            for name in POOL:
                base = self.root / name.replace("{build}/_deps/cutlass-src", "cmake/external/cutlass")
                if "_REVISION " not in base.read_text():
                    text = base.read_text()
                    base.write_text(text + record(f"unit_{base.stem}" if base.suffix == ".cu"
                                                    else base.name.partition(".")[0]))
            shutil.copytree(self.root, self.folder / "sources", symlinks=True)
        self.configure(variant)
        if number == 0:
            done = self.tree.make("onnxruntime_provider_test")
            assert done.status == 0, done.text
            shutil.copy2(self.build_dir / "onnxruntime_provider_test", self.folder)
        else:
            self.bring_oracle()
        done = self.doit("rebuild_fmha")
        assert done.status == 0, done.text
        units, after = self.seen(), self.artifacts()
        self.model.compiled(Artifacts({}, None), after, units, quiet=True)
        shutil.copytree(self.build_dir, self.folder / f"built-{number}", symlinks=True)

    def reset(self, number: int) -> None:
        """Sources as at the beginning, and a build directory of this variant with the receipts that it had."""
        self.environment = {}
        for path in (self.root, self.build_dir):
            _empty(path, keep=self.root / "build" if path == self.root else None)
        run(["cp", "-a", f"{self.folder / 'sources'}/.", self.root], self.folder)
        run(["cp", "-a", f"{self.folder / f'built-{number}'}/.", self.build_dir], self.folder)
        self.variant = self.variants[number]
        self.adopt_receipts()
        self.save()
        self.model.forget()
        self.model.written = {name: entry[0][2] for name, entry in self.artifacts().objects.items() if entry}

    def adopt_receipts(self) -> None:
        """Bind the receipts that lie there to this folder: where a copy of all of it was put back in its place."""
        stat = self.build_dir.stat()
        for path in (self.state / "receipts").glob("*.json"):
            head, _, inputs = path.read_text().partition("\n")
            data = json.loads(head)
            del data["sha256"]
            for output, known in data.get("outputs", {}).items():
                known[0] = Path(output).stat().st_ino
            path.write_text(sealed({**data, "home": [stat.st_dev, stat.st_ino]}, inputs))

    def configure(self, variant: Variant) -> None:
        """Wipe the build directory and configure it anew."""
        self.variant = variant
        self.tree.generator, self.tree.defines = variant.generator, variant.defines
        if self.build_dir.exists():
            _empty(self.build_dir)
        self.tree.configure()

    def bring_oracle(self) -> None:
        """The test executable, where the build directory has none."""
        shutil.copy2(self.folder / "onnxruntime_provider_test", self.build_dir)

    # -- damage ----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Keep the artifacts and receipts as they are now."""
        saved = self.folder / "saved"
        shutil.rmtree(saved, ignore_errors=True)
        for path in (*self.build_dir.rglob("*.o"), self.provider, *(self.state / "receipts").glob("*.json")):
            if path.exists():
                kept = saved / path.relative_to(self.build_dir)
                kept.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, kept)

    def put_back(self, path: Path, keep_times: bool) -> None:
        """A saved file, where there is one, in the place of the one that is there."""
        kept = self.folder / "saved" / path.relative_to(self.build_dir)
        if kept.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copy2 if keep_times else shutil.copyfile)(kept, path)

    def receipt(self, name: str) -> Path | None:
        """The file of a unit's receipt, the link's, or that of what is generated."""
        wanted = f"{name}.json" if name in ("link", "generated") else f"unit.{name.replace('/', '_')}*.json"
        return next((self.state / "receipts").glob(wanted), None)

    def corrupt(self, path: Path, how: str) -> None:
        """Damage a file as crashes and disks do, or put an old one in its place."""
        text = path.read_bytes()
        if how == "delete":
            path.unlink()
        elif how == "empty":
            path.write_bytes(b"")
        elif how == "cut":
            path.write_bytes(text[: len(text) // 2])
        elif how == "flip" and text:
            middle = len(text) // 2
            path.write_bytes(text[:middle] + bytes([text[middle] ^ 1]) + text[middle + 1:])
        elif how == "old":
            self.put_back(path, keep_times=True)

    # -- looking ---------------------------------------------------------------------------------------------

    def units(self) -> dict[str, UnitSource]:
        """What the sources mean."""
        return read_sources(self.root, self.build_dir, json.dumps(self.environment))

    def seen(self) -> dict[str, UnitSource]:
        """What a compiler would see now, before CMake is run again."""
        return read_sources(self.root, self.build_dir, json.dumps(self.environment), configured=False)

    def artifacts(self) -> Artifacts:
        return look_at(self.units(), self.provider)

    def built(self) -> dict[str, dict[str, int]] | None:
        """What the provider says of itself: the oracle. None where it cannot be opened."""
        try:
            return self.tree.built_revisions()
        except (AssertionError, ValueError):
            return None

    # -- running ---------------------------------------------------------------------------------------------

    def start(self, *arguments: str, build_dir: Path | None = None, log: str = "doit") -> ForkedDoit:
        environ = {**self.environment, "FMHA_ORT_ROOT": str(self.root), "FMHA_JOBS": "2",
                   "FMHA_BUILD_DIR": str(build_dir or self.build_dir)}
        return ForkedDoit(arguments, environ, self.folder / log)

    def doit(self, *arguments: str, build_dir: Path | None = None) -> Run:
        """A command to its end."""
        self.figures.commands[next(word for word in arguments if not word.startswith("-"))] += 1
        if self.figures.commands.total() % _REAL_EVERY == 0:
            extra = {**self.environment, "FMHA_JOBS": "2", "FMHA_BUILD_DIR": str(build_dir or self.build_dir)}
            return self.tree.doit(*arguments, env=extra)
        done = self.start(*arguments, build_dir=build_dir).wait()
        assert "Traceback" not in done.text, done.text
        return done

    def judge(self, *arguments: str, build_dir: Path | None = None) -> dict[str, Any]:
        """The document of `status`, or of the command that is given."""
        done = self.doit(*(arguments or ("status",)), "--json", build_dir=build_dir)
        document: dict[str, Any] = json.loads(done.out)
        assert (done.status == 0) == (document.get("verdict") == "fresh"), done.text
        self.figures.verdicts[str(document.get("verdict", "error"))] += 1
        return document

    def hand_build(self) -> subprocess.Popen[bytes]:
        """build.sh as the user runs it, for the provider; its output is kept in a file."""
        words = [str(self.root / "build.sh"), "--build_dir", str(self.build_dir.parent), "--config", self.tree.config,
                 "--build", "--parallel", "2", "--target", TARGET]
        with (self.folder / "hand.out").open("wb") as out:
            return subprocess.Popen(words, cwd=self.root, env=clean_environment(self.environment), stdout=out,
                                    stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True)

    def build_processes(self) -> list[int]:
        """Living processes of a build of this checkout, whoever started it."""
        return processes_in(self.root)

    def wait_for_orphans(self) -> None:
        """Until no process of a build is left."""
        deadline = time.monotonic() + 60
        while self.build_processes():
            assert time.monotonic() < deadline, "a build does not end"
            time.sleep(0.01)


def processes_in(root: Path) -> list[int]:
    """Living processes that work in `root` or were told of it."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes()
                folder = os.readlink(f"/proc/{entry}/cwd")
            except OSError:
                continue
            # A zombie has no words.
            if words and (os.fsencode(root) in words or Path(folder).is_relative_to(root)):
                found.append(int(entry))
    return found


def kill(doit: ForkedDoit, world: World, whole_tree: bool) -> None:
    """SIGKILL for doit, and for the build that it runs where that is asked for."""
    doit.kill()
    while whole_tree and (pids := world.build_processes()):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _empty(folder: Path, keep: Path | None = None) -> None:
    for entry in folder.iterdir():
        if entry == keep:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


