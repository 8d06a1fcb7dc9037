"""The digest of host code, by the host's compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.binary.fingerprint import fingerprint
from tests.binary.toolkit import run

SOURCE = "int first(); int second();\nint n = 3;\nint call() { return first() + n; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def _host(folder: Path, source: str, *flags: str, name: str = "unit") -> str:
    (folder / f"{name}.cc").write_text(source)
    run("g++", *flags, "-c", folder / f"{name}.cc", "-o", folder / f"{name}.o")
    return fingerprint(folder / f"{name}.o").host


def test_a_comment_and_the_sources_name_change_nothing_though_debug_information_holds_both(folder: Path) -> None:
    assert _host(folder, "// a comment\n" + SOURCE, "-g", name="other") == _host(folder, SOURCE, "-g")


@pytest.mark.parametrize(("old", "new"), [("first() +", "second() +"), ("+ n", "- n"), ("n = 3", "n = 4"),
                                          ("call()", "other()"), ("int n = 3", "static int n = 3")],
                         ids=["another function called", "other instructions", "other data", "another name",
                              "internal linkage"])
def test_host_code_differs_by(folder: Path, old: str, new: str) -> None:
    assert _host(folder, SOURCE.replace(old, new)) != _host(folder, SOURCE)


def test_a_static_librarys_digest_is_that_of_its_members(folder: Path) -> None:
    one = _host(folder, SOURCE)
    run("ar", "rcs", folder / "one.a", folder / "unit.o")
    before = fingerprint(folder / "one.a").host
    _host(folder, SOURCE.replace("n = 3", "n = 4"))
    run("ar", "rcs", folder / "two.a", folder / "unit.o")
    assert len({one, before, fingerprint(folder / "two.a").host}) == 3
