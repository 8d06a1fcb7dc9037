"""What `#include MACRO` can mean: every definition under every condition counts."""

from __future__ import annotations

import os
import subprocess

import pytest

from tasks.closure.directives import scan
from tasks.closure.macros import ANY, Definition, meant, read_define
from tasks.closure.resolve import Resolver
from tests.closure.forest import Forest


def test_a_macro_that_is_a_quoted_name_is_followed(forest: Forest) -> None:
    assert forest.exactly('#define H "a.h"\n#include H\n') == {"a.h"}


def test_a_macro_that_is_an_angled_name_is_followed(forest: Forest) -> None:
    assert forest.exactly("#define H <a.h>\n#include H\n", "-I.") == {"a.h"}


def test_a_macro_of_a_macro_is_followed(forest: Forest) -> None:
    assert forest.exactly('#define G "a.h"\n#define H G\n#include H\n') == {"a.h"}


def test_macros_within_an_angled_name_are_replaced(forest: Forest) -> None:
    forest.write({"sys/cpp/d.h": ""})
    assert forest.exactly("#define ROOT sys/cpp\n#define H <ROOT/d.h>\n#include H\n", "-I.") == {"sys/cpp/d.h"}


def test_macros_within_a_quoted_name_are_not_replaced(forest: Forest) -> None:
    forest.write({"ROOT/d.h": ""})
    assert forest.exactly('#define ROOT sys\n#define H "ROOT/d.h"\n#include H\n') == {"ROOT/d.h"}


def test_a_directive_may_name_its_parts_itself(forest: Forest) -> None:
    forest.write({"u.cc": "#define NAME a\n#include <NAME.h>\n", "NAME.h": ""})
    # A name in brackets that the directive itself holds is taken as it stands.
    assert forest.closure("-I.") == forest.listed("-I.") == {"NAME.h"}


def test_a_definition_on_the_command_line_counts(forest: Forest) -> None:
    assert forest.exactly("#include H\n", '-DH="a.h"') == {"a.h"}


def test_a_definition_on_the_command_line_may_take_arguments(forest: Forest) -> None:
    assert forest.exactly("#include H(a)\n", "-DH(x)=<x.h>", "-I.") == {"a.h"}


def test_a_definition_in_another_header_counts(forest: Forest) -> None:
    forest.write({"d.h": '#define H "a.h"\n'})
    assert forest.exactly('#include "d.h"\n#include H\n') == {"a.h", "d.h"}


def test_a_definition_in_a_forced_header_counts(forest: Forest) -> None:
    forest.write({"d.h": '#define H "a.h"\n'})
    assert forest.exactly("#include H\n", "-include", "d.h") == {"a.h", "d.h"}


def test_a_definition_for_a_header_of_the_system_counts(forest: Forest) -> None:
    forest.write({"sys/plug.h": "#include PLUGIN\n", "u.cc": '#define PLUGIN "a.h"\n#include <plug.h>\n'})
    closure = forest.resolve("-isystem", "sys", "-I.", system=(f"{forest.root}/sys",))
    assert f"{forest.root}/a.h" in closure.files


def test_every_definition_counts(forest: Forest) -> None:
    text = '#if __CUDA_ARCH__\n#define H "a.h"\n#else\n#define H "b.h"\n#endif\n#include H\n'
    assert forest.at_least(text) == {"a.h", "b.h"}


def test_the_definition_of_another_unit_does_not_count(forest: Forest) -> None:
    forest.write({"v.cc": '#define H "b.h"\n#include "w.h"\n', "w.h": "#include H\n"})
    assert forest.exactly('#define H "a.h"\n#include "w.h"\n') == {"a.h", "w.h"}


def test_a_header_found_so_may_define_the_macro_of_another(forest: Forest) -> None:
    forest.write({"d.h": '#define G "a.h"\n'})
    assert forest.exactly('#define H "d.h"\n#include H\n#include G\n') == {"a.h", "d.h"}


def test_a_stringised_argument_is_a_name(forest: Forest) -> None:
    assert forest.exactly("#define STR(x) #x\n#include STR(a.h)\n") == {"a.h"}


