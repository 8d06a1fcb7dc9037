"""Receipts: kept whole, never believed of another build directory, never read half."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tasks.evidence import receipts
from tasks.evidence.receipts import (
    LinkReceipt,
    ReceiptStore,
    StepRecord,
    UnitReceipt,
    sealed,
    unsealed,
    write_atomically,
)
from tasks.evidence.snapshot import Identity

ID = Identity(1, 2, 3, 4, 5)


@pytest.fixture
def store(tmp_path: Path) -> ReceiptStore:
    (tmp_path / "build").mkdir()
    return ReceiptStore(tmp_path / "build")


def unit(store: ReceiptStore, name: str = "fmha_sm80", **changes: object) -> UnitReceipt:
    made = UnitReceipt(name, "/src/fmha_sm80.cu", "/b/fmha_sm80.cu.o", store.home, ID, "digest",
                       {"/src/kernel_forward.h": (ID, "other")}, {"compile line": "x"}, 1.5)
    return made._replace(**changes)  # type: ignore[arg-type]


def link(store: ReceiptStore) -> LinkReceipt:
    steps = {"/b/lib.so": StepRecord(ID, "d", {"/b/o": "x"})}
    return LinkReceipt("/b/lib.so", store.home, ID, "digest", {"/b/o": "x"}, steps, 2.5)


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "build/.fmha/receipts").iterdir())


def content(path: Path) -> dict[str, object]:
    """A receipt's parts, to be changed and sealed again: what is wrong then is not the seal."""
    data: dict[str, object] = json.loads(path.read_text().partition("\n")[0])
    del data["sha256"]
    return data


def test_a_units_receipt_comes_back_as_it_was(store: ReceiptStore) -> None:
    store.save_unit(unit(store))
    assert store.unit("fmha_sm80") == unit(store)


def test_a_link_receipt_comes_back_as_it_was(store: ReceiptStore) -> None:
    store.save_link(link(store))
    assert store.link() == link(store)


def test_without_a_receipt_there_is_none(store: ReceiptStore) -> None:
    assert store.unit("fmha_sm80") is None
    assert store.link() is None


def test_reading_makes_no_folder(store: ReceiptStore, tmp_path: Path) -> None:
    store.unit("fmha_sm80")
    store.withdraw("fmha_sm80")
    assert list((tmp_path / "build").iterdir()) == []


def test_a_withdrawn_receipt_is_kept_as_such(store: ReceiptStore) -> None:
    store.save_unit(unit(store))
    store.withdraw("fmha_sm80")
    assert store.unit("fmha_sm80") == unit(store, withdrawn=True)


def test_a_new_receipt_takes_the_place_of_a_withdrawn_one(store: ReceiptStore) -> None:
    store.save_unit(unit(store, withdrawn=True))
    store.save_unit(unit(store))
    assert store.unit("fmha_sm80") == unit(store)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.text("ab/:._ é-" + "x" * 3, min_size=1, max_size=130), min_size=2, max_size=4, unique=True))
