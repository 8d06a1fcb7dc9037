"""The commands as a user runs them: `doit audit`, `doit why`; exit status, output, and that nothing is changed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Project

Built = Callable[..., Project]
DODO = Path(__file__).parents[2] / "dodo.py"


def _doit(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    places = [f"ort_root={project.root}", f"build_dir={project.build_dir}"]
    return subprocess.run([sys.executable, "-m", "doit", "-f", str(DODO), *words, *places], cwd=project.root,
                          env=project.environ, capture_output=True, text=True, check=False)


def _everything(project: Project) -> dict[str, tuple[int, int, bytes]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns,
                        path.read_bytes() if path.is_file() else b"")
            for path in sorted(project.root.rglob("*")) if ".fmha" not in path.parts}


@pytest.mark.parametrize("state", [False, True])
def test_an_audit_changes_no_file_and_no_time(built: Built, state: bool) -> None:
    project = built().build()
    if not project.is_make:
        log = project.build_dir / ".ninja_deps"
        log.write_bytes(log.read_bytes()[:-5])
    if state:
        (project.build_dir / ".fmha").mkdir()
    before = _everything(project)
    for words in (["audit"], ["audit", "compiler=1"], ["why", "fmha_sm80"]):
        _doit(project, *words)
    assert _everything(project) == before
    assert (project.build_dir / ".fmha").exists() == state


def test_the_exit_status_is_zero_only_where_every_cell_is_tracked(built: Built) -> None:
    project = built()
    done = _doit(project, "audit")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every pair of unit and header is tracked" in done.stdout
    # Another finding does not change it.
    assert "test-target" in done.stdout
    whole = ("mend: ", "$ ", "build  ", "checkout  ")  # commands and paths
    assert max(len(line) for line in done.stdout.splitlines() if not any(word in line for word in whole)) <= 80
    for path in project.objects():
        path.unlink()
    (project.build_dir / ".ninja_deps").unlink(missing_ok=True)
    for path in (*project.record_files("compiler_depend.internal"), *project.build_dir.rglob("*.o.d")):
        path.unlink()
    done = _doit(project, "audit")
    assert done.returncode == 1
    assert "nothing known" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_json_is_one_document_and_nothing_else(built: Built) -> None:
    project = built("folder_kind=SYSTEM", "USER_ONLY=ON")
    done = _doit(project, "audit", "--json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["task"], document["tracked"], done.returncode) == (1, "audit", False, 1)
    assert document["causes"][0]["mend"]
    why = json.loads(_doit(project, "why", "--json", "fmha_sm80").stdout)
    assert (why["schema"], why["task"], why["units"][0]["verdict"]) == (1, "why", "unproven")


def test_an_error_with_json_is_a_document_too(built: Built) -> None:
    project = built()
    for words in (["audit", "--json", "headers=nothing/*.h"], ["why", "--json", "fmha_sm99"]):
        done = _doit(project, *words)
        assert done.returncode == 1
        assert json.loads(done.stdout)["error"]


@pytest.mark.parametrize("generator", ["Unix Makefiles"])
def test_why_names_what_changed_and_the_way_to_it(built: Built, write_receipts: Callable) -> None:
    project = built()
    write_receipts(project)
    told = _doit(project, "why", "fmha_sm80").stdout
    assert "fmha_sm80 would not be recompiled: fresh" in told
    project.edit(2)
    done = _doit(project, "why", "fmha_sm80")
    assert done.returncode == 0
    assert "fmha_sm80 would be recompiled: stale" in done.stdout
    assert "fmha_sm80.cu -> fmha_launch_template.h -> kernel_forward.h" in done.stdout
    assert "1970-01-01" in done.stdout, "since which build"
    change = json.loads(_doit(project, "why", "--json", "fmha_sm80").stdout)["units"][0]["changed"][0]
    assert change["input"] == str(project.header)
    assert change["was"] != change["now"]


@pytest.mark.parametrize("generator", ["Unix Makefiles"])
def test_why_tells_an_input_that_is_new_or_gone_and_a_changed_environment(built: Built,
                                                                         write_receipts: Callable) -> None:
    project = built()
    write_receipts(project)
    (project.folder / "added.h").write_text("// new\n")
    (project.folder / "fmha_launch_template.h").write_text('#include "added.h"\n#define REVISION 3\n')
    project.environ["CPATH"] = "/nowhere"
    units = json.loads(_doit(project, "why", "--json", "fmha_sm80").stdout)["units"]
    told = {change["input"].rpartition("/")[2]: change["what"] for change in units[0]["changed"]}
    assert told == {"added.h": "is an input now", "kernel_forward.h": "is no input any more",
                    "fmha_launch_template.h": "changed", "CPATH": "changed"}


@pytest.mark.parametrize("generator", ["Unix Makefiles"])
def test_why_lists_the_units_where_the_name_is_not_one(built: Built) -> None:
    project = built()
    for words in (["why"], ["why", "fmha_sm8"]):
        done = _doit(project, *words)
        assert done.returncode == 1
        assert "fmha_sm50, fmha_sm80" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
    assert "dodo.py why fmha_sm80" in done.stdout + done.stderr
