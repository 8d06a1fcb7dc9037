"""A miniature checkout built for the GPU at hand, with edits whose effect on numbers is known."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import Run, Tree, run

LAUNCH = "MINIORT_LAUNCH(attention_kernel_batched<Attention>, grid, block, params.stream, p);"
KERNEL = "AK::attention_kernel(params, shared_key, shared_value);"
OLD = 978307200  # 2001-01-01: older than any object


@dataclass(frozen=True)
class Tested:
    """One `doit test_mea`: its exit status, what it printed, and its report."""

    status: int
    text: str
    report: Mapping[str, Any]

    @property
    def refusal(self) -> str | None:
        word: str | None = self.report["refusal"]
        return word

    @property
    def verdicts(self) -> list[str]:
        """Of links 1 to 7."""
        return [link["verdict"] for link in self.report["links"]]

    def evidence(self, number: int) -> str:
        return "\n".join(self.report["links"][number - 1]["evidence"])


class GpuTree:
    """`tree`, tested on the GPU."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def test(self, *arguments: str, env: Mapping[str, str] | None = None) -> Tested:
        """`doit test_mea`."""
        done = self.tree.doit("test_mea", *arguments, env=env, timeout=600)
        report = self.tree.report()
        assert report["task"] == "test_mea", done.text
        good = report["refusal"] is None and report["verdict"] == "fresh"
        assert done.status == (0 if good else 1), done.text
        return Tested(done.status, done.text, report)

    def by_hand(self, test_filter: str = "*MEA*") -> Run:
        """The tests as a user starts them."""
        return run([self.tree.build_dir / "onnxruntime_provider_test", f"--gtest_filter={test_filter}"],
                   self.tree.build_dir, timeout=120)

    def replace(self, header: str, old: str, new: str) -> None:
        path = self.tree.header(header)
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))

    def scale(self, factor: float, mtime: float | None = None) -> None:
        """Multiply the attention scores: another factor is another result."""
        path = self.tree.header("kernel_forward")
        path.write_text(re.sub(r"(kScoreScaleNumerator = )[\d.]+f", rf"\g<1>{factor}f", path.read_text()))
        if mtime is not None:
            os.utime(path, (mtime, mtime))

    def copy_elsewhere(self, folder: Path) -> Path:
        """Test executable and provider as they are now, in another folder."""
        folder.mkdir()
        for name in ("onnxruntime_provider_test", "libonnxruntime_providers_cuda.so"):
            (folder / name).write_bytes((self.tree.build_dir / name).read_bytes())
            (folder / name).chmod(0o755)
        return folder / "onnxruntime_provider_test"


def results(tested: Tested) -> str:
    """The tests' part of the report, for a failed assertion."""
    return json.dumps(tested.report["tests"], indent=1)[:4000] + tested.text[-2000:]
