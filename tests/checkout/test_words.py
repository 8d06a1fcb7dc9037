"""Splitting a command line into words, against the shell itself."""

from __future__ import annotations

import shlex
import subprocess

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tasks.checkout.words import split_words


def shell(text: str) -> tuple[str, ...]:
    """The words as `sh` has them."""
    done = subprocess.run(["sh", "-c", f"for word in {text}; do printf '%s\\0' \"$word\"; done"],
                          capture_output=True, check=True)
    return tuple(done.stdout.decode().split("\0")[:-1])


@pytest.mark.parametrize("text", [
    "a b", "  a\t b", r"a\ b", r"\"a\"", "'a b'c", '"a b"c', r'"a\"b"', r'"a\b"', r"'a\b'", r'"a\\b"', r'"a\$b"',
    r"a\\b", "''", '""', "a''b", """'"'""", '''"'"''', r'-DX="\"he ader.h\""', r"a\'b", '"a\\`b"', "a'b c'd\"e f\"",
], ids=str)
def test_words_are_the_shells(text: str) -> None:
    assert split_words(text) == shell(text)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.text("ab '\"\\$#%:", min_size=1, max_size=6), min_size=1, max_size=4))
def test_quoted_words_come_back_as_they_were(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == tuple(words)


def test_quotes_without_an_end_raise_nothing() -> None:
    assert split_words("a \"b c") == ("a", "b", "c")


def test_nothing_has_no_words() -> None:
    assert split_words(" \n\t") == ()
