"""Which files count as an object that a compiler wrote to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.guarded_build import _is_whole
from tests.binary import synthetic as syn

OBJECT = syn.object_with(syn.container(syn.entry()))


@pytest.mark.parametrize(("content", "ended_well", "whole"), [
    (OBJECT, True, True), (OBJECT, False, True), (OBJECT[:-8], True, False), (OBJECT[:40], True, False),
    (b"", True, False), (b"ELF", True, False), (b"\x7fELF", True, False), (b"text" * 99, True, False),
    (b"BC\xc0\xde....", True, True), (b"BC\xc0\xde....", False, False), (b"\xde\xc0\x17\x0b....", True, True)],
    ids=["object", "object of a failed build", "cut short", "half a header", "empty", "too short", "magic alone",
         "no object", "bitcode", "bitcode of a failed build", "wrapped bitcode"])
def test_an_object_is_whole(tmp_path: Path, content: bytes, ended_well: bool, whole: bool) -> None:
    (tmp_path / "unit.o").write_bytes(content)
    assert _is_whole(str(tmp_path / "unit.o"), ended_well) is whole


def test_a_missing_object_is_not_whole(tmp_path: Path) -> None:
    assert not _is_whole(str(tmp_path / "unit.o"), True)