def test_an_argument_is_expanded_before_another_macro_stringises_it(forest: Forest) -> None:
    text = "#define STR_(x) #x\n#define STR(x) STR_(x)\n#define NAME a.h\n#include STR(NAME)\n"
    assert forest.exactly(text) == {"a.h"}


def test_an_argument_is_not_expanded_where_it_is_stringised(forest: Forest) -> None:
    forest.write({"NAME": ""})
    assert forest.exactly("#define STR(x) #x\n#define NAME a.h\n#include STR(NAME)\n") == {"NAME"}


def test_blanks_in_a_stringised_argument_become_one(forest: Forest) -> None:
    forest.write({"a b.h": ""})
    assert forest.exactly("#define STR(x) #x\n#include STR(  a   b.h )\n") == {"a b.h"}


def test_pasted_tokens_are_one(forest: Forest) -> None:
    forest.write({"sm80.h": ""})
    text = ("#define STR_(x) #x\n#define STR(x) STR_(x)\n#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n"
            "#define ARCH 80\n#include STR(CAT(sm, ARCH).h)\n")
    assert forest.exactly(text) == {"sm80.h"}


def test_a_pasted_name_may_be_a_macro(forest: Forest) -> None:
    assert forest.exactly('#define CAT(a, b) a##b\n#define FG "a.h"\n#include CAT(F, G)\n') == {"a.h"}


def test_the_digraphs_of_hash_and_paste_count(forest: Forest) -> None:
    assert forest.exactly('%:define CAT(a, b) a %:%: b\n#define FG "a.h"\n#include CAT(F, G)\n') == {"a.h"}


def test_an_empty_argument_can_be_pasted(forest: Forest) -> None:
    assert forest.exactly('#define CAT(a, b) a##b\n#define F "a.h"\n#include CAT(F, )\n') == {"a.h"}


def test_variable_arguments_are_joined(forest: Forest) -> None:
    forest.write({"a,b.h": ""})
    assert forest.exactly("#define STR(...) #__VA_ARGS__\n#include STR(a,b.h)\n") == {"a,b.h"}


def test_named_variable_arguments_are_joined(forest: Forest) -> None:
    forest.write({"a,b.h": ""})
    assert forest.exactly("#define STR(rest...) #rest\n#include STR(a,b.h)\n") == {"a,b.h"}


def test_a_macro_does_not_expand_itself(forest: Forest) -> None:
    forest.write({"x/d.h": ""})
    assert forest.exactly("#define x x\n#define H <x/d.h>\n#include H\n", "-I.") == {"x/d.h"}


def test_a_definition_may_go_over_lines_and_hold_comments(forest: Forest) -> None:
    assert forest.exactly('#define H /* one */ \\\n "a.h" // two\n#include H\n') == {"a.h"}


def test_a_definition_in_a_comment_harms_nothing(forest: Forest) -> None:
    assert forest.exactly('// #define H "none.h"\n#define H "a.h"\n#include H\n') == {"a.h"}


def test_a_quoted_name_is_looked_for_beside_the_file_that_includes_it(forest: Forest) -> None:
    forest.write({"sub/d.h": "#include H\n", "sub/e.h": "// sub\n", "e.h": "// root\n"})
    assert forest.exactly('#define H "e.h"\n#include "sub/d.h"\n') == {"sub/d.h", "sub/e.h"}


def test_a_computed_include_next_goes_on(forest: Forest) -> None:
    forest.write({"one/x.h": "#define H <x.h>\n#include_next H\n", "two/x.h": ""})
    assert forest.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"one/x.h", "two/x.h"}


def test_has_include_of_a_macro_is_followed(forest: Forest) -> None:
    assert forest.at_least('#define H "a.h"\n#if __has_include(H)\n#endif\n') == {"a.h"}


def test_a_file_that_includes_itself_by_name_means_no_other(forest: Forest) -> None:
    text = '#ifndef ONCE\n#define ONCE\n#include __FILE__\n#include "a.h"\n#endif\n'
    assert forest.exactly(text) == {"a.h"}
    assert forest.resolve().unresolved == ()


