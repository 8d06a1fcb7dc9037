"""The depfile reader, one behaviour a test; the names of the first group are ninja's own for the same behaviour."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tasks.closure.depfile import Depfile, Rule, parse_depfile, read_depfile


def _one(content: str, dialect: str = "gcc") -> Rule:
    rules = parse_depfile(content.encode(), dialect).rules  # type: ignore[arg-type]
    assert len(rules) == 1
    return rules[0]


def test_basic() -> None:
    assert _one("build/ninja.o: ninja.cc ninja.h eval_env.h\n") == Rule(
        ("build/ninja.o",), ("ninja.cc", "ninja.h", "eval_env.h"))


def test_early_newline_and_white_space() -> None:
    assert _one(" \\\n  out: in\n") == Rule(("out",), ("in",))


def test_continuation() -> None:
    assert _one("foo.o: \\\n  bar.h baz.h\n") == Rule(("foo.o",), ("bar.h", "baz.h"))


def test_white_space_around_a_continuation() -> None:
    assert _one("foo.o: \\\n  bar.h \\\n \t baz.h\\\nqux.h\n").prerequisites == ("bar.h", "baz.h", "qux.h")


def test_carriage_return_continuation() -> None:
    assert _one("foo.o: \\\r\n  bar.h baz.h\r\n") == Rule(("foo.o",), ("bar.h", "baz.h"))


def test_backslashes_in_front_of_letters_stay() -> None:
    found = _one("Project\\Dir\\Foo.res : \\\n  Dir\\Library\\Foo.rc \\\n  Dir\\Library\\Bar.h \\\n")
    assert found == Rule(("Project\\Dir\\Foo.res",), ("Dir\\Library\\Foo.rc", "Dir\\Library\\Bar.h"))


def test_spaces() -> None:
    assert _one("a\\ bc\\ def:   a\\ b c d") == Rule(("a bc def",), ("a b", "c", "d"))


def test_multiple_backslashes() -> None:
    # 2N+1 in front of a blank are N and a blank; 2N end the name; elsewhere they stay.
    assert _one("a\\ b\\#c.h: \\\\\\\\\\  \\\\\\\\ \\\\share\\info\\\\#1\n") == Rule(
        ("a b#c.h",), ("\\\\ ", "\\\\\\\\", "\\\\share\\info\\#1"))


def test_escapes() -> None:
    assert _one("\\!\\@\\#$$\\%\\^\\&\\[\\]:\n").targets == ("\\!\\@#$\\%\\^\\&\\[\\]",)


def test_escaped_colons() -> None:
    assert _one("c\\:\\gcc\\stddef.o: c:\\gcc\\stddef.h\n") == Rule(("c:\\gcc\\stddef.o",), ("c:\\gcc\\stddef.h",))


@pytest.mark.parametrize("end", ["foo1\\: x\n", "foo1\\: x\r\n", "foo1\\:\tx"])
def test_escaped_target_colon(end: str) -> None:
    # In front of white space it is the end of a target whose name ends in a backslash.
    assert _one(end) == Rule(("foo1\\",), ("x",))


def test_special_characters() -> None:
    found = _one("C:/Program\\ Files\\ (x86)/crtdefs.h: \\\n en@quot.header~ t+t-x!=1 \\\n"
                 " openldap/slapd.d/cn=config/cn={0}core.ldif \\\n Fu\u00e4ball[1]\n")
    assert found == Rule(("C:/Program Files (x86)/crtdefs.h",),
                         ("en@quot.header~", "t+t-x!=1", "openldap/slapd.d/cn=config/cn={0}core.ldif",
                          "Fu\u00e4ball[1]"))


def test_names_that_are_no_utf8_survive() -> None:
    assert parse_depfile(b"x.o: Fu\xe4ball.h\n").prerequisites == ("Fu\udce4ball.h",)


def test_unify_multiple_outputs() -> None:
    assert _one("foo foo: x y z\n") == Rule(("foo",), ("x", "y", "z"))


def test_multiple_different_outputs() -> None:
    assert _one("foo bar: x y z\n") == Rule(("foo", "bar"), ("x", "y", "z"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_multiple_rules_of_one_output_are_one_list(newline: str) -> None:
    found = parse_depfile(newline.join(("foo: x", "foo: y", "foo: x z", "foo:", "")).encode())
    assert found.of_target("foo") == ("x", "y", "z")


def test_indented_rules() -> None:
    assert parse_depfile(b" foo: x\n foo: y\n").of_target("foo") == ("x", "y")


def test_the_empty_rules_of_mp_add_nothing() -> None:
    found = parse_depfile(b"foo: x y z\nx:\ny:\nz:\n")
    assert found.of_target("foo") == found.prerequisites == ("x", "y", "z")
    assert found.state == "whole"


def test_rules_of_different_outputs_are_told_apart() -> None:
    found = parse_depfile(b"foo: x y\nbar: y z\n")
    assert found.of_target("bar") == ("y", "z")
    assert found.prerequisites == ("x", "y", "z")


def test_an_input_that_has_inputs_is_read_like_any_rule() -> None:
    found = parse_depfile(b"foo: x y z\nx: alsoin\ny:\nz:\n")
    assert found.of_target("foo") == ("x", "y", "z")


@pytest.mark.parametrize("content", [b"", b"\n\n", b" \t\r\n", b"foo.o:\n"])
def test_an_empty_file_is_empty(content: bytes) -> None:
    assert parse_depfile(content).state == "empty"


@pytest.mark.parametrize("content", [b"foo.o foo.c\n", b"foo.o: foo.c\nbar baz\n", b"C:/foo.o\n"])
def test_missing_colon(content: bytes) -> None:
    assert parse_depfile(content) == Depfile("malformed")


@pytest.mark.parametrize("content", [b"foo.o: bar.h", b"foo.o: bar.h \\", b"foo.o: bar.h \\\n", b"foo.o: bar.h \\\r\n"])
def test_a_file_that_ends_inside_a_line_is_truncated(content: bytes) -> None:
    found = parse_depfile(content)
    assert (found.state, found.prerequisites) == ("truncated", ("bar.h",))


def test_a_missing_file_and_a_folder_are_missing(tmp_path: Path) -> None:
    assert read_depfile(tmp_path / "no.d").state == read_depfile(tmp_path).state == "missing"


def test_nvcc_escapes_spaces_alone_and_has_one_target() -> None:
    assert _one("my dir/k.o : sp\\ ace/a.h do$lar/b.h do$$lar/c.h ha#sh/d.h \\\n    co:lon/e.h\n", "nvcc") == Rule(
        ("my dir/k.o",), ("sp ace/a.h", "do$lar/b.h", "do$$lar/c.h", "ha#sh/d.h", "co:lon/e.h"))


def test_an_unknown_target_gets_all_rules() -> None:
    assert parse_depfile(b"dir/foo.o: x\n").of_target("/abs/dir/foo.o") == ("x",)


ODD = ("sp ace", "do$lar", "ha#sh", "co:lon", "two  blanks", "per%cent", "semi;colon", "qu'ote")


@pytest.mark.parametrize(("compiler", "dialect"), [
    ("g++", "gcc"), pytest.param("nvcc", "nvcc", marks=pytest.mark.cuda)])
def test_what_the_real_compiler_writes_is_read_back(tmp_path: Path, compiler: str, dialect: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    # nvcc starts its own parts through a shell, without quotes: odd names must not stand on its command line.
    unit = tmp_path / ("unit.cu" if compiler == "nvcc" else "unit.cc")
    for name in ODD:
        (tmp_path / name).mkdir()
        (tmp_path / name / "h.h").touch()
    unit.write_text("".join(f'#include "{name}/h.h"\n' for name in ODD) + '#line 1 "nowhere.h"\nint x;\n')
    depfile = tmp_path / "unit.o.d"
    subprocess.run([compiler, "-MD", "-MT", "unit.o", "-MF", str(depfile), "-c", str(unit), "-o",
                    str(tmp_path / "unit.o")], cwd=tmp_path, check=True)
    found = read_depfile(depfile, dialect)  # type: ignore[arg-type]
    assert found.state == "whole"
    assert found.rules[0].targets == ("unit.o",)
    assert {f"{tmp_path}/{name}/h.h" for name in ODD} <= set(found.prerequisites)
