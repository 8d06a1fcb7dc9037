"""A build directory of real GoogleTest programs per test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tasks.gtest import Outcome, Progress, TestRequest, run_tests

PROVIDER = "libonnxruntime_providers_cuda.so"


@dataclass
class Bench:
    """A build directory with a test executable and a provider; `run` is the shortest way to an outcome."""

    folder: Path
    environ: dict[str, str]
    progress: list[Progress] = field(default_factory=list)

    @property
    def binary(self) -> Path:
        return self.folder / "onnxruntime_provider_test"

    @property
    def provider(self) -> Path:
        return self.folder / PROVIDER

    def request(self, **changes: object) -> TestRequest:
        given: dict[str, object] = {
            "binary": self.binary, "workdir": self.folder, "patterns": ("*",), "provider": self.provider,
            "report_file": self.folder / "report" / "gtest.json", "log_dir": self.folder / "logs",
            "junit_file": self.folder / "junit.xml",
        }
        return TestRequest(**{**given, **changes})  # type: ignore[arg-type]

    def run(self, tests: str, environ: dict[str, str] | None = None, **changes: object) -> Outcome:
        self.progress.clear()
        return run_tests(self.request(**changes), self.progress.append,
                         {**self.environ, "FAKE_TESTS": tests, **(environ or {})})


@pytest.fixture
def bench(programs: Path, tmp_path: Path) -> Bench:
    folder = tmp_path / "it's a $HOME %s build"
    folder.mkdir()
    shutil.copy(programs / "scripted", folder / "onnxruntime_provider_test")
    shutil.copy(programs / "provider.so", folder / PROVIDER)
    return Bench(folder, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Pretend that the run's GPU was probed: the judgement is under test, not the driver."""
    from tasks.gtest import run
    from tasks.gtest.device import Device

    def pretend(capability: int) -> None:
        device = Device("NVIDIA H200", "GPU-1", capability, 100, 200)
        monkeypatch.setattr(run, "probe", lambda *_: device)

    return pretend