def test_what_the_compiler_defines_stands_for_any_text(forest: Forest) -> None:
    forest.write({"sm70.h": "", "sm80.h": "", "other.h": ""})
    text = ("#define STR_(x) #x\n#define STR(x) STR_(x)\n#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\n"
            "#ifdef __CUDA_ARCH__\n#include STR(CAT(sm, __CUDA_ARCH__).h)\n#endif\n")
    assert forest.at_least(text) == {"sm70.h", "sm80.h"}


def test_any_text_may_be_a_folder(forest: Forest) -> None:
    forest.write({"gcc12/d.h": "", "gcc13/d.h": "", "gcc13/e.h": ""})
    text = "#define CAT_(a, b) <a##b/d.h>\n#define CAT(a, b) CAT_(a, b)\n#include CAT(gcc, __GNUC__)\n"
    assert forest.at_least(text, "-I.") == {"gcc12/d.h", "gcc13/d.h"}


def test_a_macro_that_nothing_defines_means_no_header(forest: Forest) -> None:
    forest.write({"u.cc": '#ifdef USER_CONFIG\n#include USER_CONFIG\n#endif\n#include "a.h"\n'})
    closure = forest.resolve()
    assert closure.files == {f"{forest.root}/a.h"}
    assert closure.unresolved == ()


def test_a_macro_that_is_no_name_is_told(forest: Forest) -> None:
    forest.write({"u.cc": "#define H 1 + 1\n#ifdef NEVER\n#include H\n#endif\n"})
    assert forest.resolve().unresolved == ("H",)


def test_a_computed_include_with_too_many_meanings_is_told(forest: Forest) -> None:
    choices = "".join(f"#define P{i} a{i}\n#define P{i} b{i}\n" for i in range(14))
    forest.write({"u.cc": choices + "#define H <" + "/".join(f"P{i}" for i in range(14)) + ">\n#include H\n"})
    closure = forest.resolve("-w")
    assert closure.unresolved == ("H",)


def test_an_unresolved_include_of_the_systems_own_is_not_told(forest: Forest) -> None:
    forest.write({"sys/s.h": "#define H 1\n#if 0\n#include H\n#endif\n", "unit/u.cc": "#include <s.h>\n"})
    system = f"{forest.root}/sys"
    closure = Resolver((system,), (f"{forest.root}/unit",)).closure(forest.root / "unit/u.cc", (), (system,))
    assert closure.files == frozenset()
    assert closure.unresolved == ()


def test_a_name_with_blanks_between_its_tokens_counts_with_and_without(forest: Forest) -> None:
    forest.write({"a /d.h": "", "a/d.h": ""})
    assert forest.at_least("#define H <a /d.h>\n#include H\n", "-I.") == {"a /d.h", "a/d.h"}


@pytest.mark.parametrize(("definition", "use"), [
    ("#define F(x) #x", "F(q r)"),
    ("#define F(x) #x", "F( \"q\" )"),
    ("#define G q\n#define F(x) x", "F(G)"),
    ("#define F(x, y) x##y", "F(q, 1)"),
    ("#define F(x, y) x##y x", "F(, q)"),
    ("#define G() q\n#define F(x) x G()", "F((1, 2))"),
    ("#define F(x, ...) x __VA_ARGS__", "F(1, 2, (3, 4))"),
    ("#define G(x) [x]\n#define F G", "F(1)(2)"),
    ("#define F(x) x F(2)", "F(F(1))"),
    ("#define F q\n#define G(x) F x", "G(F) F"),
])
def test_expansion_is_the_preprocessors(definition: str, use: str) -> None:
    """Behind `<` the expanded tokens are the header's name, so the name tells the expansion."""
    real = subprocess.run(["g++", "-E", "-P", "-x", "c++", "-"], input=f"{definition}\n{use}\n", capture_output=True,
                          text=True, check=True).stdout
    defined: dict[str, list[Definition]] = {}
    for name, rest in scan(definition.encode()).defines:
        defined.setdefault(name.decode(), []).append(read_define(rest))
    names, understood = meant(f"< {use} >", lambda name: defined.get(name, []))
    assert understood
    assert "".join(real.split()) in {"".join(name.split()) for _, name in names}


def test_an_unknown_text_is_no_files_name() -> None:
    with pytest.raises(ValueError, match="null"):
        os.stat(f"x{ANY}")
