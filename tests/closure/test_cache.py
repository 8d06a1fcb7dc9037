"""Closures kept from one look to the next: the same answers, whatever happened between."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tasks.checkout import reading
from tasks.closure import cache, directives, disk, resolve
from tasks.closure.cache import ClosureCache
from tasks.closure.catalogue import Closure
from tasks.evidence.snapshot import identity_of
from tests.closure.forest import Forest

_TICK_S = 0.03


class Looks:
    """A tree with two units that is looked at again and again, as the survey does."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.state = forest.root / ".fmha"
        self.state.mkdir()
        self.options = {"u": ("-Ione", "-Itwo"), "v": ("-Itwo", '-DPLUG="c.h"')}
        self.cache: ClosureCache | None = None
        forest.write({
            "u.cc": '#include <x.h>\n#include "sub/s.h"\n', "v.cc": '#include "u.cc"\n#include PLUG\n',
            "one/y.h": "// one\n", "two/x.h": "#include <y.h>\n", "two/y.h": "// two\n", "sub/s.h": '#include "t.h"\n',
            "sub/t.h": "// t\n",
        })
        self.settle()

    def settle(self) -> None:
        """Until a clock tick has passed since the last change."""
        time.sleep(_TICK_S)

    def look(self) -> dict[str, Closure]:
        """One look that is kept."""
        root = self.forest.root
        self.cache = ClosureCache(self.state / "closure.json", (), (str(root),))
        found = self.cache.closures({name: (root / f"{name}.cc", self.forest.search(words, f"{name}.cc", {}, "g++"))
                                     for name, words in self.options.items()})
        self.cache.save()
        return found

    def files(self) -> dict[str, set[str]]:
        return {name: {os.path.relpath(path, self.forest.root) for path in closure.files}
                for name, closure in self.look().items()}

    def true(self) -> dict[str, set[str]]:
        """What a look without any memory finds."""
        return {name: self.forest.closure(*words, unit=f"{name}.cc") for name, words in self.options.items()}


