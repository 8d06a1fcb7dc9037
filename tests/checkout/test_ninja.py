"""Reading `build.ninja`: the quirks of its syntax that CMake makes use of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.checkout.graph import Statement
from tasks.checkout.ninja import NinjaGraph, split_paths, unescape

_RULES = """
rule CXX_COMPILER__t_Release
  depfile = $DEP_FILE
  command = ccache c++ $DEFINES $INCLUDES $FLAGS -MF $DEP_FILE -o $out -c $in
rule CXX_LINKER__t_Release
  command = $PRE_LINK && c++ -o $TARGET_FILE $in && $POST_BUILD
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def graph(folder: Path, text: str, **others: str) -> NinjaGraph:
    (folder / "build.ninja").write_text(_RULES + text)
    for name, content in others.items():
        (folder / f"{name}.ninja").write_text(content)
    return NinjaGraph(folder, "Release")


def made(folder: Path, text: str, output: str = "x.o") -> Statement:
    statement = graph(folder, text).statement(str(folder / output))
    assert statement is not None
    return statement


def test_paths_are_relative_to_the_build_directory(folder: Path) -> None:
    statement = made(folder, "build x.o: CXX_COMPILER__t_Release ../src/x.cc /abs/y.cc\n")
    assert statement.inputs == (str(folder.parent / "src/x.cc"), "/abs/y.cc")


def test_an_escaped_blank_is_part_of_a_path(folder: Path) -> None:
    assert made(folder, "build a$ b.o: CXX_COMPILER__t_Release s$ t.cc\n", "a b.o").inputs == (str(folder / "s t.cc"),)


def test_an_escaped_colon_is_part_of_a_path(folder: Path) -> None:
    assert made(folder, "build a$:b.o: CXX_COMPILER__t_Release x.cc\n", "a:b.o").output == str(folder / "a:b.o")


def test_an_escaped_dollar_is_part_of_a_path(folder: Path) -> None:
    assert made(folder, "build a$$b.o: CXX_COMPILER__t_Release x.cc\n", "a$b.o").output == str(folder / "a$b.o")


def test_a_variable_ends_where_no_name_can_go_on(folder: Path) -> None:
    assert made(folder, "d = dir\nbuild $d/${d}x.o: CXX_COMPILER__t_Release x.cc\n", "dir/dirx.o").inputs == (
        str(folder / "x.cc"),)


def test_an_unknown_variable_is_empty() -> None:
    assert unescape("a${none}b$none c", {}) == "ab c"


def test_a_dollar_at_a_lines_end_joins_the_next_without_its_indentation(folder: Path) -> None:
    statement = made(folder, "build x.o: CXX_COMPILER__t_Release $\n    x.cc $\n  y.cc\n")
    assert statement.inputs == (str(folder / "x.cc"), str(folder / "y.cc"))


def test_an_escaped_dollar_at_a_lines_end_joins_nothing(folder: Path) -> None:
    statement = made(folder, "build x.o: CXX_COMPILER__t_Release x.cc\n  FLAGS = a$$\nbuild y: phony\n")
    assert "a$" in statement.command


def test_a_blank_at_the_end_of_a_variable_is_part_of_it(folder: Path) -> None:
    rule = "rule R\n  command = ${LAUNCHER}${CODE_CHECK}c++ -c $in\n"
    statement = made(folder, rule + "build x.o: R x.cc\n  LAUNCHER = ccache -v \n")
    assert statement.command == ("ccache", "-v", "c++", "-c", "x.cc")


def test_implicit_inputs_are_inputs_but_not_compiled(folder: Path) -> None:
    statement = made(folder, "build x.o: CXX_COMPILER__t_Release x.cc | gen.h\n")
    assert statement.inputs == (str(folder / "x.cc"), str(folder / "gen.h"))
    assert statement.command[-2:] == ("-c", "x.cc")


def test_order_only_inputs_are_none(folder: Path) -> None:
    assert made(folder, "build x.o: CXX_COMPILER__t_Release x.cc || gen\n").inputs == (str(folder / "x.cc"),)


def test_validations_are_no_inputs(folder: Path) -> None:
    assert made(folder, "build x.o: CXX_COMPILER__t_Release x.cc |@ check\n").inputs == (str(folder / "x.cc"),)


def test_implicit_outputs_have_the_same_statement(folder: Path) -> None:
    found = graph(folder, "build x.o | x.dwo: CXX_COMPILER__t_Release x.cc\n")
    statement = found.statement(str(folder / "x.dwo"))
    assert statement is not None
    assert statement.command[-3:] == ("x.o", "-c", "x.cc")


