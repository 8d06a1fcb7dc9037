"""Reads the build graph that CMake's Ninja generators write: `build.ninja` and the files it includes.

The syntax is the one of ninja's manual, "Ninja file reference". Only what CMake writes is needed:
rules, build statements, variables, `include` and `subninja`. Ninja itself is never run.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from tasks.checkout.graph import Statement, absolute
from tasks.checkout.reading import present, read_text
from tasks.checkout.words import split_words

__all__ = ["NinjaGraph", "split_paths", "unescape"]

_ESCAPE = re.compile(r"\$(?:([ :$])|\n[ \t]*|\{([\w.-]+)\}|([\w-]+))")
_PATH = re.compile(r"(?:[^\s$:|]|\$.)+|\|\|?@?|:", re.S)
_TARGET_DIR = re.compile(r"CMakeFiles/([^/]+)\.dir(?:/|$)")


def unescape(text: str, variables: dict[str, str]) -> str:
    """Evaluate `$`-escapes and variables as ninja does; unknown variables are empty."""
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        name = match[2] or match[3]
        return variables.get(name, "") if name else ""

    return _ESCAPE.sub(value, text)


def split_paths(text: str, variables: dict[str, str]) -> list[str]:
    """The paths (and the separators ``:``, ``|``, ``||``) of a build statement."""
    return [unescape(piece, variables) for piece in _PATH.findall(text)]


def _logical_lines(text: str) -> Iterator[str]:
    """Lines with `$`-newline continuations joined (the indentation of the next line is dropped)."""
    if "$\n" in text:
        text = re.sub(r"(?<!\$)((?:\$\$)*)\$\n[ \t]*", r"\1", text)
    yield from text.splitlines()


def _with_response_file(words: tuple[str, ...], name: str, content: tuple[str, ...]) -> Iterator[str]:
    """The words with the response file's content in its place: ninja writes it for the command and removes it."""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        if word in (f"@{name}", name, f"--options-file={name}"):
            yield from content
        elif not (word in ("--options-file", "-optf") and following == name):
            yield word


class NinjaGraph:
    """:class:`tasks.checkout.graph.BuildGraph` for `Ninja` and `Ninja Multi-Config`."""

    def __init__(self, build_dir: Path, config: str) -> None:
        self._build_dir = build_dir
        self._config = config
        self._variables: dict[str, str] = {}
        self._rules: dict[str, dict[str, str]] = {}
        self._statements: dict[str, tuple[str, dict[str, str]]] = {}
        self._made: dict[str, Statement] = {}
        top = build_dir / f"build-{config}.ninja"
        self._read(top if os.path.exists(present(top)) else build_dir / "build.ninja")

    def _read(self, path: Path) -> None:
        try:
            text = read_text(path)
        except OSError:
            return
        scope: dict[str, str] | None = None
        for line in _logical_lines(text):
            if not line or line[0] == "#":
                continue
            if line[0] == " ":
                if scope is not None:
                    # Blanks at the end count: CMake 4 writes `LAUNCHER = ccache ` before `${LAUNCHER}c++`.
                    name, _, value = line.partition("=")
                    scope[name.strip()] = value.lstrip(" ")
                continue
            scope = None
            keyword, _, rest = line.partition(" ")
            if keyword == "build":
                scope = {}
                self._add_statement(rest, scope)
            elif keyword == "rule":
                scope = self._rules.setdefault(rest.strip(), {})
            elif keyword in ("include", "subninja"):
                self._read(Path(absolute(self._build_dir, unescape(rest.strip(), self._variables))))
            elif "=" in line:
                name, _, value = line.partition("=")
                self._variables[name.strip()] = unescape(value.strip(), self._variables)

    def _add_statement(self, text: str, scope: dict[str, str]) -> None:
        # Only the outputs are cut out now; the rest is parsed when somebody asks for it.
        outputs = _PATH.finditer(text)
        for match in outputs:
            if match[0] == ":":
                return
            if not match[0].startswith("|"):
                path = unescape(match[0], self._variables)
                self._statements[absolute(self._build_dir, path)] = (text, scope)

    def outputs_named(self, *names: str) -> list[str]:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        found = [output for output in self._statements
                 if os.path.basename(output) in names and self._is_link(output)]
        return sorted(found, key=lambda output: (output.count("/"), output))

    def _is_link(self, output: str) -> bool:
        text, _ = self._statements[output]
        return "_LINKER__" in text

    def statement(self, output: str) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        if output not in self._made:
            if output not in self._statements:
                return None
            self._made[output] = self._parse(output)
        return self._made[output]

    def rule(self, output: str) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        return self.statement(output)

    def configuring(self) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        return self.statement(str(self._build_dir / "build.ninja"))

    def _parse(self, output: str) -> Statement:
        text, scope = self._statements[output]
        pieces = split_paths(text, self._variables)
        colon = pieces.index(":")
        # Implicit outputs (after `|`) are no part of `$out`.
        outputs = list(takewhile(lambda piece: not piece.startswith("|"), pieces[:colon]))
        rule, inputs = pieces[colon + 1], pieces[colon + 2:]
        # Order-only inputs (after `||`) and validations (after `|@`) do not make the output out of date.
        inputs = list(takewhile(lambda piece: piece not in ("||", "|@"), inputs))
        explicit = inputs[: inputs.index("|")] if "|" in inputs else inputs
        variables = self._variables | {name: unescape(value, self._variables) for name, value in scope.items()}
        described = self._rules.get(rule, {})
        command = self._command(described.get("command", ""), variables, explicit, outputs)
        if "rspfile" in described:
            content = split_words(unescape(described.get("rspfile_content", ""), variables))
            command = tuple(_with_response_file(command, unescape(described["rspfile"], variables), content))
        found = _TARGET_DIR.search(variables.get("OBJECT_DIR", "")) or _TARGET_DIR.search(output)
        return Statement(
            output=output,
            inputs=tuple(absolute(self._build_dir, path) for path in inputs if path != "|"),
            command=command,
            workdir=str(self._build_dir),
            target=found[1] if found else rule.partition("__")[2],
        )

    @staticmethod
    def _command(template: str, variables: dict[str, str], inputs: list[str], outputs: list[str]) -> tuple[str, ...]:
        """The rule's command, variables filled in. Each multi-word variable is split once (and cached)."""
        if any(mark in template for mark in "\"'\\"):
            quoted = {"in": shlex.join(inputs), "out": shlex.join(outputs)}
            return split_words(unescape(template, variables | quoted))
        words: list[str] = []
        for piece in template.split():
            if piece in ("$in", "${in}"):
                words.extend(inputs)
            elif piece in ("$out", "${out}"):
                words.extend(outputs)
            else:
                words.extend(split_words(unescape(piece, variables)))
        return tuple(words)
