"""`doit demo`: the whole story on a copy of the miniature checkout, in the project's own folder `.demo/`."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tasks.builder.command import default_jobs, shown
from tasks.builder.run import run_build
from tasks.errors import UserError
from tasks.evidence import STATE_NAME
from tasks.session import Session

__all__ = ["demo"]

_MARK = ".made-by-doit-demo"
_HEADER = Path("onnxruntime/contrib_ops/cuda/bert/cutlass_fmha/kernel_forward.h")
_REVISION = re.compile(r"(#define MINIORT_KERNEL_FORWARD_REVISION) (\d+)")
_SCALE = re.compile(r"(kScoreScaleNumerator = )[\d.]+f")
_NO_GPU = ("no-gpu", "gpu-unusable")


class _Demo:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._root = session.project / ".demo"
        self._build = self._root / "build" / "Linux" / "Release"
        self._log = self._root / "demo.log"
        # Ninja comes from PyPI with the rest; make does not.
        usual = "Unix Makefiles" if shutil.which("make") else "Ninja"
        self._generator = session.settings.options.get("generator", usual)

    def run(self) -> None:
        self._copy()
        self._title("1. Build the miniature checkout; its build system does not know the watched headers")
        self._script("--update", "--build", "--cmake_generator", self._generator, "--cmake_extra_defines",
                     "MINIORT_DEPFILE_GAP=ON")
        built = self._provider_revision()
        self._title("2. Bring it under proof: one recompile")
        self._doit("rebuild_fmha")
        has_gpu = self._tests("the tests pass on the code as it is", expected=None)

        self._title(f"3. Edit {_HEADER.name}: another scale of the scores, revision {built + 1}")
        self._edit(built + 1, "1.5")
        self._title("4. The plain incremental build")
        self._script("--build")
        old = self._provider_revision()
        print(f"   header: revision {built + 1}; provider: revision {old}   <- "
              + ("OLD CODE, and the build said that all is well" if old == built else "not what this demo expects"))
        if old != built:
            raise UserError("The plain build noticed the edit, although it should not know the header.",
                            f"look into {self._log}")
        self._doit("status", expected=1)

        self._title("5. The three tasks")
        self._doit("rebuild_fmha")
        self._doit("verify")
        new = self._provider_revision()
        print(f"   header: revision {built + 1}; provider: revision {new}   <- the edit")
        if new != built + 1:
            raise UserError("The provider still holds the old code.", f"look into {self._log}")
        self._tests("the edit changed numbers, so a test of them fails now: PASS -> FAIL", expected="tests-failed")
        if has_gpu:
            self._title("6. Take the edit back")
            self._edit(built + 2, "1.0")
            self._tests("FAIL -> PASS", expected=None)
        print(f"\nDone. The checkout is {self._root}, the evidence {self._build / '.fmha'}.\n"
              f"Go on by hand: FMHA_CONFIG={shown([str(self._config)])} doit status")

    def _copy(self) -> None:
        """A new copy in `.demo/`, which is only ever replaced where an earlier demo made it."""
        if self._root.exists():
            if not (self._root / _MARK).is_file() or self._root.is_symlink():
                raise UserError(f"{self._root} was not made by `doit demo`.",
                                f"move it away: mv {self._root} elsewhere")
            shutil.rmtree(self._root)
        shutil.copytree(self._session.project / "tests" / "miniort", self._root)
        (self._root / _MARK).write_text("This folder is replaced by every `doit demo`.\n")
        places = {"ort_root": self._root, "build_dir": self._build}
        self._config.write_text("".join(f"{key} = {json.dumps(str(path))}\n" for key, path in places.items()))

    @property
    def _config(self) -> Path:
        return self._root / "fmha.toml"

    def _environ(self) -> Mapping[str, str]:
        environ = {name: value for name, value in self._session.environ.items() if not name.startswith("FMHA_")}
        # nvcc, cmake and ninja of this interpreter's environment come first, as in an activated one.
        environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ.get("PATH", os.defpath)))
        return environ | {"FMHA_CONFIG": str(self._config)}

    @staticmethod
    def _title(text: str) -> None:
        print(f"\n== {text}", flush=True)

    def _run(self, words: list[str], show: bool = True) -> tuple[int, list[str]]:
        lines: list[str] = []

        def on_line(line: str | None) -> None:
            if line is not None:
                lines.append(line)
                if show:
                    print(f"   {line}", flush=True)

        result = run_build(words, self._session.project, self._environ(), self._log, on_line)
        return result.status, lines

    def _script(self, *options: str) -> None:
        words = [str(self._root / "build.sh"), "--config", "Release", "--parallel", str(default_jobs()), *options]
        print(f"$ {shown(words)}", flush=True)
        status, lines = self._run(words, show=False)
        if status != 0:
            print("\n".join(lines[-8:]))
            raise UserError(f"The miniature checkout did not build (exit status {status}).",
                            f"whole output: {self._log}")
        print("   " + next((line for line in reversed(lines) if line.strip()), ""))

    def _doit(self, *arguments: str, expected: int = 0) -> None:
        print(f"$ doit {shown(arguments)}", flush=True)
        status, _ = self._run([sys.executable, "-m", "doit", *arguments])
        if status != expected:
            raise UserError(f"doit {shown(arguments)} ended with {status}, expected {expected}.",
                            f"whole output: {self._log}")

    def _tests(self, meaning: str, expected: str | None) -> bool:
        """Run the tests; False where there is no usable GPU, which is said and is no failure."""
        print("$ doit test_mea", flush=True)
        self._run([sys.executable, "-m", "doit", "test_mea"])
        report = json.loads((self._build / STATE_NAME / "report.json").read_text(encoding="utf-8"))
        if report["refusal"] in _NO_GPU:
            print(f"   refused with {report['refusal']}: right, there is no usable GPU here. With one: {meaning}.")
            return False
        if report["refusal"] != expected:
            raise UserError(f"test_mea: {report['refusal']}, expected {expected}.", f"whole output: {self._log}")
        print(f"   {meaning}")
        return True

    def _edit(self, revision: int, scale: str) -> None:
        header = self._root / _HEADER
        text = _REVISION.sub(rf"\1 {revision}", header.read_text(encoding="utf-8"))
        header.write_text(_SCALE.sub(rf"\g<1>{scale}f", text), encoding="utf-8")

    def _provider_revision(self) -> int:
        """Which revision of the header the built provider says that it holds."""
        status, lines = self._run([str(self._build / "onnxruntime_provider_test"), "--print_revisions"], show=False)
        found = {int(number) for line in lines if line.startswith("fmha_sm")
                 for number in re.findall(r"\bkernel_forward=(\d+)", line)}
        if status != 0 or len(found) != 1:
            raise UserError("The provider does not say which revision it holds.", f"look into {self._log}")
        return found.pop()


def demo(session: Session) -> None:
    """`demo`: ends with 0 where everything went as told, with a GPU or without."""
    _Demo(session).run()
