"""What a compile line says about the headers that it can reach, for nvcc, g++ and clang++.

The words of nvcc are those of its manual (`--include-path`, `--system-include`, `--pre-include`,
`--options-file`, `-Xcompiler`); the order of the search path is GCC's ("Options for Directory
Search"): `-iquote`, `-I`, `CPATH`, `-isystem`, `CPLUS_INCLUDE_PATH`, `-idirafter`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from tasks.checkout.reading import present, read_text
from tasks.checkout.words import split_words

__all__ = ["COMPILER_VARIABLES", "CompileLine", "SearchPath", "expand_response_files", "read_compile_line"]

# Folders that nvcc takes from the environment, behind those of its line: its nvcc.profile only adds to them.
_PROFILE_VARIABLES = ("INCLUDES", "SYSTEM_INCLUDES")
# What changes a compile and stands in no build file: for nvcc, for its own tools, for GCC.
COMPILER_VARIABLES = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", *_PROFILE_VARIABLES,
                      "CUDAFE_FLAGS", "NVVM_FLAGS", "PTXAS_FLAGS", "OCG_FLAGS", "CPATH", "C_INCLUDE_PATH",
                      "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX")

_KINDS = {
    "-I": "include", "--include-path": "include", "-include-path": "include", "--include-directory": "include",
    "-isystem": "system", "--system-include": "system", "-system-include": "system",
    "-iquote": "quote",
    "-idirafter": "after", "--include-directory-after": "after",
    "-include": "forced", "--include": "forced", "--pre-include": "forced", "-imacros": "forced",
    "--imacros": "forced",
    "-D": "define", "--define-macro": "define",
    "-ccbin": "ccbin", "--compiler-bindir": "ccbin",
    "--threads": "threads", "-threads": "threads", "-t": "threads",
    "-Xcompiler": "host", "--compiler-options": "host", "-Xpreprocessor": "late", "-Wp,": "late",
}
# Longest first: `-include` is no `-I` with a value, and `-isystem/x` needs its whole name.
_GLUED = sorted((option for option in _KINDS), key=len, reverse=True)


class SearchPath(NamedTuple):
    """Where a compile looks for headers, in order. Folders are absolute, as written (links kept).

    `system` is the part at the end of `angle` that GCC takes for system folders. A name in `forced`
    that is no absolute path is none of the working directory: it is looked for along the path.
    """

    quote: tuple[str, ...]
    angle: tuple[str, ...]
    forced: tuple[str, ...]
    defines: tuple[str, ...]
    system: tuple[str, ...] = ()


class CompileLine(NamedTuple):
    """One unit's compile: its words with response files expanded, and where it runs.

    `ccbin` is nvcc's host compiler, or the folder that it lies in, as `-ccbin` or `NVCC_CCBIN` names it;
    empty where neither does. `threads` is how many compiles nvcc runs at once for it, 0 for one on each core.
    """

    words: tuple[str, ...]
    workdir: str
    search: SearchPath
    ccbin: str = ""
    threads: int = 1

    @property
    def language(self) -> str:
        """``CUDA`` where nvcc or `-x cu` compiles it, else ``CXX``."""
        return _language(self.words)

    @property
    def compiler(self) -> str:
        """The compiler as written: the word in front of the first option, after launchers and their variables."""
        first_option = next((i for i, word in enumerate(self.words) if word.startswith("-") and i > 0), 1)
        candidates = [word for word in self.words[:first_option] if "=" not in word]
        return candidates[-1] if candidates else ""


def _language(words: tuple[str, ...]) -> str:
    explicit = next((words[i + 1] for i, word in enumerate(words[:-1]) if word == "-x"), "")
    return "CUDA" if explicit == "cu" or any(word.rpartition("/")[2] == "nvcc" for word in words[:8]) else "CXX"


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
            text = read_text(os.path.join(workdir, name))
        except OSError:
            yield word  # a path that begins with `@`, or a file that the build writes later
            continue
        yield from expand_response_files(split_words(text), workdir, depth - 1)


@lru_cache(maxsize=8192)
def _option(word: str) -> tuple[str, str | None] | None:
    """(kind, value) of one option; no value where it is the next word."""
    if word in _KINDS:
        return _KINDS[word], None
    option = next((o for o in _GLUED if word.startswith(o)), None)
    if option is None or (option.startswith("--") and word[len(option)] != "="):
        return None
    return _KINDS[option], word[len(option):].removeprefix("=")


def _options(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """(kind, value) of every option in `_KINDS`, whether its value is glued, after `=` or the next word."""
    found = []
    waiting = iter(words)
    for word in waiting:
        if word[:1] == "-" and (option := _option(word)) is not None:
            kind, value = option
            found.append((kind, next(waiting, "") if value is None else value))
    return found


def _all_options(words: tuple[str, ...]) -> list[tuple[str, str]]:
    """The options with those for the host compiler where nvcc, and for the preprocessor where GCC puts them.

    nvcc hands `-Xcompiler` on in front of its own options, unquoted: the shell splits at blanks. An
    option and its value may come in two of them.
    """
    options = _options(words)
    host = [piece for kind, value in options if kind == "host" for part in value.split(",")
            for piece in split_words(part)]
    late = [piece for kind, value in options if kind == "late" for piece in value.split(",")]
    return [*_options(tuple(host)), *options, *_options(tuple(late))]


def _folders(variable: str, environ: Mapping[str, str], workdir: str) -> list[str]:
    """GCC: an empty element means the current folder."""
    value = environ.get(variable)
    return [os.path.join(workdir, part or ".") for part in value.split(":")] if value else []


def _search_path(options: list[tuple[str, str]], workdir: str, environ: Mapping[str, str], cuda: bool) -> SearchPath:
    found: dict[str, list[str]] = {kind: [] for kind in _KINDS.values()}
    for kind, value in options:
        # nvcc takes a list, whatever the names of the folders.
        found[kind] += [part for part in (value.split(",") if cuda and kind != "host" else [value]) if part]
        if cuda and kind == "define" and "," in value:
            found[kind].append(value)
    folders = {kind: [os.path.join(workdir, folder) for folder in found[kind]]
               for kind in ("include", "system", "quote", "after")}
    system = tuple(dict.fromkeys([*folders["system"], *_folders("CPLUS_INCLUDE_PATH", environ, workdir),
                                  *folders["after"]]))
    # GCC drops a `-I` folder that is a system folder too.
    user = [folder for folder in (*folders["include"], *_folders("CPATH", environ, workdir)) if folder not in system]
    # nvcc puts this one in front of every unit.
    forced = (*found["forced"], "cuda_runtime.h") if cuda else found["forced"]
    return SearchPath(tuple(folders["quote"]), (*dict.fromkeys(user), *system),
                      tuple(_forced(name, workdir) for name in forced), tuple(found["define"]), system)


def _forced(name: str, workdir: str) -> str:
    """A force-included file of the working directory by its path, any other by its name."""
    path = present(os.path.join(workdir, name))
    return path if os.path.isfile(path) else name


def read_compile_line(command: tuple[str, ...], workdir: str, environ: Mapping[str, str]) -> CompileLine:
    """Expand and read one compile command; `environ` is the environment that the build will see."""
    words = tuple(expand_response_files(command, workdir))
    cuda = _language(words) == "CUDA"
    prepended, *appended = (split_words(environ.get(name, "")) if cuda else ()
                            for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", *_PROFILE_VARIABLES))
    options = _all_options((*prepended, *words, *(word for added in appended for word in added)))
    search = _search_path(options, workdir, environ, cuda)
    # The last one counts, and the variable only where there is none.
    ccbin = [environ.get("NVCC_CCBIN", ""), *(value for kind, value in options if kind == "ccbin")] if cuda else [""]
    # `-t` begins other options too, of other compilers.
    threads = [1, *(int(value) for kind, value in options if kind == "threads" and value.isdecimal() and cuda)]
    return CompileLine(words, workdir, search, ccbin[-1], threads[-1])
