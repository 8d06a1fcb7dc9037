"""A checkout to experiment on: the miniature one, copied and built for real, with doit run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
MINIORT = PROJECT / "tests" / "miniort"
FMHA = Path("onnxruntime/contrib_ops/cuda/bert/cutlass_fmha")
FOUR_UNITS = {"fmha_sm50", "fmha_sm70", "fmha_sm75", "fmha_sm80"}


@dataclass(frozen=True)
class Run:
    """One finished command."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


def clean_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what steers the project, and with this interpreter's programs first."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("FMHA_", "NVCC_", "CCACHE_"))}
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", "")))
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    return environ | dict(extra or {})


def run(words: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 300) -> Run:
    done = subprocess.run([str(word) for word in words], cwd=cwd, env=clean_environment(env), timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return Run(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


class Tree:
    """A copy of the miniature checkout in `root`, with one build directory."""

    def __init__(self, root: Path, generator: str = "Unix Makefiles", defines: Sequence[str] = (),
                 config: str = "Release") -> None:
        self.root = root
        self.generator = generator
        self.defines = tuple(defines)
        self.config = config
        self.build_dir = root / "build" / "Linux" / config
        if not root.exists():
            shutil.copytree(MINIORT, root, symlinks=True)

    # -- building by hand ------------------------------------------------------------------------------------

    def script(self, *options: str, env: Mapping[str, str] | None = None) -> Run:
        """The checkout's own build.sh."""
        return run([self.root / "build.sh", "--build_dir", self.build_dir.parent, "--config", self.config, *options],
                   self.root, env)

    def configure(self) -> None:
        done = self.script("--update", "--cmake_generator", self.generator, "--cmake_extra_defines", *self.defines)
        assert done.status == 0, done.text

    def make(self, *targets: str) -> Run:
        """A build by hand: all targets, or each of these."""
        done = Run(0, "", "")
        for options in [("--target", target) for target in targets] or [()]:
            done = self.script("--build", "--parallel", "2", *options)
            if done.status != 0:
                return done
        return done

    # -- doit ------------------------------------------------------------------------------------------------

    def words(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "doit", *arguments]

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        return {"FMHA_ORT_ROOT": str(self.root), "FMHA_BUILD_DIR": str(self.build_dir), **(extra or {})}

    def doit(self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 300) -> Run:
        done = run(self.words(*arguments), PROJECT, self.environment(env), timeout)
        assert "Traceback" not in done.text, done.text
        return done

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """doit in the background, in a session of its own."""
        return subprocess.Popen(self.words(*arguments), cwd=PROJECT, env=clean_environment(self.environment(env)),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                start_new_session=True)

    def judge(self, env: Mapping[str, str] | None = None) -> dict[str, Any]:
        """`doit status --json`."""
        done = self.doit("status", "--json", env=env)
        document: dict[str, Any] = json.loads(done.out)
        assert "error" in document or (done.status == 0) == (document["verdict"] == "fresh"), done.text
        return document

    def verdict(self, env: Mapping[str, str] | None = None) -> str:
        return str(self.judge(env)["verdict"])

    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.build_dir / ".fmha" / "report.json").read_text())
        return document

    # -- sources and artifacts -------------------------------------------------------------------------------

    def header(self, name: str) -> Path:
        return self.root / FMHA / f"{name}.h"

    def revision(self, name: str) -> int:
        match = re.search(rf"^#define MINIORT_{name.upper()}_REVISION (\d+)$", self.header(name).read_text(), re.M)
        assert match is not None
        return int(match[1])

    def set_revision(self, name: str, revision: int) -> None:
        text = self.header(name).read_text()
        new = re.sub(rf"(#define MINIORT_{name.upper()}_REVISION) \d+", rf"\1 {revision}", text)
        self.header(name).write_text(new)

    def edit(self, name: str = "kernel_forward") -> int:
        """Give the header its next revision."""
        revision = self.revision(name) + 1
        self.set_revision(name, revision)
        return revision

    def built_revisions(self) -> dict[str, dict[str, int]]:
        """What each unit of the opened provider says that it was compiled with: the oracle."""
        done = run([self.build_dir / "onnxruntime_provider_test", "--print_revisions"], self.build_dir)
        assert done.status == 0, done.text
        lines = (line.split() for line in done.out.splitlines())
        return {unit: {name: int(number) for name, _, number in (pair.partition("=") for pair in pairs)}
                for unit, *pairs in lines}

    def is_current(self) -> bool:
        """Whether the provider holds every header's revision as the source has it now."""
        return all(self.revision(name) == number for held in self.built_revisions().values()
                   for name, number in held.items())

    def unit_files(self) -> dict[str, dict[str, str]]:
        return {unit["name"]: unit for unit in self.judge()["units"]}

    def object(self, unit: str) -> Path:
        return Path(self.unit_files()[unit]["object"])

    def identities(self) -> dict[str, tuple[int, ...]]:
        """Every object's (inode, size, mtime, ctime), by unit; the whole provider's objects, not only the watched."""
        found = {}
        for path in self.build_dir.rglob("*.o"):
            stat = path.stat()
            found[path.name.removesuffix(".o") + "@" + path.parent.name] = (
                stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        return found

    def remade(self, before: Mapping[str, tuple[int, ...]]) -> set[str]:
        """Stems of the objects that are others now."""
        after = self.identities()
        return {name.partition("@")[0].partition(".")[0] for name in after if after[name] != before.get(name)}

    def pristine(self) -> None:
        """Bring sources back to the miniature checkout's and the tree to `fresh`."""
        for folder in ("onnxruntime", "cmake", "tools"):
            wanted = {path.relative_to(MINIORT) for path in (MINIORT / folder).rglob("*") if path.is_file()}
            for path in (self.root / folder).rglob("*"):
                if not path.is_dir() and path.relative_to(self.root) not in wanted:
                    path.unlink()
            for name in wanted:
                mine = self.root / name
                if mine.is_symlink() or not mine.exists() or mine.read_bytes() != (MINIORT / name).read_bytes():
                    mine.unlink(missing_ok=True)
                    mine.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(MINIORT / name, mine)
        shutil.copy(MINIORT / "build.sh", self.root / "build.sh")
        database = self.build_dir / ".fmha" / "doit.sqlite3"
        if database.exists() and b"ignore:" in database.read_bytes():
            self.doit("forget")
        done = self.doit("verify")
        assert done.status == 0, done.text


def wait_for(condition: Any, timeout: float = 20.0) -> None:
    """Until `condition()` holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def end(process: subprocess.Popen[str], number: int = signal.SIGKILL) -> None:
    """End a process that `start` began, and what its session still holds."""
    if process.poll() is None:
        os.kill(process.pid, number)
    process.wait(timeout=60)