def test_units_of_any_names_keep_their_own_receipts(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    store = ReceiptStore(tmp_path_factory.mktemp("build"))
    for name in names:
        store.save_unit(unit(store, name))
    assert [store.unit(name) for name in names] == [unit(store, name) for name in names]


def test_a_plain_name_is_the_files_name(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    assert [path.name for path in files(tmp_path)] == ["unit.fmha_sm80.json"]


def test_paths_that_are_no_utf_8_come_back(store: ReceiptStore) -> None:
    path = os.fsdecode(b"/src/\xff.h")
    store.save_unit(unit(store, inputs={path: (ID, "x")}))
    found = store.unit("fmha_sm80")
    assert found is not None
    assert list(found.inputs) == [path]


@pytest.mark.parametrize("first", [True, False])
def test_one_input_is_found_beside_others_whose_names_hold_its_own(store: ReceiptStore, first: bool) -> None:
    others = ['/"/x.h', '/y, "/x.h', "/x.h2", "/a/x.h", '/": /x.h', "/\\/x.h"]
    inputs = {path: (ID._replace(inode=number), path) for number, path in enumerate(others)}
    mine = {"/x.h": (ID, "mine")}
    store.save_unit(unit(store, inputs={**mine, **inputs} if first else {**inputs, **mine}))
    for path, known in {**mine, **inputs, "/none.h": None}.items():
        found = store.unit("fmha_sm80")
        assert found is not None
        assert found.inputs.get(path) == known
    assert found is not None
    assert [found.inputs.get(path) for path in (*mine, *inputs, "/none.h")] == [*mine.values(), *inputs.values(), None]
    store.save_unit(unit(store, inputs=inputs))
    without = store.unit("fmha_sm80")
    assert without is not None
    assert without.inputs.get("/x.h") is None


def test_a_copied_build_directory_has_no_receipts(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    store.save_link(link(store))
    shutil.copytree(tmp_path / "build", tmp_path / "copy")
    copy = ReceiptStore(tmp_path / "copy")
    assert (copy.unit("fmha_sm80"), copy.link()) == (None, None)


def test_a_renamed_build_directory_keeps_its_receipts(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_link(link(store))
    (tmp_path / "build").rename(tmp_path / "moved")
    assert ReceiptStore(tmp_path / "moved").link() == link(store)


def test_a_wiped_build_directory_has_no_receipts(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    shutil.rmtree(tmp_path / "build")
    (tmp_path / "build").mkdir()
    assert ReceiptStore(tmp_path / "build").unit("fmha_sm80") is None


def test_a_receipt_of_another_format_is_none(store: ReceiptStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save_unit(unit(store))
    monkeypatch.setattr(receipts, "FORMAT", receipts.FORMAT + 1)
    assert store.unit("fmha_sm80") is None


@pytest.mark.parametrize("text", ["", "garbage", "[]", "null", "{}", '{"format": 1}', "\xff"],
                         ids=["empty", "garbage", "list", "null", "nothing", "format alone", "latin"])
def test_a_receipt_that_cannot_be_read_is_none(store: ReceiptStore, tmp_path: Path, text: str) -> None:
    store.save_unit(unit(store))
    store.save_link(link(store))
    for path in files(tmp_path):
        path.write_bytes(text.encode("latin-1"))
    assert (store.unit("fmha_sm80"), store.link()) == (None, None)


def test_a_receipt_that_was_cut_anywhere_is_none(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    (path,) = files(tmp_path)
    text = path.read_text()
    for length in range(len(text)):
        path.write_text(text[:length])
        assert store.unit("fmha_sm80") is None


def test_a_receipt_with_one_flipped_bit_is_none(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    store.save_link(link(store))
    for path in files(tmp_path):
        data = path.read_bytes()
        for position in range(len(data)):
            path.write_bytes(data[:position] + bytes([data[position] ^ 1 << position % 8]) + data[position + 1:])
            assert (store.unit("fmha_sm80") if "unit" in path.name else store.link()) is None
        path.write_bytes(data)
    assert store.unit("fmha_sm80") == unit(store)
    assert store.link() == link(store)


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists), min_size=1))
def test_what_was_sealed_comes_back(data: dict[str, object]) -> None:
    data.pop("sha256", None)
    back = unsealed(sealed({"format": 1, **data}))
    assert back is not None
    assert {key: value for key, value in back.items() if key != "sha256"} == {"format": 1, **data}


@pytest.mark.parametrize("key", ["unit", "source", "object", "object_identity", "object_digest", "moment", "recipe",
                                 "built", "withdrawn", "home"])
def test_a_receipt_without_one_of_its_parts_is_none(store: ReceiptStore, tmp_path: Path, key: str) -> None:
    store.save_unit(unit(store))
    (path,) = files(tmp_path)
    data = content(path)
    assert store.unit("fmha_sm80") is not None
    del data[key]
    path.write_text(sealed(data))
    assert store.unit("fmha_sm80") is None


@pytest.mark.parametrize(("key", "value"), [("object_identity", [1, 2]), ("built", "x"), ("recipe", 1),
                                            ("object_identity", None), ("unit", "another")])
def test_a_receipt_with_a_wrong_part_is_none(store: ReceiptStore, tmp_path: Path, key: str, value: object) -> None:
    store.save_unit(unit(store))
    (path,) = files(tmp_path)
    path.write_text(sealed({**content(path), key: value}))
    assert store.unit("fmha_sm80") is None


def test_writing_leaves_no_other_file(store: ReceiptStore, tmp_path: Path) -> None:
    store.save_unit(unit(store))
    store.save_unit(unit(store))
    assert len(files(tmp_path)) == 1


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as failed:
            write_atomically(path, "new" * 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert failed.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
