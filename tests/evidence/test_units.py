"""Link 2: whether an object was compiled from its inputs as they are now."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.evidence.chain import UnitFacts, UnitJudgement, judge_unit, link_of_objects, worst
from tasks.evidence.receipts import ReceiptStore, UnitReceipt
from tasks.evidence.snapshot import Identity, Observer


class Unit:
    """A unit with two headers, its object, and a receipt of how both are now."""

    def __init__(self, folder: Path) -> None:
        self.source, self.header, self.other = (folder / name for name in ("u.cu", "kernel_forward.h", "other.h"))
        self.object = folder / "u.cu.o"
        for path in (self.source, self.header, self.other, self.object):
            path.write_text(f"content of {path.name}")
        self.facts = UnitFacts("u", str(self.source), str(self.object),
                               frozenset(map(str, (self.source, self.header, self.other))), {"compile line": "x"})
        self.receipt: UnitReceipt | None = self.proof()

    def proof(self) -> UnitReceipt:
        seen = Observer()

        def known(path: str) -> tuple[Identity, str]:
            identity, digest = seen.identity(path), seen.digest(path)
            assert identity is not None
            assert digest is not None
            return identity, digest

        return UnitReceipt("u", str(self.source), str(self.object), (1, 1), *known(str(self.object)),
                           {path: known(path) for path in self.facts.inputs}, self.facts.recipe, 10.0)

    def change(self, **changes: object) -> None:
        self.facts = self.facts._replace(**changes)  # type: ignore[arg-type]

    def judge(self) -> UnitJudgement:
        return judge_unit(self.facts, self.receipt, Observer())


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    return Unit(tmp_path)


def test_a_receipt_whose_inputs_and_object_did_not_move_is_proof(unit: Unit) -> None:
    judged = unit.judge()
    assert judged.verdict == "fresh"
    assert "3 inputs" in judged.reason


def test_without_a_receipt_nothing_is_proved(unit: Unit) -> None:
    unit.receipt = None
    assert unit.judge().verdict == "unproven"


def test_without_an_object_nothing_is_proved(unit: Unit) -> None:
    unit.object.unlink()
    judged = unit.judge()
    assert (judged.verdict, judged.reason) == ("unproven", "its object does not exist")


def test_an_edited_header_disproves_and_is_named(unit: Unit) -> None:
    unit.header.write_text("edited")
    judged = unit.judge()
    assert judged.verdict == "stale"
    assert judged.changed == (str(unit.header),)
    assert judged.reason.startswith("kernel_forward.h changed since the compile of")


def test_an_edit_with_the_old_size_and_mtime_disproves(unit: Unit) -> None:
    old = unit.header.stat()
    time.sleep(0.02)
    unit.header.write_text(unit.header.read_text().upper())
    os.utime(unit.header, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert unit.judge().verdict == "stale"


def test_an_edit_with_an_mtime_from_long_ago_disproves(unit: Unit) -> None:
    unit.header.write_text("edited")
    os.utime(unit.header, (1, 1))
    assert unit.judge().verdict == "stale"


@pytest.mark.parametrize("kept", [False, True])
def test_an_edited_source_disproves_and_a_touched_one_does_not(unit: Unit, tmp_path: Path, kept: bool) -> None:
    if kept:
        store = ReceiptStore(tmp_path)
        assert unit.receipt is not None
        store.save_unit(unit.receipt._replace(home=store.home))
        unit.receipt = store.unit("u")
    os.utime(unit.source, (1, 1))
    assert unit.judge().verdict == "fresh"
    unit.source.write_text(unit.source.read_text().upper())
    judged = unit.judge()
    assert (judged.verdict, judged.changed) == ("stale", (str(unit.source),))


def test_a_header_that_has_its_old_content_again_is_proof(unit: Unit) -> None:
    content = unit.header.read_text()
    unit.header.write_text("edited")
    unit.header.write_text(content)
    assert unit.judge().verdict == "fresh"


def test_a_touched_header_is_proof(unit: Unit) -> None:
    unit.header.touch()
    assert unit.judge().verdict == "fresh"


def test_a_missing_header_disproves(unit: Unit) -> None:
    unit.header.unlink()
    assert unit.judge().verdict == "stale"


def test_an_edited_source_disproves(unit: Unit) -> None:
    unit.source.write_text("edited")
    assert unit.judge().verdict == "stale"


def test_a_new_input_disproves(unit: Unit) -> None:
    unit.change(inputs=unit.facts.inputs | {"/new/shadow.h"})
    assert "shadow.h is an input now" in unit.judge().reason
    assert unit.judge().verdict == "stale"


def test_an_input_that_is_none_any_more_disproves(unit: Unit) -> None:
    unit.change(inputs=unit.facts.inputs - {str(unit.other)})
    assert "other.h is no input any more" in unit.judge().reason
    assert unit.judge().verdict == "stale"


@pytest.mark.parametrize("recipe", [{"compile line": "y"}, {}, {"compile line": "x", "NVCC_APPEND_FLAGS": "-G"}])
def test_another_recipe_disproves(unit: Unit, recipe: dict[str, str]) -> None:
    unit.change(recipe=recipe)
    assert unit.judge().verdict == "stale"


def test_more_than_one_difference_is_counted(unit: Unit) -> None:
    unit.header.write_text("edited")
    unit.other.write_text("edited")
    unit.change(recipe={})
    assert "(and 2 more)" in unit.judge().reason


def test_an_object_from_outside_is_unproven_even_beside_an_edit(unit: Unit) -> None:
    unit.object.write_text("rebuilt by hand")
    unit.header.write_text("edited")
    judged = unit.judge()
    assert judged.verdict == "unproven"
    assert "by hand" in judged.reason


def test_an_object_that_was_copied_over_itself_is_proof(unit: Unit) -> None:
    content = unit.object.read_text()
    unit.object.unlink()
    unit.object.write_text(content)
    assert unit.judge().verdict == "fresh"


def test_a_receipt_of_another_object_proves_nothing(unit: Unit) -> None:
    assert unit.receipt is not None
    unit.receipt = unit.receipt._replace(object="/elsewhere/u.cu.o")
    assert unit.judge().verdict == "unproven"


def test_a_receipt_of_another_source_proves_nothing(unit: Unit) -> None:
    assert unit.receipt is not None
    unit.receipt = unit.receipt._replace(source="/elsewhere/u.cu")
    assert unit.judge().verdict == "unproven"


def test_a_withdrawn_receipt_is_no_proof(unit: Unit) -> None:
    assert unit.receipt is not None
    unit.receipt = unit.receipt._replace(withdrawn=True)
    assert unit.judge().verdict == "unproven"


def test_a_withdrawn_receipt_still_disproves(unit: Unit) -> None:
    assert unit.receipt is not None
    unit.receipt = unit.receipt._replace(withdrawn=True)
    unit.header.write_text("edited")
    assert unit.judge().verdict == "stale"


_CHANGES: list[Callable[[Unit], object]] = [
    lambda unit: unit.header.write_text("edited"), lambda unit: unit.source.unlink(),
    lambda unit: unit.object.write_text("other"), lambda unit: unit.object.unlink(),
    lambda unit: unit.change(inputs=unit.facts.inputs | {"/new.h"}),
    lambda unit: unit.change(recipe={"compile line": "y"}),
    lambda unit: setattr(unit, "receipt", None),
    lambda unit: setattr(unit, "receipt", unit.receipt and unit.receipt._replace(withdrawn=True)),
]


@pytest.mark.parametrize("first", range(len(_CHANGES)))
@pytest.mark.parametrize("second", range(len(_CHANGES)))
def test_no_two_changes_together_are_fresh(unit: Unit, first: int, second: int) -> None:
    _CHANGES[first](unit)
    if second != first:
        _CHANGES[second](unit)
    assert unit.judge().verdict != "fresh"


def test_the_worst_verdict_counts() -> None:
    assert worst(["fresh", "stale", "unproven"]) == "stale"
    assert worst(["fresh", "unproven"]) == "unproven"
    assert worst(["fresh", "fresh"]) == "fresh"


def test_nothing_is_fresh_because_nothing_was_found() -> None:
    assert worst([]) == "unproven"
    assert link_of_objects([], "doit rebuild_fmha").verdict == "unproven"


def test_the_link_names_the_broken_units_the_worst_first() -> None:
    judged = [UnitJudgement("a", "unproven", "x"), UnitJudgement("b", "fresh", "y"), UnitJudgement("c", "stale", "z")]
    link = link_of_objects(judged, "doit rebuild_fmha")
    assert (link.verdict, link.remedy) == ("stale", "doit rebuild_fmha")
    assert link.evidence == ("c: stale: z", "a: unproven: x")


def test_a_whole_link_needs_no_remedy() -> None:
    link = link_of_objects([UnitJudgement("a", "fresh", "x")], "doit rebuild_fmha")
    assert (link.verdict, link.remedy, link.name) == ("fresh", None, "unit-object")


def with_moved_header(unit: Unit) -> None:
    assert unit.receipt is not None
    known = {path: entry for path, entry in unit.receipt.inputs.items() if path != str(unit.header)}
    unit.receipt = unit.receipt._replace(inputs=known, withdrawn=True, moved=(str(unit.header),))


def test_an_input_that_was_written_during_the_compile_proves_nothing_whatever_it_is_now(unit: Unit) -> None:
    with_moved_header(unit)
    for text in ("content of kernel_forward.h", "another"):
        unit.header.write_text(text)
        judged = unit.judge()
        assert judged.verdict == "unproven"
        assert "kernel_forward.h was written while it was compiled" in judged.reason
    # Which files it brought along is not known either.
    unit.change(inputs=unit.facts.inputs | {"/brought/along.h"})
    assert unit.judge().verdict == "unproven"


def test_beside_an_input_that_was_written_during_the_compile_another_one_disproves_the_object(unit: Unit) -> None:
    with_moved_header(unit)
    unit.other.write_text("changed")
    judged = unit.judge()
    assert (judged.verdict, judged.changed) == ("stale", (str(unit.other),))
