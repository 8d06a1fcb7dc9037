"""What README.md lists is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from tasks.checkout.compile_line import COMPILER_VARIABLES
from tests.support import PROJECT, Tree

README = (PROJECT / "README.md").read_text()


def test_every_command_has_json_but_those_that_the_readme_leaves_out(tmp_path: Path) -> None:
    table = README.partition("| question | command |")[2].partition("\n\n")[0]
    commands = set(re.findall(r"`doit (\w+)", table))
    assert {"rebuild_fmha", "verify", "test_mea", "demo"} <= commands
    told = re.search(r"`--json` on every command([^.;]*?) puts one JSON document", README.replace("\n", " "))
    assert told is not None
    tree = Tree(tmp_path / "ort")
    without = {name for name in commands if "--json" not in tree.doit("help", name).out}
    assert set(re.findall(r"`(\w+)`", told[1])) == without


def test_the_readme_names_every_variable_that_counts() -> None:
    section = README.partition("What counts as an input of an object")[2].partition("\n\n")[0]
    assert set(COMPILER_VARIABLES) <= set(re.findall(r"`([A-Z_]+)`", section))
