"""Random forests of headers, against the real preprocessor."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from tasks.closure.cache import ClosureCache
from tasks.closure.resolve import Resolver
from tests.closure.forest import Forest

_FOLDERS = ("", "one/", "two/", "two/deep/")
_NAMES = [f"{folder}{letter}.h" for folder in _FOLDERS for letter in "xyz"]
_ASKED = ["x.h", "y.h", "z.h", "deep/x.h", "deep/y.h", "../x.h", "one/x.h", "./y.h", "link/z.h"]
_OPTIONS = [("-Ione",), ("-Itwo",), ("-I.",), ("-isystem", "one"), ("-iquote", "two"), ("-idirafter", "."),
            ("-Itwo/deep",), ("-Ilink",), ("-isystem", "two/../one")]
_GUARD = "#ifndef {0}\n#define {0}\n{1}#endif\n"

_quoted = st.sampled_from([f'"{name}"' for name in _ASKED])
_angled = st.sampled_from([f"<{name}>" for name in _ASKED])
_plain = st.one_of(_quoted, _angled)


def _checked(files: dict[str, str], options: list[tuple[str, ...]]) -> tuple[set[str], set[str]]:
    folder = Path(tempfile.mkdtemp(prefix="forest-"))
    try:
        forest = Forest(folder).write(files)
        forest.link("link", "two/deep")
        words = [word for option in options for word in option]
        return forest.closure(*words), forest.listed(*words)
    finally:
        shutil.rmtree(folder)


@st.composite
def _forests(draw: st.DrawFn, line: str) -> dict[str, str]:
    """Guarded files whose directives follow `line`; a name that is not found must not be included there."""
    # `two/deep` must exist for the link to it.
    files = {"two/deep/q.h": ""}
    for number, name in enumerate(["u.cc", *draw(st.lists(st.sampled_from(_NAMES), unique=True, max_size=9))]):
        body = "".join(line.format(name) for name in draw(st.lists(_plain, max_size=4)))
        files[name] = _GUARD.format(f"G{number}", body)
    return files


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(_forests("#if __has_include({0})\n#include {0}\n#endif\n"), st.lists(st.sampled_from(_OPTIONS), max_size=5))
def test_without_conditions_the_closure_is_what_the_compiler_lists(
        files: dict[str, str], options: list[tuple[str, ...]]) -> None:
    ours, real = _checked(files, options)
    assert ours == real


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(_forests("#if defined(G1) && __has_include({0})\n#include {0}\n#endif\n"
                "#if __has_include_next({0}) && defined(G2)\n#include_next {0}\n#endif\n"),
       st.lists(st.sampled_from(_OPTIONS), max_size=5))
def test_under_conditions_the_closure_lacks_nothing_that_the_compiler_lists(
        files: dict[str, str], options: list[tuple[str, ...]]) -> None:
    ours, real = _checked(files, options)
    assert real <= ours


_FINAL = st.one_of(_plain, st.sampled_from(["S(x.h)", "S(y.h)", "<P/x.h>", "T(P/x.h)", "S(P/y.h)"]))
# A macro may name those behind it in the alphabet, so that each becomes a header's name in the end.
_VALUES = {"A": st.one_of(_FINAL, st.sampled_from(["B", "C", "K(B, C)", "K(C, B)"])),
           "B": st.one_of(_FINAL, st.just("C")), "C": _FINAL}
_define = st.sampled_from("ABC").flatmap(lambda macro: st.tuples(st.just(macro), _VALUES[macro]))


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_define, max_size=5), st.lists(st.sampled_from(_NAMES), unique=True, max_size=9),
       st.lists(st.sampled_from(_OPTIONS), max_size=4))
def test_computed_includes_lack_nothing_that_the_compiler_lists(
        defines: list[tuple[str, str]], names: list[str], options: list[tuple[str, ...]]) -> None:
    head = ("#define S(x) #x\n#define T(x) S(x)\n#define K(a, b) a\n#define P deep\n"
            '#define A B\n#define B C\n#define C "z.h"\n')
    files = {"two/deep/q.h": "", **{name: f"// {name}\n" for name in names}}
    for number, (macro, value) in enumerate(defines):
        files[f"d{number}.h"] = f"#undef {macro}\n#define {macro} {value}\n"
    includes = "".join(f'#include "d{number}.h"\n#if __has_include(A)\n#include A\n#endif\n'
                       for number in range(len(defines)))
    ours, real = _checked({**files, "u.cc": head + includes}, options)
    assert real <= ours


_EDITS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(["u.cc", *_NAMES]), st.lists(_plain, max_size=3)),
    st.tuples(st.just("remove"), st.sampled_from(_NAMES), st.just([])),
    st.tuples(st.just("rename"), st.sampled_from(_NAMES), st.sampled_from([[name] for name in _NAMES])),
    st.tuples(st.just("relink"), st.sampled_from(["one", "two", "two/deep", "none"]), st.just([])),
    st.tuples(st.just("move folder"), st.sampled_from(["one", "two"]), st.just([])),
)


def _apply(forest: Forest, edit: tuple[str, str, list[str]]) -> None:
    what, name, others = edit
    path = forest.root / name
    if what == "write":
        forest.write({name: "".join(f"#include {other}\n" for other in others)})
    elif what == "remove":
        path.unlink(missing_ok=True)
    elif what == "rename" and path.is_file():
        target = forest.root / others[0]
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    elif what == "relink":
        (forest.root / "link").unlink()
        forest.link("link", name)
    elif what == "move folder" and path.is_dir():
        path.rename(forest.root / "moved")
        (forest.root / "moved").rename(path)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(_forests("#include {0}\n"), st.lists(st.sampled_from(_OPTIONS), max_size=4),
       st.lists(st.tuples(_EDITS, st.booleans()), max_size=8))
def test_kept_closures_are_those_of_a_fresh_look_after_any_edits(
        files: dict[str, str], options: list[tuple[str, ...]],
        edits: list[tuple[tuple[str, str, list[str]], bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        forest = Forest(Path(folder)).write(files)
        forest.link("link", "two/deep")
        search = forest.search(tuple(word for option in options for word in option), "u.cc", {}, "g++")
        for edit, quiet in [(None, True), *edits]:
            if edit is not None:
                _apply(forest, edit)
            if quiet:
                time.sleep(0.025)  # else the look falls into the clock tick of the edit
            kept = ClosureCache(forest.root / "closure.json", (), (str(forest.root),))
            found = kept.closures({"u": (forest.root / "u.cc", search)})["u"]
            kept.save()
            fresh = Resolver((), (str(forest.root),)).closure(
                forest.root / "u.cc", search.quote, search.angle, (), (), search.system)
            assert (found.files, found.unresolved) == (fresh.files, fresh.unresolved)
