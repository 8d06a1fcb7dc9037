"""Along which folders a name is found, and in which order: every case is also asked of the real compiler."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.closure.forest import Forest


@pytest.fixture
def shadowed(forest: Forest) -> Forest:
    """One name in four folders."""
    return forest.write({f"{folder}/x.h": f"// {folder}\n" for folder in ("one", "two", "three", "four")})


def test_a_quoted_name_is_looked_for_beside_its_includer_first(forest: Forest) -> None:
    forest.write({"sub/d.h": '#include "e.h"\n', "sub/e.h": "", "e.h": ""})
    assert forest.exactly('#include "sub/d.h"\n', "-I.") == {"sub/d.h", "sub/e.h"}


def test_an_angled_name_is_not_looked_for_beside_its_includer(forest: Forest) -> None:
    forest.write({"sub/d.h": "#include <e.h>\n", "sub/e.h": "", "e.h": ""})
    assert forest.exactly('#include "sub/d.h"\n', "-I.") == {"sub/d.h", "e.h"}


def test_a_quoted_name_is_not_looked_for_beside_the_unit_from_elsewhere(forest: Forest) -> None:
    forest.write({"unit/u.cc": '#include "../sub/d.h"\n', "unit/e.h": "", "sub/d.h": '#include "e.h"\n', "inc/e.h": ""})
    assert forest.closure("-Iinc", unit="unit/u.cc") == forest.listed("-Iinc", unit="unit/u.cc")


def test_the_first_folder_wins(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Itwo", "-Ione") == {"two/x.h"}


def test_quote_folders_come_before_the_others_for_quoted_names(shadowed: Forest) -> None:
    assert shadowed.exactly('#include "x.h"\n', "-Ione", "-iquote", "two") == {"two/x.h"}


def test_quote_folders_do_not_count_for_angled_names(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-iquotetwo", "-isystem", "one") == {"one/x.h"}


def test_system_folders_come_behind_the_others(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-isystem", "one", "-I", "two") == {"two/x.h"}


def test_late_folders_come_last(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-idirafter", "one", "-isystemtwo") == {"two/x.h"}


def test_cpath_comes_behind_the_options_and_before_system_folders(shadowed: Forest) -> None:
    environ = {"CPATH": "two"}
    assert shadowed.exactly("#include <x.h>\n", "-isystem", "one", environ=environ) == {"two/x.h"}
    assert shadowed.exactly("#include <x.h>\n", "-Ione", environ=environ) == {"one/x.h"}


def test_an_empty_part_of_cpath_is_the_current_folder(forest: Forest) -> None:
    assert forest.exactly("#include <a.h>\n", environ={"CPATH": "/none:"}) == {"a.h"}


def test_cplus_include_path_comes_behind_system_options(shadowed: Forest) -> None:
    environ = {"CPLUS_INCLUDE_PATH": "two"}
    assert shadowed.exactly("#include <x.h>\n", "-isystem", "one", environ=environ) == {"one/x.h"}
    assert shadowed.exactly("#include <x.h>\n", "-idirafter", "one", environ=environ) == {"two/x.h"}


def test_c_include_path_is_not_for_cxx(shadowed: Forest) -> None:
    environ = {"C_INCLUDE_PATH": "two"}
    assert shadowed.exactly("#include <x.h>\n", "-idirafter", "one", environ=environ) == {"one/x.h"}


def test_a_folder_that_is_a_system_folder_too_counts_only_there(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo", "-isystem", "one") == {"two/x.h"}


def test_it_counts_only_there_under_another_spelling(shadowed: Forest) -> None:
    shadowed.link("link", "one")
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo", "-isystem", "./one") == {"two/x.h"}
    assert shadowed.exactly("#include <x.h>\n", "-Ilink", "-Itwo", "-isystem", "one") == {"two/x.h"}


def test_a_late_folder_is_a_system_folder(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo", "-idirafter", "one") == {"two/x.h"}


def test_a_folder_of_cplus_include_path_is_a_system_folder(shadowed: Forest) -> None:
    environ = {"CPLUS_INCLUDE_PATH": "one"}
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo", environ=environ) == {"two/x.h"}


def test_a_quote_folder_that_is_a_system_folder_too_counts_only_there(shadowed: Forest) -> None:
    text = '#include "x.h"\n'
    assert shadowed.exactly(text, "-iquote", "one", "-Itwo", "-isystem", "one") == {"two/x.h"}


def test_the_compilers_own_folder_named_with_i_keeps_its_place_at_the_end(shadowed: Forest) -> None:
    shadowed.write({"two/limits.h": "// two\n"})
    assert shadowed.exactly("#include <limits.h>\n", "-I/usr/include", "-Itwo") >= {"two/limits.h"}


def test_of_a_folder_named_twice_the_first_counts(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo", "-Ione") == {"one/x.h"}


def test_folders_that_do_not_exist_are_passed_over(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Inone", "-Ia.h", "-Ione") == {"one/x.h"}


def test_a_folder_of_the_headers_name_is_passed_over(forest: Forest) -> None:
    forest.write({"one/x.h/deep.h": "", "two/x.h": ""})
    assert forest.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"two/x.h"}


def test_a_link_to_nothing_is_passed_over(forest: Forest) -> None:
    forest.write({"two/x.h": ""})
    forest.link("one/x.h", "nowhere")
    assert forest.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"two/x.h"}


def test_an_absolute_name_needs_no_folder(forest: Forest) -> None:
    forest.write({"sub/d.h": ""})
    text = f'#include "{forest.root}/sub/../a.h"\n#include <{forest.root}/b.h>\n'
    assert forest.exactly(text) == {"a.h", "b.h"}


def test_dots_in_a_name_are_followed(forest: Forest) -> None:
    forest.write({"sub/d.h": '#include "../b.h"\n#include "./e.h"\n', "sub/e.h": ""})
    assert forest.exactly('#include "./sub/../sub/d.h"\n') == {"sub/d.h", "sub/e.h", "b.h"}


def test_dots_behind_a_link_leave_the_folder_that_it_leads_to(forest: Forest) -> None:
    forest.write({"far/away/d.h": "", "far/e.h": "// far\n", "e.h": "// near\n"})
    forest.link("sub", "far/away")
    assert forest.exactly('#include "sub/../e.h"\n') == {"far/e.h"}


def test_a_linked_folder_has_its_headers_under_their_real_name(forest: Forest) -> None:
    forest.write({"real/d.h": '#include "e.h"\n', "real/e.h": ""})
    forest.link("inc", "real")
    assert forest.exactly('#include <d.h>\n#include "inc/e.h"\n', "-Iinc") == {"real/d.h", "real/e.h"}


def test_a_header_that_is_a_link_keeps_its_own_folder(forest: Forest) -> None:
    forest.write({"real/d.h": '#include "e.h"\n', "real/e.h": "// real\n", "inc/e.h": "// inc\n"})
    forest.link("inc/d.h", "../real/d.h")
    assert forest.exactly('#include "inc/d.h"\n') == {"inc/d.h", "inc/e.h"}


def test_a_checkout_behind_a_link_has_the_same_closure(forest: Forest) -> None:
    forest.write({"real/u.cc": '#include "d.h"\n', "real/d.h": ""})
    forest.link("link", "real")
    assert forest.closure(unit="link/u.cc") == forest.closure(unit="real/u.cc") == {"real/d.h"}


def test_headers_that_include_each_other_are_followed_once(forest: Forest) -> None:
    forest.write({"d.h": '#pragma once\n#include "e.h"\n', "e.h": '#pragma once\n#include "d.h"\n#include "a.h"\n'})
    assert forest.exactly('#include "e.h"\n') == {"a.h", "d.h", "e.h"}


def test_a_unit_that_includes_itself_is_no_header(forest: Forest) -> None:
    assert forest.exactly('#ifndef ONCE\n#define ONCE\n#include "u.cc"\n#include "a.h"\n#endif\n') == {"a.h"}


def test_a_unit_included_by_a_unit_is_a_header(forest: Forest) -> None:
    forest.write({"inner.cu": '#include "a.h"\n'})
    assert forest.exactly('#include "inner.cu"\n') == {"a.h", "inner.cu"}


def test_a_missing_header_is_left_out(forest: Forest) -> None:
    forest.write({"u.cc": '#include "none.h"\n#include "a.h"\n'})
    assert forest.closure() == {"a.h"}


def test_a_missing_unit_has_an_empty_closure(forest: Forest) -> None:
    assert forest.closure(unit="none.cc") == set()


def test_include_next_goes_on_behind_the_folder_of_the_header(shadowed: Forest) -> None:
    shadowed.write({"one/x.h": "#include_next <x.h>\n"})
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"one/x.h", "two/x.h"}


def test_include_next_from_a_header_beside_its_includer_starts_at_the_first_folder(forest: Forest) -> None:
    forest.write({"one/d.h": '#include "e.h"\n', "one/e.h": "#include_next <f.h>\n", "one/f.h": ""})
    assert forest.exactly("#include <d.h>\n", "-Ione") == {"one/d.h", "one/e.h", "one/f.h"}


def test_include_next_counts_every_later_match(shadowed: Forest) -> None:
    shadowed.write({"one/x.h": '#include_next "x.h"\n'})
    found = shadowed.at_least("#include <x.h>\n", "-Ione", "-Itwo", "-Ithree")
    assert found >= {"one/x.h", "two/x.h"}


def test_a_response_files_words_count(forest: Forest) -> None:
    forest.write({"inc lude/d.h": "", "w.rsp": '-DX=1\n"-Iinc lude"\n'})
    assert forest.exactly("#include <d.h>\n", "@w.rsp") == {"inc lude/d.h"}


def test_response_files_nest(forest: Forest) -> None:
    forest.write({"inc/d.h": "", "w.rsp": "@v.rsp", "v.rsp": "-Iinc"})
    assert forest.exactly("#include <d.h>\n", "@w.rsp") == {"inc/d.h"}


def test_dollars_in_a_response_file_are_plain(forest: Forest) -> None:
    forest.write({"in$$c/d.h": "", "w.rsp": "-Iin$$c"})
    assert forest.exactly("#include <d.h>\n", "@w.rsp") == {"in$$c/d.h"}


def test_a_response_file_that_is_missing_is_a_word(forest: Forest) -> None:
    forest.write({"u.cc": '#include "a.h"\n'})
    assert forest.closure("@none.rsp") == {"a.h"}


def test_a_response_file_that_names_itself_ends(forest: Forest) -> None:
    forest.write({"u.cc": '#include "a.h"\n', "w.rsp": "-I. @w.rsp"})
    assert forest.closure("@w.rsp") == {"a.h"}


def test_a_forced_header_counts(forest: Forest) -> None:
    assert forest.exactly("int i;\n", "-include", "a.h") == {"a.h"}


def test_a_forced_header_is_looked_for_along_the_path(forest: Forest) -> None:
    forest.write({"inc/d.h": '#include "e.h"\n', "inc/e.h": ""})
    assert forest.exactly("int i;\n", "-include", "d.h", "-Iinc") == {"inc/d.h", "inc/e.h"}


def test_a_forced_header_is_not_looked_for_beside_the_unit(forest: Forest) -> None:
    forest.write({"sub/u.cc": "", "sub/d.h": "// beside\n", "inc/d.h": "// inc\n"})
    options = ("-include", "d.h", "-Iinc")
    assert forest.closure(*options, unit="sub/u.cc") == forest.listed(*options, unit="sub/u.cc") == {"inc/d.h"}


def test_a_header_for_macros_only_counts(forest: Forest) -> None:
    assert forest.exactly("int i;\n", "-imacros", "a.h") == {"a.h"}


def test_long_names_of_options_count(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "--include-directory=one", "--include-directory", "two") == {"one/x.h"}


def test_options_for_the_preprocessor_come_behind_the_others(shadowed: Forest) -> None:
    assert shadowed.exactly("#include <x.h>\n", "-Wp,-Itwo", "-Ione") == {"one/x.h"}
    assert shadowed.exactly("#include <x.h>\n", "-Xpreprocessor", "-Itwo") == {"two/x.h"}


def test_a_third_party_header_in_a_system_folder_counts_below_the_checkout(forest: Forest) -> None:
    forest.write({"build/_deps/cutlass-src/include/cutlass/c.h": ""})
    found = forest.exactly("#include <cutlass/c.h>\n", "-isystem", "build/_deps/cutlass-src/include")
    assert found == {"build/_deps/cutlass-src/include/cutlass/c.h"}


def test_a_folder_of_the_compiler_below_the_checkout_counts(forest: Forest) -> None:
    # CMake leaves a folder that the compiler searches by itself out of the command.
    forest.write({"toolchain/include/d.h": "", "u.cc": "#include <d.h>\n"})
    closure = forest.resolve(system=(f"{forest.root}/toolchain/include",))
    assert closure.files == {f"{forest.root}/toolchain/include/d.h"}


def test_headers_of_the_system_are_left_out(forest: Forest) -> None:
    forest.write({"u.cc": '#include <vector>\n#include "a.h"\n'})
    assert forest.resolve().files == {f"{forest.root}/a.h"}


def test_a_header_that_shadows_a_systems_one_counts_where_only_the_system_includes_it(forest: Forest) -> None:
    forest.write({"compat/stdint.h": "#include_next <stdint.h>\n"})
    assert forest.exactly("#include <cstdint>\n", "-Icompat") == {"compat/stdint.h"}


def test_a_header_that_newly_shadows_another_takes_its_place(shadowed: Forest) -> None:
    (shadowed.root / "one/x.h").rename(shadowed.root / "one/y.h")
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"two/x.h"}
    (shadowed.root / "one/y.h").rename(shadowed.root / "one/x.h")
    assert shadowed.exactly("#include <x.h>\n", "-Ione", "-Itwo") == {"one/x.h"}


def test_a_folder_that_may_not_be_listed_is_asked_name_by_name(forest: Forest) -> None:
    # Root may list everything: so the closure is asked as another user.
    forest.write({"inc/d.h": "", "u.cc": "#include <d.h>\n"})
    code = ("import os, sys\nfrom pathlib import Path\nfrom tasks.closure.resolve import Resolver\n"
            "if os.getuid() == 0: os.setuid(65534)\n"
            "print(*Resolver().closure(Path('u.cc').absolute(), (), (os.path.abspath('inc'),)).files)")
    for folder in (forest.root, *forest.root.parents):
        if folder.owner() == forest.root.owner() and len(folder.parts) > 2:
            folder.chmod(folder.stat().st_mode | 0o055)
    (forest.root / "inc").chmod(0o311)
    project = os.getcwd()
    done = subprocess.run(["python3", "-c", code], cwd=forest.root, env={**os.environ, "PYTHONPATH": project},
                          capture_output=True, text=True, check=False)
    (forest.root / "inc").chmod(0o755)
    assert done.stdout.split() == [f"{forest.root}/inc/d.h"], done.stderr


def test_the_chain_leads_from_the_unit_to_the_header(forest: Forest) -> None:
    forest.write({"u.cc": '#include "d.h"\n', "d.h": '#include "e.h"\n', "e.h": ""})
    chain = forest.resolve().chain(f"{forest.root}/e.h")
    assert [os.path.basename(path) for path in chain] == ["u.cc", "d.h", "e.h"]


def test_the_chain_is_the_shortest(forest: Forest) -> None:
    forest.write({"u.cc": '#include "d.h"\n#include "e.h"\n', "d.h": '#include "e.h"\n', "e.h": ""})
    assert len(forest.resolve().chain(f"{forest.root}/e.h")) == 2


def test_a_watched_header_is_recognised_under_any_of_its_names(forest: Forest) -> None:
    forest.write({"real.h": "", "u.cc": '#include "soft.h"\n#include "hard.h"\n'})
    forest.link("soft.h", "real.h")
    os.link(forest.root / "real.h", forest.root / "hard.h")
    closure = forest.resolve()
    assert closure.among((f"{forest.root}/real.h",)) == (f"{forest.root}/hard.h", f"{forest.root}/soft.h")
    assert closure.among((f"{forest.root}/a.h", f"{forest.root}/none.h")) == ()


@pytest.mark.parametrize("name", ["real.h", "soft.h", "hard.h"])
def test_a_watched_header_is_recognised_when_it_was_replaced_since_the_look(forest: Forest, name: str) -> None:
    forest.write({"real.h": "", "new.h": "", "u.cc": f'#include "real.h"\n#include "{name}"\n'})
    forest.link("soft.h", "real.h")
    os.link(forest.root / "real.h", forest.root / "hard.h")
    closure = forest.resolve()
    (forest.root / "new.h").rename(forest.root / "real.h")
    watched = {f"{forest.root}/real.h", f"{forest.root}/{name}"}
    assert set(closure.among((f"{forest.root}/real.h",))) == watched


def test_nvcc_reads_a_list_of_folders_and_its_options_files(shadowed: Forest) -> None:
    shadowed.write({"w.rsp": "-I=two,one"})
    found = shadowed.exactly("#include <x.h>\n", "--options-file", "w.rsp", unit="u.cu", compiler="nvcc")
    assert found == {"two/x.h"}


def test_nvcc_hands_its_xcompiler_words_on_in_front(shadowed: Forest) -> None:
    words = ("-Ione", "-Xcompiler", "-Itwo,-include", "-Xcompiler=a.h", "-Xcompiler", "-include b.h")
    assert shadowed.exactly("#include <x.h>\n", *words, unit="u.cu", compiler="nvcc") == {"two/x.h", "a.h", "b.h"}


def test_nvcc_has_more_words_for_the_same(shadowed: Forest) -> None:
    words = ("--system-include=one", "--include-path", "two", "--pre-include", "a.h", "-isystem=three")
    assert shadowed.exactly("#include <x.h>\n", *words, unit="u.cu", compiler="nvcc") == {"two/x.h", "a.h"}


def test_nvccs_variables_count_for_nvcc_alone(shadowed: Forest) -> None:
    environ = {"NVCC_PREPEND_FLAGS": "-I two", "NVCC_APPEND_FLAGS": '-I "three"'}
    text = "#include <x.h>\n"
    assert shadowed.exactly(text, "-Ione", environ=environ, unit="u.cu", compiler="nvcc") == {"two/x.h"}
    assert shadowed.exactly(text, "-Ione", environ=environ) == {"one/x.h"}


def test_nvccs_profile_takes_more_folders_from_the_environment(shadowed: Forest) -> None:
    text = "#include <x.h>\n"
    for variable in ("INCLUDES", "SYSTEM_INCLUDES"):
        environ = {variable: "-I two"}
        assert shadowed.exactly(text, environ=environ, unit="u.cu", compiler="nvcc") == {"two/x.h"}
        assert shadowed.exactly(text, "-Ione", environ=environ, unit="u.cu", compiler="nvcc") == {"one/x.h"}
        assert shadowed.exactly(text, "-Ione", environ=environ) == {"one/x.h"}
    environ = {"INCLUDES": "-I two", "SYSTEM_INCLUDES": "-isystem three"}
    assert shadowed.exactly(text, environ=environ, unit="u.cu", compiler="nvcc") == {"two/x.h"}


def test_the_header_that_nvcc_forces_itself_is_followed(forest: Forest) -> None:
    forest.write({"inc/time.h": "#include_next <time.h>\n"})
    assert forest.exactly("int i;\n", "-Iinc", unit="u.cu", compiler="nvcc") == {"inc/time.h"}
