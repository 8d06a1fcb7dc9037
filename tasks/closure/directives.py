"""Reads the include directives of one file, as bytes, without evaluating any `#if`.

Directives under every condition count, so the result is a superset of what one compile includes;
what a comment or a raw string only mentions does not count. The lexical rules are GCC's (`lex.cc`).
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

__all__ = ["Directive", "FileScan", "read_source", "scan", "unspliced", "visible"]


def read_source(path: str) -> bytes:
    """A file's content; none where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        # Vanished or unreadable since it was found: its own stamp tells the difference later.
        return b""


class Directive(NamedTuple):
    """One header named by a directive.

    `form` is ``"`` or ``<`` as written, or ``macro`` for a computed include whose `name` is the text
    after the directive's word. `next` marks `#include_next`. A header asked for by `__has_include`
    counts as included: whether it exists changes the compile.
    """

    form: str
    name: str
    next: bool = False


class FileScan(NamedTuple):
    """What one file includes, in order and without repetition, and the macros that it defines.

    `defines` are (name, rest of the line) as they stand in the text, comments included: only a
    computed include asks for them.
    """

    directives: tuple[Directive, ...]
    defines: tuple[tuple[bytes, bytes], ...] = ()


_SPLICE = re.compile(rb"\\[ \t\v\f]*\r?\n")
_IMPORT = re.compile(rb"(?:#|%:|\?\?=)[ \t\v\f]*import\b")
# What can hide a directive, or look like one: comments, strings, characters, raw strings. The name of
# a header is none of them: `<a//b.h>` holds no comment, and a backslash in it escapes nothing. In a
# number an apostrophe separates digits. A literal without an end ends with its line; a raw string
# without an end is one that goes on behind the part that is looked at.
_HIDING = (
    rb'//[^\n]*|/\*[^*]*(?:\*(?!/)[^*]*)*(?:\*/|\Z)|"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*(?:"|$)'
    rb'|(?:#|%:)[ \t]*(?:include|include_next|import)[ \t]*(?:<[^>\n]*>|"[^"\n]*")'
    rb'|__has_include(?:_next)?[ \t]*\([ \t]*<[^>\n]*>'
    rb'|(?P<raw>\b(?:u8|[uUL])?R"(?P<fence>[^ ()\\\t\v\f\n]{0,16})\((?:.*?\)(?P=fence)"|.*\Z))')
# Looking ahead for the first byte saves trying the alternatives everywhere.
_WITHOUT_APOSTROPHES = re.compile(rb'(?=[/"#%_RuUL])(?:' + _HIDING + rb")", re.S | re.M)
_WITH_APOSTROPHES = re.compile(
    rb'(?=[/"#%_RuUL\'\d])(?:' + _HIDING + rb"|\b\d(?:'?[\w.])*|'[^'\\\n]*(?:\\[^\n][^'\\\n]*)*(?:'|$))", re.S | re.M)
_HASH = rb"^[ \t\v\f]*(?:#|%:|\?\?=)[ \t\v\f]*"
_DIRECTIVE = re.compile(
    _HASH + rb'(?P<word>include_next|include|import)(?!\w)[ \t\v\f]*'
    rb'(?:"(?P<quote>[^"\n]+)"|<(?P<angle>[^>\n]+)>|(?P<macro>[A-Za-z_$\x80-\xff][^\n]*))', re.M)
_HAS_INCLUDE = re.compile(
    rb'__has_include(?P<next>_next)?\s*\(\s*(?:"(?P<quote>[^"\n]+)"|<(?P<angle>[^>\n]+)>)')
_CONDITION = re.compile(_HASH + rb"(?:if|elif)\b([^\n]*)", re.M)
# A macro that is given a header's name in a condition can only be a wrapper of `__has_include`.
_ASKED = re.compile(rb'\w\s*\(\s*(?:"(?P<quote>[^"\n]+)"|<(?P<angle>[^<>\s()]+)>)\s*\)')
_ASKED_MACRO = re.compile(
    rb"__has_include(?P<next>_next)?\s*\(\s*(?P<macro>[A-Za-z_]\w*\s*(?:\((?:[^()]|\([^()]*\))*\))?)\s*\)")
_DEFINE = re.compile(rb"(?:#|%:)[ \t\v\f]*define[ \t\v\f]+(\w+)([^\n]*)")


def _blank(match: re.Match[bytes]) -> bytes:
    """A comment becomes a blank, a raw string an empty one; the rest stays (a header's name looks like it)."""
    text = match[0]
    if text[:2] in (b"//", b"/*"):
        return b" "
    return b'""' if match["raw"] is not None else text


def unspliced(text: bytes) -> bytes:
    """The text with a backslash at a line's end joining two lines, as GCC does (blanks may follow it)."""
    # A few searches for two bytes are many times faster than one pattern in a large table of escapes.
    if b"\\" in text and any(pair in text for pair in (b"\\\n", b"\\\r", b"\\ ", b"\\\t", b"\\\v", b"\\\f")):
        return _SPLICE.sub(b"", text)
    return text


def visible(text: bytes) -> bytes:
    """Unspliced text without comments and raw strings."""
    if b"/*" in text or b"//" in text or b'R"' in text:
        return (_WITH_APOSTROPHES if b"'" in text else _WITHOUT_APOSTROPHES).sub(_blank, text)
    return text


def _head(text: bytes) -> bytes:
    """The part that can hold a directive: generated arrays behind the last one are not looked at."""
    last = text.rfind(b"include")
    if b"import" in text:
        last = max(last, *(match.start() for match in _IMPORT.finditer(text)), -1)
    if last < 0:
        return b""
    end = text.find(b"\n", last)
    # A comment may carry the directive over the line's end.
    return text if end < 0 or b"/*" in text[last:end] else text[:end]


def _directive(match: re.Match[bytes], is_next: bool) -> Directive:
    groups = match.groupdict()
    if groups.get("quote") is not None:
        return Directive('"', os.fsdecode(match["quote"]), is_next)
    if groups.get("angle") is not None:
        return Directive("<", os.fsdecode(match["angle"].strip()), is_next)
    return Directive("macro", os.fsdecode(match["macro"].strip()), is_next)


def scan(text: bytes) -> FileScan:
    """The directives and definitions of a file's content."""
    text = unspliced(text)
    defines = tuple(_DEFINE.findall(text)) if b"define" in text else ()
    seen = visible(_head(text))
    found = [_directive(m, m["word"] == b"include_next") for m in _DIRECTIVE.finditer(seen)]
    if b"has_" in seen or b"HAS_" in seen or b"HAVE_" in seen:
        found += [_directive(m, m["next"] is not None) for m in _HAS_INCLUDE.finditer(seen)]
    if b'("' in seen or b"(<" in seen or b"__has_include" in seen:
        for condition in _CONDITION.finditer(seen):
            found += [_directive(m, False) for m in _ASKED.finditer(condition[1])]
            found += [_directive(m, m["next"] is not None) for m in _ASKED_MACRO.finditer(condition[1])]
    return FileScan(tuple(dict.fromkeys(found)), defines)
