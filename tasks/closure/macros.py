"""What a computed `#include` can mean: macro expansion under every definition at once.

No `#if` is evaluated, so each definition of a macro is an alternative, and so is none. A name that
the compiler itself defines stands for any text. Expansion follows Prosser's algorithm (the one that
the C standard's wording was made from).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from tasks.closure.directives import visible
from tasks.closure.disk import ANY

__all__ = ["Definition", "identifiers", "meant", "read_define", "read_option"]

# Steps of one expansion: a real one takes some dozens.
_LIMIT = 4000

_TOKEN = re.compile(r'(?P<blank>\s+)|%:%:|##|%:|#|"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
                    r"|[A-Za-z_$\x00\x80-\U0010ffff][\w$\x00]*|\.?\d[\w.]*|.", re.S)
_NAME = re.compile(r"[A-Za-z_$\x80-\U0010ffff][\w$]*")
_COMPILERS_OWN = re.compile(
    r"__(?:CUDA|NVCC|GNUC|GXX|GCC|clang|cplusplus|x86|amd64|aarch64|linux|unix|SIZEOF|VERSION|STDC|LP64)\w*"
    r"|linux|unix|i386")
_RESERVED = re.compile(r"_(?:_|[A-Z])\w*")


class _Token(NamedTuple):
    text: str
    spaced: bool = False
    hidden: frozenset[str] = frozenset()


class Definition(NamedTuple):
    """One `#define`. `parameters` is None for an object-like macro; the last may be `__VA_ARGS__`."""

    parameters: tuple[str, ...] | None
    body: str


class _TooManyError(Exception):
    """The alternatives grew over the limit."""


Definitions = Callable[[str], Sequence[Definition]]


def identifiers(text: str) -> set[str]:
    """The names in a text that macros can stand behind."""
    return set(_NAME.findall(text))


def read_define(rest: bytes) -> Definition:
    """A definition from what stands behind the macro's name."""
    text = visible(rest).decode(errors="surrogateescape").rstrip("\r")
    if not text.startswith("("):
        return Definition(None, text.strip())
    inner, _, body = text[1:].partition(")")
    names = [name.strip() for name in inner.split(",")] if inner.strip() else []
    parameters = tuple("__VA_ARGS__" if name == "..." else name.removesuffix("...").rstrip() for name in names)
    return Definition(parameters, body.strip())


def read_option(value: str) -> tuple[str, Definition]:
    """Name and definition from the value of a `-D` option."""
    left, separator, body = value.partition("=")
    name, parenthesis, parameters = left.partition("(")
    rest = f"{parenthesis}{parameters} {body if separator else '1'}"
    return name, read_define(rest.encode(errors="surrogateescape"))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    spaced = False
    for match in _TOKEN.finditer(text):
        if match["blank"]:
            spaced = True
            continue
        found.append(_Token({"%:%:": "##", "%:": "#"}.get(match[0], match[0]), spaced))
        spaced = False
    return found


def _spelling(tokens: Sequence[_Token]) -> str:
    return "".join((" " if token.spaced and i else "") + token.text for i, token in enumerate(tokens))


def _arguments(tokens: Sequence[_Token]) -> tuple[list[list[_Token]], int] | None:
    """The arguments of a call whose `(` is the first token, and how many tokens it takes."""
    arguments: list[list[_Token]] = [[]]
    depth = 0
    for position, token in enumerate(tokens):
        if token.text == "(":
            depth += 1
            if depth == 1:
                continue
        elif token.text == ")":
            depth -= 1
            if depth == 0:
                return arguments, position + 1
        if token.text == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return None


