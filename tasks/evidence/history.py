"""Kept test runs of one build directory, one file each in `<build_dir>/.fmha/runs/`: no run can lose another's."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path

from tasks.evidence import STATE_NAME
from tasks.evidence.flips import TestRun
from tasks.evidence.receipts import write_atomically
from tasks.evidence.snapshot import identity_of

__all__ = ["KEPT", "RunHistory"]

KEPT = 100
_FORMAT = 1


class RunHistory:
    """The newest :data:`KEPT` runs. A file that cannot be read is no run; a copied build directory has none."""

    def __init__(self, build_dir: Path) -> None:
        self._folder = build_dir / STATE_NAME / "runs"
        identity = identity_of(build_dir)
        self._home = [identity.device, identity.inode] if identity else []

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.json"))

    def runs(self) -> list[TestRun]:
        """The kept runs, oldest first."""
        return [run for path in self._files() if (run := self._read(path)) is not None]

    def _read(self, path: Path) -> TestRun | None:
        try:
            data = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
            if data["format"] != _FORMAT or data["home"] != self._home:
                return None
            fields = {field.name: data[field.name] for field in dataclasses.fields(TestRun)}
            texts = [fields["provider"], fields["tests"], *fields["results"], *fields["results"].values()]
            whole = isinstance(fields["started"], (int, float)) and all(isinstance(text, str) for text in texts)
            return TestRun(**fields) if whole else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def add(self, run: TestRun) -> None:
        """Keep one more run and drop the oldest beyond :data:`KEPT`. Raises :class:`OSError`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{time.time_ns():020d}-{os.getpid()}.json"
        write_atomically(path, json.dumps({"format": _FORMAT, "home": self._home, **dataclasses.asdict(run)}))
        for old in self._files()[:-KEPT]:
            old.unlink(missing_ok=True)