def test_a_statements_variables_are_its_own(folder: Path) -> None:
    text = ("FLAGS = -top\nbuild x.o: CXX_COMPILER__t_Release x.cc\n  FLAGS = -own -O2\n"
            "build y.o: CXX_COMPILER__t_Release y.cc\n")
    assert "-own" in made(folder, text).command
    assert "-top" in made(folder, text, "y.o").command


def test_a_variable_is_split_as_the_shell_does(folder: Path) -> None:
    statement = made(folder, 'build x.o: CXX_COMPILER__t_Release x.cc\n  DEFINES = -DH="\\"a b\\"" -I"c d$$x"\n')
    assert statement.command[2:4] == ('-DH="a b"', "-Ic d$x")


def test_an_input_with_a_blank_is_one_word(folder: Path) -> None:
    assert made(folder, "build x.o: CXX_COMPILER__t_Release a$ b.cc\n").command[-1] == "a b.cc"


def test_comments_and_empty_lines_are_passed_over(folder: Path) -> None:
    assert made(folder, "# build x.o: no\n\n   \nbuild x.o: CXX_COMPILER__t_Release x.cc\n# end").compiles


def test_a_comment_within_a_block_does_not_end_it(folder: Path) -> None:
    assert "-own" in made(folder, "build x.o: CXX_COMPILER__t_Release x.cc\n# note\n  FLAGS = -own\n").command


def test_included_files_count(folder: Path) -> None:
    found = graph(folder, "include more.ninja\n", more="build x.o: CXX_COMPILER__t_Release x.cc\n")
    assert found.statement(str(folder / "x.o")) is not None


def test_an_included_file_that_is_missing_is_passed_over(folder: Path) -> None:
    assert graph(folder, "include none.ninja\n").statement("x") is None


def test_a_missing_build_file_has_no_statements(folder: Path) -> None:
    assert NinjaGraph(folder, "").outputs_named("libx.so") == []


def test_only_linked_outputs_are_named(folder: Path) -> None:
    found = graph(folder, "build libx.so: CXX_LINKER__t_Release x.o\nbuild sub/libx.so: phony libx.so\n")
    assert found.outputs_named("libx.so") == [str(folder / "libx.so")]


def test_the_outermost_output_of_a_name_comes_first(folder: Path) -> None:
    found = graph(folder, "build a/b/libx.so: CXX_LINKER__t_Release x.o\nbuild c/libx.so: CXX_LINKER__t_Release x.o\n")
    assert found.outputs_named("libx.so") == [str(folder / "c/libx.so"), str(folder / "a/b/libx.so")]


def test_a_statement_compiles_where_it_makes_an_object_with_c(folder: Path) -> None:
    text = "build x.o: CXX_COMPILER__t_Release x.cc\nbuild x: CXX_LINKER__t_Release x.o\n"
    assert made(folder, text).compiles
    assert not made(folder, text, "x").compiles


def test_the_target_is_that_of_the_objects_folder(folder: Path) -> None:
    text = "build some/x.o: CXX_COMPILER__other_Release x.cc\n  OBJECT_DIR = sub/CMakeFiles/t.dir\n"
    assert made(folder, text, "some/x.o").target == "t"


def test_a_response_file_is_replaced_by_its_content(folder: Path) -> None:
    text = ("rule R\n  command = c++ @$RSP -o $out -c $in\n  rspfile = $RSP\n  rspfile_content = $FLAGS $INCLUDES\n"
            'build x.o: R x.cc\n  RSP = x.o.rsp\n  FLAGS = -O2\n  INCLUDES = -I"a b"\n')
    assert made(folder, text).command == ("c++", "-O2", "-Ia b", "-o", "x.o", "-c", "x.cc")


def test_a_response_file_behind_nvccs_option_is_replaced_with_it(folder: Path) -> None:
    text = ("rule R\n  command = nvcc --options-file $RSP -c $in\n  rspfile = $RSP\n  rspfile_content = $FLAGS\n"
            "build x.o: R x.cu\n  RSP = x.o.rsp\n  FLAGS = -O2\n")
    assert made(folder, text).command == ("nvcc", "-O2", "-c", "x.cu")


def test_separators_are_told_apart() -> None:
    assert split_paths("a b|c : r d | e || f |@ g", {}) == [
        "a", "b", "|", "c", ":", "r", "d", "|", "e", "||", "f", "|@", "g"]
