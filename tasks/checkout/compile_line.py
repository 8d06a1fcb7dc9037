"""What a compile line says about the headers that it can reach, for nvcc, g++ and clang++.

The words of nvcc are those of its manual (`--include-path`, `--system-include`, `--pre-include`,
`--options-file`, `-Xcompiler`); the order of the search path is GCC's ("Options for Directory
Search"): `-iquote`, `-I`, `CPATH`, `-isystem`, `CPLUS_INCLUDE_PATH`, `-idirafter`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.checkout.words import split_words

__all__ = ["COMPILER_VARIABLES", "CompileLine", "SearchPath", "expand_response_files", "read_compile_line"]

# What changes a compile and stands in no build file.
COMPILER_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")

_KINDS = {
    "-I": "include", "--include-path": "include", "-include-path": "include",
    "-isystem": "system", "--system-include": "system", "-system-include": "system",
    "-iquote": "quote",
    "-idirafter": "after",
    "-include": "forced", "--include": "forced", "--pre-include": "forced", "-imacros": "forced",
    "-D": "define", "--define-macro": "define",
    "-Xcompiler": "host", "--compiler-options": "host",
}
# Longest first: `-include` is no `-I` with a value, and `-isystem/x` needs its whole name.
_GLUED = sorted((option for option in _KINDS), key=len, reverse=True)


@dataclass(frozen=True)
class SearchPath:
    """Where a compile looks for headers, in order. Folders are absolute, as written (links kept)."""

    quote: tuple[str, ...]
    angle: tuple[str, ...]
    forced: tuple[str, ...]
    defines: tuple[str, ...]


@dataclass(frozen=True)
class CompileLine:
    """One unit's compile: its words with response files expanded, and where it runs."""

    words: tuple[str, ...]
    workdir: str
    search: SearchPath

    @property
    def language(self) -> str:
        """``CUDA`` where nvcc or `-x cu` compiles it, else ``CXX``."""
        words = self.words
        explicit = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "-x"), "")
        return "CUDA" if explicit == "cu" or any(Path(word).name == "nvcc" for word in words[:8]) else "CXX"

    @property
    def compiler(self) -> str:
        """The compiler as written: the word in front of the first option, after launchers and their variables."""
        first_option = next((i for i, word in enumerate(self.words) if word.startswith("-") and i > 0), 1)
        candidates = [word for word in self.words[:first_option] if "=" not in word]
        return candidates[-1] if candidates else ""


def expand_response_files(words: tuple[str, ...], workdir: str, depth: int = 8) -> Iterator[str]:
    """The words with `@FILE` and nvcc's `--options-file FILE` replaced by what the files hold."""
    waiting = iter(words)
    for word in waiting:
        name = ""
        if word in ("--options-file", "-optf"):
            name = next(waiting, "")
        elif word.startswith("--options-file="):
            name = word.partition("=")[2]
        elif word.startswith("@") and len(word) > 1:
            name = word[1:]
        if not name or depth == 0:
            yield word
            continue
        try:
            text = Path(workdir, name).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            yield word  # a path that begins with `@`, or a file that the build writes later
            continue
        yield from expand_response_files(split_words(text.replace("$$", "$")), workdir, depth - 1)


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(kind, value) of every option in `_KINDS`, whether its value is glued, after `=` or the next word."""
    waiting = iter(words)
    for word in waiting:
        if not word.startswith("-"):
            continue
        if word in _KINDS:
            kind, value = _KINDS[word], next(waiting, "")
        else:
            option = next((o for o in _GLUED if word.startswith(o)), None)
            if option is None or (len(option) > 2 and option.startswith("--") and word[len(option)] != "="):
                continue
            kind, value = _KINDS[option], word[len(option):].removeprefix("=")
        if kind == "host":
            yield from _options(tuple(value.split(",")))
        else:
            yield kind, value


def _folders(variable: str, environ: Mapping[str, str], workdir: str) -> list[str]:
    """GCC: an empty element means the current folder."""
    value = environ.get(variable)
    return [os.path.join(workdir, part or ".") for part in value.split(":")] if value else []


def _search_path(words: tuple[str, ...], workdir: str, environ: Mapping[str, str]) -> SearchPath:
    found: dict[str, list[str]] = {"include": [], "system": [], "quote": [], "after": [], "forced": [], "define": []}
    for kind, value in _options(words):
        if value:
            found[kind].append(value if kind == "define" else os.path.join(workdir, value))
    # GCC drops a `-I` folder that is a `-isystem` folder too.
    system = found["system"]
    include = [folder for folder in found["include"] if folder not in system]
    angle = (include + _folders("CPATH", environ, workdir) + system
             + _folders("CPLUS_INCLUDE_PATH", environ, workdir) + found["after"])
    return SearchPath(tuple(found["quote"]), tuple(dict.fromkeys(angle)), tuple(found["forced"]),
                      tuple(found["define"]))


def read_compile_line(command: tuple[str, ...], workdir: str, environ: Mapping[str, str]) -> CompileLine:
    """Expand and read one compile command; `environ` is the environment that the build will see."""
    words = tuple(expand_response_files(command, workdir))
    prepended = split_words(environ.get("NVCC_PREPEND_FLAGS", ""))
    appended = split_words(environ.get("NVCC_APPEND_FLAGS", ""))
    return CompileLine(words, workdir, _search_path((*prepended, *words, *appended), workdir, environ))
