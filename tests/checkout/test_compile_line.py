"""Reading one compile command; what the real compilers make of the options is tested with the closures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.checkout.compile_line import CompileLine, expand_response_files, read_compile_line


def line(text: str, **environ: str) -> CompileLine:
    return read_compile_line(tuple(text.split()), "/build", environ)


def test_relative_folders_start_from_the_working_directory() -> None:
    assert line("g++ -Iinc -I/abs -isystem sys -iquote q").search.angle == ("/build/inc", "/abs", "/build/sys")
    assert line("g++ -iquote q").search.quote == ("/build/q",)


def test_dots_in_a_folder_stay_since_a_link_may_lie_before_them() -> None:
    assert line("g++ -I../src/./x").search.angle == ("/build/../src/./x",)


def test_the_system_folders_are_the_end_of_the_path() -> None:
    search = line("g++ -isystem s -idirafter a -Ii", CPATH="/c", CPLUS_INCLUDE_PATH="/p").search
    assert search.angle == ("/build/i", "/c", "/build/s", "/p", "/build/a")
    assert search.system == search.angle[2:]


def test_an_option_without_its_value_is_none() -> None:
    assert line("g++ -c x.cc -I").search.angle == ()


def test_a_word_that_only_begins_like_an_option_is_none() -> None:
    search = line("g++ -include-pch x -iprefix /y --includes z --systemd").search
    assert (search.angle, search.quote) == ((), ())


def test_definitions_keep_their_values() -> None:
    assert line("g++ -DA -D B=1 -DC=x=y").search.defines == ("A", "B=1", "C=x=y")


def test_nvccs_definitions_may_be_a_list() -> None:
    assert set(line("nvcc -DA=1,B=2 -x cu").search.defines) >= {"A=1", "B=2"}


def test_gcc_takes_a_comma_for_part_of_a_folders_name() -> None:
    assert line("g++ -Ia,b").search.angle == ("/build/a,b",)


def test_nvcc_is_recognised_behind_a_launcher_and_by_its_language() -> None:
    assert line("/usr/bin/ccache /usr/local/cuda/bin/nvcc -c x.cu").language == "CUDA"
    assert line("/opt/wrapper -x cu -c x.cu").language == "CUDA"
    assert line("/usr/bin/c++ -c x.cu -o nvcc.o").language == "CXX"


@pytest.mark.parametrize(("text", "threads"), [
    ("nvcc -c x.cu", 1), ("nvcc --threads 4 -c x.cu", 4), ("nvcc --threads=4 -c x.cu", 4), ("nvcc -t 2 -c x.cu", 2),
    ("nvcc -t2 -c x.cu", 2), ("nvcc -t=2 -c x.cu", 2), ("nvcc --threads 0 -c x.cu", 0), ("nvcc -time x.csv -c x.cu", 1),
    ("nvcc --threads 2 -t 8 -c x.cu", 8), ("clang++ -target x86_64 -traditional-cpp -c x.cc", 1)])
def test_the_compiles_that_nvcc_runs_at_once_are_known(text: str, threads: int) -> None:
    assert line(text).threads == threads


def test_the_compiles_that_the_environment_makes_nvcc_run_at_once_are_known() -> None:
    assert line("nvcc --threads 2 -c x.cu", NVCC_APPEND_FLAGS="--threads 6").threads == 6
    assert line("nvcc --threads 2 -c x.cu", NVCC_PREPEND_FLAGS="--threads 6").threads == 2


@pytest.mark.parametrize(("text", "compiler"), [
    ("/usr/bin/c++ -c x.cc", "/usr/bin/c++"),
    ("ccache /usr/bin/c++ -c x.cc", "/usr/bin/c++"),
    ("env A=B ccache nvcc -c x.cu", "nvcc"),
])
def test_the_compiler_is_the_word_before_the_first_option(text: str, compiler: str) -> None:
    assert line(text).compiler == compiler


def test_a_line_without_words_has_no_compiler() -> None:
    assert read_compile_line((), "/build", {}).compiler == ""


def test_the_words_hold_what_response_files_hold(tmp_path: Path) -> None:
    (tmp_path / "w.rsp").write_text('-Ia "-Ib c"\n')
    words = expand_response_files(("nvcc", "--options-file", "w.rsp", "--options-file=w.rsp", "-c"), str(tmp_path))
    assert tuple(words) == ("nvcc", "-Ia", "-Ib c", "-Ia", "-Ib c", "-c")


def test_an_options_file_that_is_missing_stays_a_word(tmp_path: Path) -> None:
    assert tuple(expand_response_files(("g++", "@none", "@"), str(tmp_path))) == ("g++", "@none", "@")
