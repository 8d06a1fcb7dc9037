"""A command that is shown means, typed as it is, what it meant in the run that showed it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.session import Session
from tests.support import PROJECT, Tree, clean_environment, run

DODO = PROJECT / "dodo.py"


@pytest.mark.parametrize(("mend", "there", "elsewhere"), [
    ("doit test_mea", "doit test_mea 'ort_root=/a b'", f"doit -f {DODO} test_mea 'ort_root=/a b'"),
    ("put it on PATH, then: doit TASK jobs=1", "put it on PATH, then: doit TASK 'ort_root=/a b' jobs=1",
     f"put it on PATH, then: doit -f {DODO} TASK 'ort_root=/a b' jobs=1"),
    ("doit TASK ort_root=/path", "doit TASK ort_root=/path", f"doit -f {DODO} TASK ort_root=/path"),
    ("`doit -s verify` judges it", "`doit -s verify 'ort_root=/a b'` judges it",
     f"`doit -f {DODO} -s verify 'ort_root=/a b'` judges it"),
    ("free space, then run it again", "free space, then run it again", "free space, then run it again"),
])
def test_commands_are_shown_as_this_run_was_started(tmp_path: Path, mend: str, there: str, elsewhere: str) -> None:
    given = {"ort_root": "/a b", "wait": "1"}
    assert Session(PROJECT, PROJECT, {}, given).as_started(mend) == there
    outside = Session(PROJECT, tmp_path, {}, given)
    assert outside.as_started(mend) == elsewhere
    assert outside.as_started(outside.command("verify")) == outside.command("verify")


def test_a_mend_that_is_shown_elsewhere_works_there(make_tree: Tree) -> None:
    make_tree.edit()
    words = ["-f", str(DODO), "status", f"ort_root={make_tree.root}"]
    environ = clean_environment({})
    shown = run([*make_tree.words()[:3], *words], make_tree.root.parent, environ)
    assert shown.status == 1
    mend = shown.out.splitlines()[-1].split()
    assert mend[:2] == ["doit", "-f"]
    assert run([*make_tree.words()[:3], *mend[1:]], make_tree.root.parent, environ).status == 0
    assert make_tree.verdict() == "fresh"
