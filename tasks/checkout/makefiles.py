"""Reads the build graph that CMake's Makefile generator writes: `build.make`, `flags.make`, `link.txt`.

CMake writes one folder `CMakeFiles/<target>.dir` a target and lists them in
`CMakeFiles/TargetDirectories.txt`. Rule lines are relative to the top build directory. Only the
folders that a question leads to are parsed.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

from tasks.checkout.graph import Statement, absolute
from tasks.checkout.reading import read_text
from tasks.checkout.words import split_words

__all__ = ["MakefileGraph"]

# `out: dep` with make's escapes: a backslash before a space, a colon or a hash.
_RULE = re.compile(r"^((?:[^\s:#=\\]|\\.)(?:[^:\\=]|\\.)*?)\s*:(?!=)[ \t]*(.*)$")
_VARIABLE = re.compile(r"^([A-Za-z]\w*) =[ \t]*(.*)$", re.M)
_LINKED = re.compile(
    r"""\s-o\s+("(?:[^"\\]|\\.)*"|(?:[^\s\\]|\\.)+)"""
    r"""|^\S*\bar(?:\s+-?[qrcsTD]+)+\s+("[^"]*"|(?:[^\s\\]|\\.)+)""", re.M)
# The head of a rule that makes no object: objects lie in `CMakeFiles/<target>.dir`, below any folder.
_CUSTOM = re.compile(r"^(?![^:\n]*\.dir/)((?:[^\s:#=.\\]|\\.)(?:[^:\\=\n]|\\.)*?)\s*: ", re.M)
_READ_BY_CMAKE = re.compile(r"^set\(CMAKE_MAKEFILE_DEPENDS\n(.*?)^  \)", re.M | re.S)
_QUOTED = re.compile(r'^  "((?:[^"\\]|\\.)*)"', re.M)
_REFERENCE = re.compile(r"^\$\((\w+)\)$")


def _unescape(text: str) -> str:
    """A target or prerequisite as make reads it."""
    if "\\" not in text and "$" not in text:
        return text
    return re.sub(r"\\([ #:%\\])", r"\1", text).replace("$$", "$")


class MakefileGraph:
    """:class:`tasks.checkout.graph.BuildGraph` for `Unix Makefiles`."""

    def __init__(self, build_dir: Path, made_in: Path) -> None:
        self._build_dir = build_dir
        self._folders = self._target_folders(made_in)
        self._linked: dict[str, str] | None = None
        self._custom: dict[str, list[str]] | None = None
        self._parsed: dict[str, dict[str, Statement]] = {}

    def _target_folders(self, made_in: Path) -> list[str]:
        listing = self._build_dir / "CMakeFiles" / "TargetDirectories.txt"
        try:
            lines = read_text(listing).splitlines()
        except OSError:
            return []
        # A copied build directory still lists the folders of the original.
        return [absolute(self._build_dir, os.path.relpath(line, made_in)) for line in lines if line]

    def _link_index(self) -> dict[str, str]:
        """Linked output -> target folder, from the `link.txt` files."""
        if self._linked is None:
            self._linked = {}
            for folder in self._folders:
                try:
                    text = read_text(f"{folder}/link.txt")
                except OSError:
                    continue
                if match := _LINKED.search(text):
                    name = split_words(match[1] or match[2])[0]
                    # link.txt is run in the binary folder of its CMakeLists.txt: two above CMakeFiles/<target>.dir.
                    self._linked[absolute(Path(folder).parent.parent, name)] = folder
        return self._linked

    def outputs_named(self, *names: str) -> list[str]:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        found = [output for output in self._link_index() if os.path.basename(output) in names]
        return sorted(found, key=lambda output: (output.count("/"), output))

    def statement(self, output: str) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        folder = self._folder_of(output)
        if folder is None:
            return None
        if folder not in self._parsed:
            self._parsed[folder] = self._parse(folder)
        return self._parsed[folder].get(output)

    def rule(self, output: str) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        if (statement := self.statement(output)) is not None:
            return statement
        for folder in self._custom_rules().get(output, ()):
            if folder not in self._parsed:
                self._parsed[folder] = self._parse(folder)
            if (statement := self._parsed[folder].get(output)) is not None and statement.inputs:
                return statement
        return None

    def _custom_rules(self) -> dict[str, list[str]]:
        """Output of a custom command -> folders of the targets that have its rule."""
        if self._custom is None:
            self._custom = defaultdict(list)
            for folder in self._folders:
                try:
                    text = read_text(f"{folder}/build.make")
                except OSError:
                    continue
                for head in dict.fromkeys(_CUSTOM.findall(text)):
                    self._custom[absolute(self._build_dir, _unescape(head))].append(folder)
        return self._custom

    def configuring(self) -> Statement | None:
        """See :class:`tasks.checkout.graph.BuildGraph`."""
        try:
            text = read_text(self._build_dir / "CMakeFiles" / "Makefile.cmake")
            # Without this rule the list is of an earlier run: CMAKE_SUPPRESS_REGENERATION came later.
            if " --check-build-system " not in read_text(self._build_dir / "Makefile"):
                return None
        except OSError:
            return None
        match = _READ_BY_CMAKE.search(text)
        if match is None:
            return None
        inputs = (absolute(self._build_dir, re.sub(r"\\(.)", r"\1", path)) for path in _QUOTED.findall(match[1]))
        return Statement(str(self._build_dir / "Makefile"), tuple(inputs), (), str(self._build_dir), "")

    def _folder_of(self, output: str) -> str | None:
        marker = output.find(".dir/")
        if marker >= 0 and "/CMakeFiles/" in output[:marker]:
            return output[: marker + len(".dir")]
        return self._link_index().get(output)

    def _parse(self, folder: str) -> dict[str, Statement]:
        try:
            text = read_text(f"{folder}/build.make")
        except OSError:
            return {}
        variables = self._variables(Path(folder) / "flags.make")
        inputs: dict[str, list[str]] = defaultdict(list)
        recipes: dict[str, list[str]] = {}
        current = ""
        for line in text.splitlines():
            if line.startswith("\t"):
                # `@` lines only print progress.
                if current and not line.startswith("\t@"):
                    recipes.setdefault(current, []).append(line[1:])
            elif match := _RULE.match(line):
                current = absolute(self._build_dir, _unescape(match[1]))
                if match[2]:
                    inputs[current].append(absolute(self._build_dir, _unescape(match[2])))
            else:
                current = ""
        target = Path(folder).name.removesuffix(".dir")
        statements = {}
        for output in inputs:
            workdir, command = self._command(recipes.get(output, ()), variables)
            statements[output] = Statement(output, tuple(inputs[output]), command, workdir, target)
        return statements

    def _variables(self, path: Path) -> dict[str, tuple[str, ...]]:
        try:
            text = read_text(path)
        except OSError:
            return {}
        return {m[1]: split_words(m[2].replace("$$", "$").replace("\\#", "#")) for m in _VARIABLE.finditer(text)}

    def _command(self, recipe: tuple[str, ...] | list[str],
                 variables: dict[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
        """Working directory and words of the recipe's last line that runs something."""
        if not recipe:
            return str(self._build_dir), ()
        words: list[str] = []
        # Only the text between the variables is this statement's own; they are split once a target.
        for word in split_words(recipe[-1].replace("$$", "$")):
            reference = _REFERENCE.match(word)
            words.extend(variables.get(reference[1], ()) if reference else (word,))
        workdir = str(self._build_dir)
        if len(words) > 3 and words[0] == "cd" and words[2] == "&&":
            workdir, words = words[1], words[3:]
        return workdir, tuple(words)
