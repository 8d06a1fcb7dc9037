"""Names of units: short, and each its own."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
from hypothesis import given, settings

from tasks.checkout.model import unit_names


def names(*sources: str) -> list[str]:
    return unit_names([(Path(source), f"/b/CMakeFiles/t.dir{source}.o") for source in sources])


def test_a_stem_that_is_unique_is_the_name() -> None:
    assert names("/r/a/fmha_sm80.cu", "/r/a/fmha_sm75.cu") == ["fmha_sm80", "fmha_sm75"]


def test_an_extension_tells_two_units_of_one_folder_apart() -> None:
    assert names("/r/a/attention.cc", "/r/a/attention.cu") == ["attention.cc", "attention.cu"]


def test_a_folder_tells_two_units_of_one_file_name_apart() -> None:
    assert names("/r/bert/attention.cc", "/r/llm/attention.cc") == ["bert/attention.cc", "llm/attention.cc"]


def test_as_many_folders_are_named_as_needed() -> None:
    assert names("/r/x/a/u.cu", "/r/y/a/u.cu", "/r/x/b/u.cu") == ["x/a/u.cu", "y/a/u.cu", "b/u.cu"]


def test_a_path_that_ends_like_another_has_its_own_name() -> None:
    found = names("/a/u.cu", "/r/a/u.cu")
    assert len(set(found)) == 2


def test_one_source_in_two_targets_has_two_names() -> None:
    source = Path("/r/u.cu")
    found = unit_names([(source, "/b/CMakeFiles/one.dir/r/u.cu.o"), (source, "/b/CMakeFiles/two.dir/r/u.cu.o")])
    assert found == ["one.dir:u.cu", "two.dir:u.cu"]


_path = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).flatmap(
    lambda folders: st.tuples(st.sampled_from("uv"), st.sampled_from([".cu", ".cc"])).map(
        lambda name: "/" + "/".join(folders) + "/" + "".join(name)))


@settings(max_examples=40)
@given(st.lists(_path, unique=True, max_size=12))
def test_no_two_units_have_one_name(paths: list[str]) -> None:
    assert len(set(names(*paths))) == len(paths)


@settings(max_examples=40)
@given(st.lists(_path, unique=True, max_size=12))
def test_a_name_is_the_end_of_its_path_or_the_stem(paths: list[str]) -> None:
    for path, name in zip(paths, names(*paths), strict=True):
        assert name == Path(path).stem or path.endswith(name)
