"""Reading `build.make`, `flags.make` and `link.txt`: the quirks of what CMake writes."""

from __future__ import annotations

from pathlib import Path

from tasks.checkout.graph import Statement
from tasks.checkout.makefiles import MakefileGraph


def graph(folder: Path, build: str = "", flags: str = "", link: str = "", target: str = "CMakeFiles/t.dir",
          made_in: Path | None = None) -> MakefileGraph:
    (folder / target).mkdir(parents=True, exist_ok=True)
    (folder / "CMakeFiles").mkdir(exist_ok=True)
    (folder / "CMakeFiles" / "TargetDirectories.txt").write_text(f"{made_in or folder}/{target}\n")
    for name, text in (("build.make", build), ("flags.make", flags), ("link.txt", link)):
        (folder / target / name).write_text(text)
    return MakefileGraph(folder, made_in or folder)


def made(folder: Path, build: str, flags: str = "", output: str = "CMakeFiles/t.dir/x.o") -> Statement:
    statement = graph(folder, build, flags).statement(str(folder / output))
    assert statement is not None
    return statement


RULE = "CMakeFiles/t.dir/x.o: ../x.cc\n"


def test_the_recipe_is_the_last_line_that_runs_something(tmp_path: Path) -> None:
    statement = made(tmp_path, f"{RULE}\t@echo building\n\tc++ -o x.o -c ../x.cc\n")
    assert statement.command == ("c++", "-o", "x.o", "-c", "../x.cc")


def test_prerequisites_of_all_rules_count(tmp_path: Path) -> None:
    statement = made(tmp_path, f"{RULE}CMakeFiles/t.dir/x.o: CMakeFiles/t.dir/flags.make\n")
    assert statement.inputs == (str(tmp_path.parent / "x.cc"), str(tmp_path / "CMakeFiles/t.dir/flags.make"))


def test_escaped_blanks_and_hashes_are_part_of_a_path(tmp_path: Path) -> None:
    statement = made(tmp_path, "CMakeFiles/t.dir/a\\ b.o: /s\\ t/ha\\#sh.cc\n", output="CMakeFiles/t.dir/a b.o")
    assert statement.inputs == ("/s t/ha#sh.cc",)


def test_a_doubled_dollar_is_one(tmp_path: Path) -> None:
    statement = made(tmp_path, "CMakeFiles/t.dir/a$$b.o: /d$$e.cc\n", output="CMakeFiles/t.dir/a$b.o")
    assert statement.inputs == ("/d$e.cc",)


def test_an_escaped_colon_is_part_of_a_path(tmp_path: Path) -> None:
    assert made(tmp_path, "CMakeFiles/t.dir/a\\:b.o: /x.cc\n", output="CMakeFiles/t.dir/a:b.o").inputs == ("/x.cc",)


def test_an_assignment_is_no_rule(tmp_path: Path) -> None:
    found = graph(tmp_path, "EQUALS := =\nSHELL = /bin/sh\n.SUFFIXES:\n" + RULE)
    assert found.statement(str(tmp_path / "EQUALS")) is None


def test_variables_come_from_flags_make(tmp_path: Path) -> None:
    statement = made(tmp_path, f"{RULE}\tc++ $(CXX_DEFINES) $(CXX_FLAGS) -c x.cc\n",
                     'CXX_DEFINES = -DH="\\"a b\\""\n\nCXX_FLAGS =  -O2 -fPIC\n')
    assert statement.command == ("c++", '-DH="a b"', "-O2", "-fPIC", "-c", "x.cc")


def test_dollars_and_hashes_in_flags_are_unescaped(tmp_path: Path) -> None:
    statement = made(tmp_path, f"{RULE}\tc++ $(I) -c x.cc\n", 'I = -I"/a\\$$b/c\\#d"\n')
    assert statement.command[1] == "-I/a$b/c#d"


def test_a_variable_that_is_not_set_is_empty(tmp_path: Path) -> None:
    assert made(tmp_path, f"{RULE}\tc++ $(NONE) -c x.cc\n").command == ("c++", "-c", "x.cc")


def test_a_recipe_may_change_the_folder_first(tmp_path: Path) -> None:
    statement = made(tmp_path, f'{RULE}\tcd "/b/in ner" && c++ -c x.cc\n')
    assert (statement.workdir, statement.command) == ("/b/in ner", ("c++", "-c", "x.cc"))


def test_without_a_change_it_runs_in_the_build_directory(tmp_path: Path) -> None:
    assert made(tmp_path, f"{RULE}\tc++ -c x.cc\n").workdir == str(tmp_path)


def test_a_rule_without_a_recipe_runs_nothing(tmp_path: Path) -> None:
    statement = made(tmp_path, RULE)
    assert (statement.command, statement.compiles) == ((), False)


def test_the_target_is_that_of_the_folder(tmp_path: Path) -> None:
    assert made(tmp_path, RULE).target == "t"


def test_a_linked_file_is_named_by_link_txt(tmp_path: Path) -> None:
    found = graph(tmp_path, link="/usr/bin/c++ -fPIC -shared  -o libx.so CMakeFiles/t.dir/x.o\n")
    assert found.outputs_named("libx.so") == [str(tmp_path / "libx.so")]


def test_a_quoted_output_of_link_txt_is_unquoted(tmp_path: Path) -> None:
    found = graph(tmp_path, link='c++ -shared -o "/out/lib \\$x.so" x.o\n')
    assert found.outputs_named("lib $x.so") == ["/out/lib $x.so"]


def test_an_archive_is_named_by_link_txt(tmp_path: Path) -> None:
    found = graph(tmp_path, link='/usr/bin/ar qc "out/libx y.a" x.o\n/usr/bin/ranlib "out/libx y.a"\n')
    assert found.outputs_named("libx y.a") == [str(tmp_path / "out/libx y.a")]


def test_a_linked_file_of_a_subdirectory_lies_there(tmp_path: Path) -> None:
    found = graph(tmp_path, link="c++ -o libx.so x.o\n", target="sub/CMakeFiles/t.dir")
    assert found.outputs_named("libx.so") == [str(tmp_path / "sub/libx.so")]


def test_a_copied_build_directory_has_its_own_folders(tmp_path: Path) -> None:
    found = graph(tmp_path, link="c++ -o libx.so x.o\n", made_in=Path("/original/build"))
    assert found.outputs_named("libx.so") == [str(tmp_path / "libx.so")]


def test_a_build_directory_without_targets_has_no_outputs(tmp_path: Path) -> None:
    assert MakefileGraph(tmp_path, tmp_path).outputs_named("libx.so") == []


def test_a_target_folder_that_is_gone_has_no_statements(tmp_path: Path) -> None:
    found = graph(tmp_path)
    (tmp_path / "CMakeFiles/t.dir/build.make").unlink()
    assert found.statement(str(tmp_path / "CMakeFiles/t.dir/x.o")) is None


def test_a_source_file_has_no_statement(tmp_path: Path) -> None:
    assert graph(tmp_path, RULE).statement("/src/x.cc") is None
