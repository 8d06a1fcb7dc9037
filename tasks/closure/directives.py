"""Reads the include directives of one file, as bytes, without evaluating any `#if`.

Directives under every condition count, so the result is a superset of what one compile includes;
what a comment or a raw string only mentions does not count.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

__all__ = ["Directive", "FileScan", "macro_headers", "scan"]


@dataclass(frozen=True)
class Directive:
    """One header named by a directive.

    `form` is ``"`` or ``<`` as written, or ``macro`` for a computed include whose `name` is the
    macro. `next` marks `#include_next`. A header asked for by `__has_include` counts as included:
    whether it exists changes the compile.
    """

    form: str
    name: str
    next: bool = False


@dataclass(frozen=True)
class FileScan:
    """What one file includes, in order and without repetition."""

    directives: tuple[Directive, ...]


_SPLICE = re.compile(rb"\\[ \t]*\r?\n")
_MENTIONS = re.compile(rb"include|import")
# What can hide a directive, or look like one: comments, strings, characters, raw strings.
_HIDING = re.compile(
    rb'//[^\n]*|/\*.*?(?:\*/|\Z)|R"(?P<fence>[^ ()\\\t\v\f\n]{0,16})\(.*?\)(?P=fence)"'
    rb'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\[^\n]{1,9}?)\'', re.S)
_DIRECTIVE = re.compile(
    rb'^[ \t\v\f]*(?:#|%:)[ \t\v\f]*(?P<word>include_next|include|import)[ \t\v\f]*'
    rb'(?:"(?P<quote>[^"\n]+)"|<(?P<angle>[^>\n]+)>|(?P<macro>[A-Za-z_]\w*))', re.M)
_HAS_INCLUDE = re.compile(
    rb'__has_include(?P<next>_next)?\s*\(\s*(?:"(?P<quote>[^"\n]+)"|<(?P<angle>[^>\n]+)>|(?P<macro>[A-Za-z_]\w*))\s*\)')
_DEFINE = re.compile(rb"^[ \t]*(?:#|%:)[ \t]*define[ \t]+(\w+)(\([^)\n]*\))?[ \t]*([^\n]*)$", re.M)
_CALL = re.compile(rb"^(\w+)\s*(?:\((.*)\))?$")


def _blank(match: re.Match[bytes]) -> bytes:
    """A comment becomes a blank; a string stays (an include's name looks like one); a raw string is emptied."""
    text = match[0]
    if text[:2] in (b"//", b"/*"):
        return b" "
    return b'""' if text[:1] == b"R" else text


def _visible(text: bytes) -> bytes:
    if b"\\" in text:
        text = _SPLICE.sub(b"", text)
    if b"/*" in text or b"//" in text or b'R"' in text:
        text = _HIDING.sub(_blank, text)
    return text


def _directive(match: re.Match[bytes], is_next: bool) -> Directive:
    if match["quote"] is not None:
        return Directive('"', os.fsdecode(match["quote"]), is_next)
    if match["angle"] is not None:
        return Directive("<", os.fsdecode(match["angle"].strip()), is_next)
    return Directive("macro", match["macro"].decode(), is_next)


def scan(text: bytes) -> FileScan:
    """The directives of a file's content."""
    if _MENTIONS.search(text) is None:
        return FileScan(())
    visible = _visible(text)
    found = [_directive(m, m["word"] == b"include_next") for m in _DIRECTIVE.finditer(visible)]
    if b"__has_include" in visible:
        found += [_directive(m, m["next"] is not None) for m in _HAS_INCLUDE.finditer(visible)]
    return FileScan(tuple(dict.fromkeys(found)))


def _as_header(value: bytes) -> Directive | None:
    value = value.strip()
    if len(value) > 2 and value[:1] == b'"' and value[-1:] == b'"':
        return Directive('"', os.fsdecode(value[1:-1]))
    if len(value) > 2 and value[:1] == b"<" and value[-1:] == b">":
        return Directive("<", os.fsdecode(value[1:-1].strip()))
    return None


def macro_headers(macro: str, texts: list[bytes], defines: tuple[str, ...]) -> tuple[list[Directive], bool]:
    """Every header that a computed include of `macro` can mean, and whether all its definitions were understood.

    `texts` are the files that can define it, `defines` the `-D` values. Macros that name macros are
    followed; a stringising macro (`#define STR(x) #x`) is applied to its argument. All definitions
    count, whatever `#if` they stand under.
    """
    definitions: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for text in texts:
        for match in _DEFINE.finditer(_visible(text)):
            definitions.setdefault(match[1], []).append((match[2] or b"", match[3].strip()))
    for define in defines:
        defined, _, text_value = define.partition("=")
        definitions.setdefault(os.fsencode(defined), []).append((b"", os.fsencode(text_value)))
    found: dict[Directive, None] = {}
    understood = True
    waiting, seen = [os.fsencode(macro)], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        values = definitions.get(name, [])
        understood &= bool(values)
        for _, value in values:
            call = _CALL.match(value)
            if header := _as_header(value):
                found[header] = None
            elif call and call[2] is not None and _stringises(call[1], definitions):
                found[Directive('"', os.fsdecode(_expanded(call[2].strip(), definitions)))] = None
            elif call and call[2] is None:
                waiting.append(call[1])
            else:
                understood = False
    return list(found), understood


def _stringises(name: bytes, definitions: dict[bytes, list[tuple[bytes, bytes]]], depth: int = 4) -> bool:
    """Whether the function-like macro `name` turns its argument into a string, directly or through another."""
    for parameters, value in definitions.get(name, []):
        if parameters and re.match(rb"#\s*\w+$", value):
            return True
        inner = _CALL.match(value)
        if depth and parameters and inner and inner[2] is not None and _stringises(inner[1], definitions, depth - 1):
            return True
    return False


def _expanded(argument: bytes, definitions: dict[bytes, list[tuple[bytes, bytes]]]) -> bytes:
    values = definitions.get(argument, [])
    return values[0][1] if len(values) == 1 and values[0][1] else argument
