"""What the last test run proved, for as long as every file that ran is the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tasks.evidence.chain import Link
from tasks.evidence.receipts import sealed
from tasks.evidence.runs import RunStore
from tasks.evidence.snapshot import Observer

LINKS = [Link(4, "fresh", ("mapped /b/lib.so",)), Link(5, "fresh", ("7 tests ran",)),
         Link(6, "stale", ("the unfused path ran",), "doit test_mea"), Link(7, "unproven", ("no GPU",))]


class Run:
    """A run of a test executable with a provider, and what is kept of it."""

    def __init__(self, folder: Path) -> None:
        self.state = folder
        self.provider, self.test = folder / "lib.so", folder / "onnxruntime_provider_test"
        self.provider.write_text("provider")
        self.test.write_text("test")
        RunStore(folder).save(LINKS, [str(self.provider), str(self.test)])

    def links(self, provider: Path | None = None) -> list[Link]:
        return RunStore(self.state).links(str(provider or self.provider), Observer(), "doit test_mea")

    def why(self) -> str:
        """Why nothing is kept."""
        links = self.links()
        assert [(link.n, link.verdict, link.checked) for link in links] == [
            (n, "unproven", False) for n in (4, 5, 6, 7)]
        assert {link.remedy for link in links} == {"doit test_mea"}
        return links[0].evidence[0]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_the_links_come_back_as_they_were(run: Run) -> None:
    assert run.links() == LINKS


def test_without_a_run_nothing_was_run(run: Run) -> None:
    (run.state / "run.json").unlink()
    assert run.why() == "not run"


def test_another_provider_was_not_run(run: Run) -> None:
    run.provider.write_text("relinked")
    assert run.why() == "not run since lib.so changed"


def test_another_test_executable_was_not_run(run: Run) -> None:
    run.test.write_text("TEST")
    assert run.why() == "not run since onnxruntime_provider_test changed"


def test_a_missing_file_was_not_run(run: Run) -> None:
    run.test.unlink()
    assert "changed" in run.why()


def test_a_touched_file_is_the_one_that_ran(run: Run) -> None:
    os.utime(run.provider, (1, 1))
    assert run.links() == LINKS


def test_a_provider_elsewhere_was_not_run(run: Run) -> None:
    assert run.links(run.state / "other.so")[0].evidence == ("not run with this provider",)


@pytest.mark.parametrize("text", ["", "garbage", "[]", "null", sealed({"format": 2}),
                                  sealed({"format": 2, "files": {}, "links": [[4]]}),
                                  sealed({"format": 2, "files": [], "links": [[4], [5], [6], [7]]}),
                                  sealed({"format": 1, "files": {}, "links": [[4], [5], [6], [7]]})])
def test_a_record_that_cannot_be_read_is_none(run: Run, text: str) -> None:
    (run.state / "run.json").write_text(text)
    assert run.why() == "not run"


def test_a_record_with_another_verdict_than_was_written_is_none(run: Run) -> None:
    path = run.state / "run.json"
    path.write_text(path.read_text().replace('"stale"', '"fresh"'))
    assert run.why() == "not run"


def test_a_file_that_is_missing_when_the_run_is_kept_is_left_out(run: Run) -> None:
    RunStore(run.state).save(LINKS, [str(run.provider), str(run.state / "none")])
    assert list(json.loads((run.state / "run.json").read_text())["files"]) == [str(run.provider)]
