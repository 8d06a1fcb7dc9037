"""What is read of an input only after the build counts for the moment before it, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from tasks.evidence.receipts import ReceiptStore, UnitReceipt
from tasks.guarded_build import BeforeBuild, BuildResult, write_unit_receipts
from tasks.settings import load
from tasks.survey import Survey, read_survey
from tests.support import FMHA, FOUR_UNITS, Tree


def _look(tree: Tree) -> Survey:
    return read_survey(load(tree.root, tree.environment(), {}, tree.root), {})


def _receipt(tree: Tree, name: str) -> UnitReceipt:
    receipt = ReceiptStore(tree.build_dir).unit(name)
    assert receipt is not None
    return receipt


def _compile(tree: Tree) -> tuple[BeforeBuild, Survey, BuildResult]:
    """A compile from an edited header that no receipt knows, by hand, up to the look after it."""
    tree.edit()
    for name in FOUR_UNITS:
        os.utime(tree.root / FMHA / f"{name}.cu")
    before = BeforeBuild(_look(tree), ReceiptStore(tree.build_dir))
    assert tree.make("onnxruntime_providers_cuda").status == 0
    return before, _look(tree), BuildResult(complete=True)


def test_an_input_that_no_receipt_knows_is_read_for_the_receipt(make_tree: Tree) -> None:
    before, after, result = _compile(make_tree)
    write_unit_receipts(before, after, ReceiptStore(make_tree.build_dir), {}, result)
    assert result.recompiled == sorted(FOUR_UNITS)
    assert result.moved == {}
    assert not _receipt(make_tree, "fmha_sm80").moved
    assert make_tree.unit_files()["fmha_sm80"]["verdict"] == "fresh"


def test_an_input_that_is_written_before_it_is_read_for_the_receipt_moved(make_tree: Tree) -> None:
    before, after, result = _compile(make_tree)
    header: Path = make_tree.header("kernel_forward")
    stat = header.stat()
    make_tree.set_revision("kernel_forward", make_tree.revision("kernel_forward") + 1)
    assert header.stat().st_size == stat.st_size
    os.utime(header, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    write_unit_receipts(before, after, ReceiptStore(make_tree.build_dir), {}, result)
    assert result.moved == {name: [str(header.resolve())] for name in FOUR_UNITS}
    assert _receipt(make_tree, "fmha_sm80").moved == (str(header.resolve()),)
    assert make_tree.unit_files()["fmha_sm80"]["verdict"] != "fresh"