class _Expansion:
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._steps = 0

    def expand(self, tokens: Sequence[_Token]) -> Iterator[tuple[_Token, ...]]:
        """Every sequence of tokens that these can become."""
        self._steps += 1
        if self._steps > _LIMIT:
            raise _TooManyError
        for position, token in enumerate(tokens):
            alternatives = [] if token.text in token.hidden else list(self._replaced(tokens[position:]))
            if not alternatives:
                continue
            if not _COMPILERS_OWN.fullmatch(token.text):
                kept = token._replace(hidden=token.hidden | {token.text})
                alternatives.append([kept, *tokens[position + 1:]])
            before = tuple(tokens[:position])
            for alternative in alternatives:
                for rest in self.expand(alternative):
                    yield before + rest
            return
        yield tuple(tokens)

    def _replaced(self, tokens: Sequence[_Token]) -> Iterator[list[_Token]]:
        """The tokens with their first one replaced, once for each of its definitions."""
        first, rest = tokens[0], tokens[1:]
        if not _NAME.fullmatch(first.text):
            return
        definitions = self._definitions(first.text)
        for definition in definitions:
            hidden = first.hidden | {first.text}
            if definition.parameters is None:
                yield [*self._marked(self._pasted(_tokens(definition.body)), hidden, first.spaced), *rest]
            elif rest and rest[0].text == "(" and (call := _arguments(rest)) is not None:
                arguments, length = call
                for body in self._filled(definition, arguments):
                    yield [*self._marked(body, hidden, first.spaced), *rest[length:]]
        if _COMPILERS_OWN.fullmatch(first.text) or (_RESERVED.fullmatch(first.text) and not definitions):
            yield [_Token(ANY, first.spaced), *rest]

    @staticmethod
    def _marked(body: Sequence[_Token], hidden: frozenset[str], spaced: bool) -> list[_Token]:
        marked = [token._replace(hidden=token.hidden | hidden) for token in body]
        if marked:
            marked[0] = marked[0]._replace(spaced=spaced)
        return marked

    def _filled(self, definition: Definition, arguments: list[list[_Token]]) -> Iterator[list[_Token]]:
        """The body with its parameters replaced; an argument is expanded unless `#` or `##` touches it."""
        parameters = definition.parameters or ()
        body = _tokens(definition.body)
        given = dict(zip(parameters, arguments, strict=False))
        if parameters and len(arguments) > len(parameters):
            extra: list[_Token] = list(arguments[len(parameters) - 1])
            for argument in arguments[len(parameters):]:
                extra += [_Token(","), *argument]
            given[parameters[-1]] = extra
        plain = [token.text for i, token in enumerate(body) if token.text in given
                 and (i == 0 or body[i - 1].text not in ("#", "##"))
                 and (i + 1 == len(body) or body[i + 1].text != "##")]
        names = list(dict.fromkeys(plain))
        for choice in product(*(list(self.expand(given[name])) for name in names)):
            expanded = dict(zip(names, choice, strict=True))
            yield self._pasted(self._substituted(body, given, expanded))

    @staticmethod
    def _substituted(body: list[_Token], given: dict[str, list[_Token]],
                     expanded: dict[str, tuple[_Token, ...]]) -> list[_Token]:
        result: list[_Token] = []
        position = 0
        while position < len(body):
            token = body[position]
            after = body[position + 1].text if position + 1 < len(body) else ""
            if token.text == "#" and after in given:
                text = _spelling(given[after]).replace("\\", "\\\\").replace('"', '\\"')
                result.append(_Token(f'"{text}"', token.spaced))
                position += 2
                continue
            if token.text in given:
                raw = after == "##" or (position > 0 and body[position - 1].text == "##")
                # An empty argument beside `##` leaves nothing to paste to.
                tokens = (given[token.text] or [_Token("")]) if raw else expanded[token.text]
                result += [t._replace(spaced=token.spaced if i == 0 else t.spaced) for i, t in enumerate(tokens)]
            else:
                result.append(token)
            position += 1
        return result

    @staticmethod
    def _pasted(tokens: Sequence[_Token]) -> list[_Token]:
        result: list[_Token] = []
        paste = False
        for token in tokens:
            if token.text == "##":
                paste = bool(result)
            elif paste:
                left = result.pop()
                result.append(_Token(left.text + token.text, left.spaced, left.hidden & token.hidden))
                paste = False
            else:
                result.append(token)
        return [token for token in result if token.text]


def _names(tokens: Sequence[_Token]) -> Iterator[tuple[str, str]]:
    """(form, name) of the header that expanded tokens name. Blanks inside `<>` may or may not be part of it."""
    first = tokens[0].text if tokens else ""
    if first.startswith('"') and len(first) > 2:
        yield '"', first[1:-1]
    elif first == "<":
        end = next((i for i, token in enumerate(tokens) if token.text == ">"), None)
        if end is not None and end > 1:
            yield "<", "".join(token.text for token in tokens[1:end])
            yield "<", _spelling(tokens[1:end])


def meant(text: str, definitions: Definitions) -> tuple[list[tuple[str, str]], bool]:
    """Every (form, name) that the computed include `text` can mean, and whether that is all of them.

    A name may hold :data:`ANY`. It is not all of them where the text becomes no header's name under
    any definition, or where there are too many to follow. A macro that nothing defines stands in a
    branch that no compile takes (`#ifdef USER_CONFIG`): it means no header.
    """
    name = _NAME.match(text)
    if text.strip() == "__FILE__" or (name and not _COMPILERS_OWN.fullmatch(name[0]) and not definitions(name[0])):
        return [], True
    found: dict[tuple[str, str], None] = {}
    try:
        for tokens in _Expansion(definitions).expand(_tokens(text)):
            found.update(dict.fromkeys(_names(tokens)))
    except (_TooManyError, RecursionError):
        return list(found), False
    return list(found), bool(found)
