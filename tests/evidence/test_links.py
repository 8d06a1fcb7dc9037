"""Link 3: whether the provider was linked from the objects as they are now."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tasks.evidence.chain import Link, UnitJudgement, Verdict, judge_linked
from tasks.evidence.linking import Step, prove_steps
from tasks.evidence.receipts import LinkReceipt, StepRecord
from tasks.evidence.snapshot import Identity, Observer, identity_of


class Provider:
    """Two objects, an archive of the second, and the provider that holds both."""

    def __init__(self, folder: Path) -> None:
        self.one, self.two, self.archive, self.provider = (folder / name for name in ("1.o", "2.o", "lib.a", "lib.so"))
        self.steps = (Step(str(self.archive), (str(self.two),)),
                      Step(str(self.provider), (str(self.one), str(self.archive))))
        self.before: dict[str, Identity | None] = {}
        self.since_ns = 0
        self.old: LinkReceipt | None = None
        self.begin()

    def begin(self) -> None:
        """The moment before a build."""
        time.sleep(0.02)
        self.before = {step.output: identity_of(step.output) for step in self.steps}
        self.since_ns = time.time_ns() - 10_000_000

    @staticmethod
    def make(*paths: Path) -> None:
        """Write files one after the other, each at a later time."""
        for path in paths:
            time.sleep(0.02)
            path.write_text(f"{path.name} {time.time_ns()}")

    def prove(self) -> tuple[dict[str, StepRecord], list[str]]:
        return prove_steps(self.steps, self.before, self.since_ns, self.old, Observer())

    def keep(self) -> None:
        """A receipt of what was proved."""
        records, unproved = self.prove()
        assert unproved == []
        top = records[str(self.provider)]
        now = Observer()
        objects = {str(path): str(now.digest(str(path))) for path in (self.one, self.two)}
        self.old = LinkReceipt(str(self.provider), (1, 1), top.identity, top.digest, objects, records, 10.0)

    def judge(self, one: Verdict = "fresh", two: Verdict = "fresh") -> Link:
        judged = {str(self.one): UnitJudgement("one", one, ""), str(self.two): UnitJudgement("two", two, "")}
        return judge_linked(str(self.provider), judged, self.old, Observer(), "doit rebuild_fmha")


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    return Provider(tmp_path)


@pytest.fixture
def linked(provider: Provider) -> Provider:
    """Linked and proved."""
    provider.make(provider.one, provider.two, provider.archive, provider.provider)
    provider.keep()
    provider.begin()
    return provider


def test_steps_that_were_written_after_their_inputs_are_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.two, provider.archive, provider.provider)
    records, unproved = provider.prove()
    assert unproved == []
    assert list(records) == [str(provider.archive), str(provider.provider)]


def test_a_step_that_was_not_written_is_not_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.two, provider.archive, provider.provider)
    provider.begin()
    assert provider.prove()[1] == [str(provider.archive), str(provider.provider)]


def test_an_output_that_is_older_than_an_input_is_not_proved(provider: Provider) -> None:
    provider.make(provider.two, provider.archive, provider.provider, provider.one)
    assert provider.prove()[1] == [str(provider.provider)]


def test_what_stands_on_an_unproved_step_is_not_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.archive, provider.two, provider.provider)
    records, unproved = provider.prove()
    assert records == {}
    assert unproved == [str(provider.archive), str(provider.provider)]


def test_a_missing_output_is_not_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.two, provider.archive)
    assert provider.prove()[1] == [str(provider.provider)]


def test_a_missing_input_is_not_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.two, provider.archive, provider.provider)
    provider.one.unlink()
    assert provider.prove()[1] == [str(provider.provider)]


def test_an_output_that_was_put_there_with_an_older_time_is_not_proved(provider: Provider) -> None:
    provider.make(provider.one, provider.two, provider.archive, provider.provider)
    os.utime(provider.provider, (1, 1))
    assert provider.prove()[1] == [str(provider.provider)]


def test_a_build_that_linked_nothing_keeps_its_proof(linked: Provider) -> None:
    assert linked.prove()[1] == []


def test_the_proof_outlives_a_copy_with_the_same_content(linked: Provider) -> None:
    content = linked.provider.read_text()
    linked.provider.unlink()
    linked.provider.write_text(content)
    os.utime(linked.provider, (1, 1))
    assert linked.prove()[1] == []


def test_an_old_proof_is_none_for_another_object(linked: Provider) -> None:
    linked.make(linked.two)
    assert linked.prove()[1] == [str(linked.archive), str(linked.provider)]


def test_an_old_proof_is_none_for_another_output(linked: Provider) -> None:
    linked.make(linked.provider)
    linked.begin()
    assert linked.prove()[1] == [str(linked.provider)]


def test_a_provider_that_was_linked_from_these_objects_is_fresh(linked: Provider) -> None:
    assert (linked.judge().verdict, linked.judge().remedy) == ("fresh", None)


def test_a_provider_without_a_receipt_is_unproven(linked: Provider) -> None:
    linked.old = None
    assert linked.judge().verdict == "unproven"


def test_a_missing_provider_is_unproven(linked: Provider) -> None:
    linked.provider.unlink()
    link = linked.judge()
    assert (link.verdict, link.evidence, link.remedy) == ("unproven", ("lib.so does not exist",), "doit rebuild_fmha")


def test_a_receipt_of_another_provider_proves_nothing(linked: Provider) -> None:
    linked.provider = linked.archive
    assert linked.judge().verdict == "unproven"


def test_a_provider_from_outside_is_unproven(linked: Provider) -> None:
    linked.make(linked.provider)
    link = linked.judge()
    assert link.verdict == "unproven"
    assert "by hand" in link.evidence[0]


def test_a_provider_beside_a_newer_proved_object_is_stale(linked: Provider) -> None:
    linked.make(linked.one)
    link = linked.judge()
    assert link.verdict == "stale"
    assert "another object of one" in link.evidence[0]


def test_a_provider_beside_an_object_from_outside_is_unproven(linked: Provider) -> None:
    linked.make(linked.one)
    assert linked.judge(one="unproven").verdict == "unproven"


def test_a_provider_beside_a_missing_object_is_unproven(linked: Provider) -> None:
    linked.two.unlink()
    assert linked.judge(two="unproven").verdict == "unproven"


def test_an_object_that_was_not_part_of_the_link_is_unproven(linked: Provider, tmp_path: Path) -> None:
    (tmp_path / "3.o").write_text("")
    judged = {str(tmp_path / "3.o"): UnitJudgement("three", "fresh", "")}
    link = judge_linked(str(linked.provider), judged, linked.old, Observer(), "")
    assert link.verdict == "unproven"
    assert "three was not part of" in link.evidence[0]


def test_the_worst_object_counts(linked: Provider) -> None:
    linked.make(linked.one, linked.two)
    assert linked.judge(one="unproven", two="fresh").verdict == "stale"


def test_links_know_their_names() -> None:
    names = [Link(n, "fresh", ()).name for n in range(1, 8)]
    assert names == ["header-unit", "unit-object", "object-provider", "provider-process", "process-tests",
                     "tests-kernel", "kernel-gpu"]