@pytest.fixture
def looks(forest: Forest) -> Looks:
    return Looks(forest)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read for their directives, by name."""
    read: list[str] = []

    def noting(path: str) -> bytes:
        read.append(os.path.basename(path))
        return Path(path).read_bytes()

    for module in (resolve, directives):
        monkeypatch.setattr(module, "read_source", noting)
    return read


def test_the_second_look_finds_the_same(looks: Looks) -> None:
    assert looks.files() == looks.files() == looks.true()


def test_the_second_look_reads_no_source(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    assert set(scanned) == {"u.cc", "v.cc", "x.h", "y.h", "s.h", "t.h", "c.h"}
    scanned.clear()
    looks.look()
    assert scanned == []


def test_the_second_look_writes_nothing(looks: Looks) -> None:
    looks.look()
    before = identity_of(looks.state / "closure.json")  # not its access time: a look reads it
    looks.look()
    assert before is not None
    assert identity_of(looks.state / "closure.json") == before


def test_an_edit_of_code_reads_that_file_alone(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    scanned.clear()
    looks.forest.write({"sub/s.h": '#include "t.h"\nint edited;\n'})
    looks.settle()
    looks.look()
    assert scanned == ["s.h"]


def test_an_edit_of_code_is_read_once(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    looks.forest.write({"sub/s.h": '#include "t.h"\nint edited;\n'})
    looks.settle()
    looks.look()
    scanned.clear()
    looks.look()
    assert scanned == []


def test_a_changed_directive_is_followed(looks: Looks) -> None:
    looks.look()
    looks.forest.write({"sub/s.h": '#include "../a.h"\n'})
    looks.settle()
    assert looks.files() == looks.true()
    assert "a.h" in looks.files()["u"]


def test_a_changed_directive_reads_only_what_changed(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    looks.forest.write({"sub/s.h": '#include "../a.h"\n'})
    looks.settle()
    scanned.clear()
    looks.look()
    assert set(scanned) == {"s.h", "a.h"}


def test_new_content_with_the_old_size_and_mtime_is_seen(looks: Looks) -> None:
    looks.look()
    header = looks.forest.root / "two/x.h"
    old = header.stat()
    header.write_text("#include <a.h>\n")
    os.utime(header, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert header.stat().st_size == old.st_size
    assert looks.files() == looks.true()
    assert "one/y.h" not in looks.files()["u"]


def test_a_header_that_newly_shadows_another_is_seen(looks: Looks) -> None:
    looks.look()
    looks.forest.write({"one/x.h": "// shadow\n"})
    assert looks.files() == looks.true()
    assert "one/x.h" in looks.files()["u"]


def test_a_shadowing_header_in_a_new_folder_is_seen(looks: Looks) -> None:
    looks.forest.write({"u.cc": "#include <deep/er/x.h>\n", "two/deep/er/x.h": ""})
    looks.settle()
    looks.look()
    looks.forest.write({"one/deep/er/x.h": ""})
    assert looks.files() == looks.true()
    assert looks.files()["u"] == {"one/deep/er/x.h"}


def test_a_search_folder_that_appears_is_seen(looks: Looks) -> None:
    looks.options["u"] = ("-Inew/gen", *looks.options["u"])
    looks.look()
    looks.forest.write({"new/gen/x.h": ""})
    assert looks.files() == looks.true()
    assert "new/gen/x.h" in looks.files()["u"]


def test_a_removed_header_is_seen(looks: Looks) -> None:
    looks.look()
    (looks.forest.root / "one/y.h").unlink()
    assert looks.files() == looks.true()
    assert "two/y.h" in looks.files()["u"]


def test_a_folder_that_is_replaced_by_another_is_seen(looks: Looks) -> None:
    looks.forest.write({"other/t.h": "", "other/s.h": '#include "t.h"\n#include "../a.h"\n'})
    looks.look()
    (looks.forest.root / "sub").rename(looks.forest.root / "gone")
    (looks.forest.root / "other").rename(looks.forest.root / "sub")
    assert looks.files() == looks.true()


def test_a_linked_folder_that_leads_elsewhere_is_seen(looks: Looks) -> None:
    looks.forest.write({"v1/x.h": "", "v2/x.h": ""})
    looks.forest.link("inc", "v1")
    looks.options["u"] = ("-Iinc", *looks.options["u"])
    looks.settle()
    looks.look()
    (looks.forest.root / "inc").unlink()
    looks.forest.link("inc", "v2")
    assert looks.files() == looks.true()
    assert "v2/x.h" in looks.files()["u"]


def test_a_linked_header_that_leads_elsewhere_is_seen(looks: Looks) -> None:
    looks.forest.write({"r1": '#include "a.h"\n', "r2": '#include "b.h"\n', "u.cc": '#include "l.h"\n'})
    looks.forest.link("l.h", "r1")
    looks.settle()
    looks.look()
    (looks.forest.root / "l.h").unlink()
    looks.forest.link("l.h", "r2")
    assert looks.files() == looks.true()
    assert looks.files()["u"] == {"l.h", "b.h"}


def test_a_link_to_nothing_that_comes_to_lead_somewhere_is_seen(looks: Looks) -> None:
    looks.forest.link("one/x.h", "../later.h")
    looks.settle()
    looks.look()
    looks.forest.write({"later.h": ""})
    assert looks.files() == looks.true()
    assert "one/x.h" in looks.files()["u"]


def test_a_new_file_that_no_directive_names_reads_nothing(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    looks.forest.write({"one/unheard.of": "", "two/.x.h.swp": ""})
    scanned.clear()
    looks.look()
    assert scanned == []


def test_changed_options_are_seen(looks: Looks) -> None:
    looks.look()
    looks.options["u"] = ("-Itwo", "-Ione")
    assert looks.files() == looks.true()
    looks.options["v"] = ("-Itwo", '-DPLUG="b.h"')
    assert "b.h" in looks.files()["v"]


def test_a_new_unit_is_seen(looks: Looks) -> None:
    looks.look()
    looks.forest.write({"w.cc": '#include "a.h"\n'})
    looks.options["w"] = ()
    assert looks.files()["w"] == {"a.h"}


def test_a_unit_that_is_not_asked_for_does_no_harm(looks: Looks) -> None:
    looks.look()
    del looks.options["v"]
    assert looks.files() == looks.true()


def test_a_definition_for_a_computed_include_that_changes_is_seen(looks: Looks) -> None:
    looks.forest.write({"v.cc": '#include "d.h"\n#include H\n', "d.h": '#define H "a.h"\n'})
    looks.settle()
    looks.look()
    looks.forest.write({"d.h": '#define H "b.h"\n'})
    assert looks.files()["v"] == {"d.h", "b.h"}


def test_a_definition_that_nothing_asked_for_before_is_found(looks: Looks) -> None:
    looks.forest.write({"v.cc": '#include "d.h"\n#define H "a.h"\n#include H\n', "d.h": '#define G "b.h"\n'})
    looks.settle()
    looks.look()
    looks.forest.write({"v.cc": '#include "d.h"\n#define H G\n#include H\n'})
    looks.settle()
    assert looks.files()["v"] == {"d.h", "b.h"}


def test_a_file_that_an_unknown_text_can_mean_is_seen(looks: Looks) -> None:
    looks.forest.write({"v.cc": "#define H <__CUDA_ARCH__.h>\n#include H\n", "two/80.h": ""})
    looks.settle()
    looks.look()
    looks.forest.write({"two/90.h": ""})
    assert {"two/80.h", "two/90.h"} <= looks.files()["v"]


def test_an_edit_within_a_clock_tick_of_the_look_is_seen(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    header = looks.forest.root / "two/x.h"
    header.write_text("#include <a.h>\n")
    with monkeypatch.context() as patch:
        patch.setattr(reading, "_TICK_NS", 10**12)
        looks.look()
    stamp = header.stat()
    header.write_text("#include <y.h>\n")
    true_stat = os.stat

    def stat_of_a_clock_that_stands(path: object, **options: bool) -> os.stat_result:
        found = true_stat(path, **options)  # type: ignore[arg-type]
        times = {"st_mtime_ns": stamp.st_mtime_ns, "st_ctime_ns": stamp.st_ctime_ns}
        return os.stat_result(list(found), times) if os.fspath(path) == str(header) else found  # type: ignore[call-overload]

    monkeypatch.setattr(os, "stat", stat_of_a_clock_that_stands)
    assert reading.stamp_of(str(header)) == reading.Stamp(stamp.st_dev, stamp.st_ino, stamp.st_size, stamp.st_mtime_ns,
                                                      stamp.st_ctime_ns)
    assert "one/y.h" in looks.files()["u"]


def test_a_name_that_comes_within_a_clock_tick_of_the_look_is_seen(
        looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = looks.forest.root / "one"
    with monkeypatch.context() as patch:
        patch.setattr(reading, "_TICK_NS", 10**12)
        looks.look()
    stamp = folder.stat()
    looks.forest.write({"one/x.h": ""})
    true_stat = os.stat

    def stat_of_a_clock_that_stands(path: object, **options: bool) -> os.stat_result:
        return stamp if os.fspath(path) == str(folder) else true_stat(path, **options)  # type: ignore[call-overload,arg-type]

    monkeypatch.setattr(os, "stat", stat_of_a_clock_that_stands)
    assert "one/x.h" in looks.files()["u"]


def test_a_stamp_from_the_future_is_read_again(
        looks: Looks, scanned: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk.time, "time_ns", lambda: 10**9)
        looks.look()
    scanned.clear()
    looks.look()
    assert "x.h" in scanned


def test_chains_of_kept_closures_are_found(looks: Looks) -> None:
    looks.look()
    closure = looks.look()["u"]
    assert [os.path.basename(path) for path in closure.chain(f"{looks.forest.root}/sub/t.h")] == ["u.cc", "s.h", "t.h"]


def test_kept_closures_know_watched_headers_under_any_name(looks: Looks) -> None:
    looks.forest.link("sub/s2.h", "s.h")
    looks.forest.write({"u.cc": '#include "sub/s2.h"\n'})
    looks.look()
    for closures in (looks.look(), looks.look()):
        assert closures["u"].among((f"{looks.forest.root}/sub/s.h",)) == (f"{looks.forest.root}/sub/s2.h",)


def test_kept_closures_tell_what_was_unresolved(looks: Looks) -> None:
    looks.forest.write({"u.cc": "#define H 1\n#if 0\n#include H\n#endif\n"})
    looks.settle()
    assert looks.look()["u"].unresolved == looks.look()["u"].unresolved == ("H",)


@pytest.mark.parametrize("content", [
    "", "0\n", "garbage", "{}", "[]", "12\n{}\n[]", b"\xff\xfe", "1\n" * 1000, '{"format": 1}',
], ids=str)
def test_a_cache_that_cannot_be_read_is_none(looks: Looks, content: str | bytes) -> None:
    (looks.state / "closure.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert looks.files() == looks.true()


def test_a_cache_that_was_cut_is_none(looks: Looks) -> None:
    looks.look()
    path = looks.state / "closure.json"
    text = path.read_text()
    for length in range(0, len(text), 97):
        path.write_text(text[:length])
        assert looks.files() == looks.true()


def test_a_cache_with_one_wrong_digit_is_none(looks: Looks, scanned: list[str]) -> None:
    looks.look()
    path = looks.state / "closure.json"
    at = path.read_text().index('"units"') + 120
    text = path.read_text()
    path.write_text(text[:at] + chr(ord(text[at]) ^ 1) + text[at + 1:])
    scanned.clear()
    assert looks.files() == looks.true()
    assert "u.cc" in scanned


def test_a_cache_of_another_format_is_none(looks: Looks, scanned: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    looks.look()
    scanned.clear()
    monkeypatch.setattr(cache, "_FORMAT", -1)
    looks.look()
    assert "u.cc" in scanned


def test_other_system_folders_have_another_closure(looks: Looks) -> None:
    looks.look()
    root = looks.forest.root
    again = ClosureCache(looks.state / "closure.json", (f"{root}/two",), ())
    search = looks.forest.search(looks.options["u"], "u.cc", {}, "g++")
    assert f"{root}/two/x.h" not in again.closures({"u": (root / "u.cc", search)})["u"].files


def test_nothing_is_kept_where_the_folder_is_missing(looks: Looks) -> None:
    looks.state.rmdir()
    assert looks.files() == looks.true()
    assert not looks.state.exists()


def test_nothing_is_kept_where_the_folder_cannot_be_written(looks: Looks) -> None:
    # A folder that is no folder cannot be written, not even by root.
    looks.state.rmdir()
    looks.state.write_text("")
    assert looks.files() == looks.true()
    assert looks.state.read_text() == ""


def test_no_other_file_is_left_beside_the_cache(looks: Looks) -> None:
    looks.look()
    assert [path.name for path in looks.state.iterdir()] == ["closure.json"]


def test_the_cache_is_text_that_names_what_it_depends_on(looks: Looks) -> None:
    looks.look()
    head = json.loads((looks.state / "closure.json").read_text().splitlines()[1])
    assert f"{looks.forest.root}/two/x.h" in head["files"]
    assert f"{looks.forest.root}/one" in [folder for folder, _, _ in head["listed"]]


def test_a_copied_tree_is_looked_at_for_itself(looks: Looks, tmp_path_factory: pytest.TempPathFactory) -> None:
    looks.look()
    copy = Path(os.path.realpath(tmp_path_factory.mktemp("copy"))) / "tree"
    shutil.copytree(looks.forest.root, copy, symlinks=True)
    forest = Forest(copy)
    (copy / "sub/s.h").write_text('#include "../a.h"\n')
    again = ClosureCache(copy / ".fmha/closure.json", (), (str(copy),))
    found = again.closures({"u": (copy / "u.cc", forest.search(looks.options["u"], "u.cc", {}, "g++"))})
    assert f"{copy}/a.h" in found["u"].files
