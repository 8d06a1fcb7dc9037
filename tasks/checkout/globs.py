"""Reads `CMakeFiles/VerifyGlobs.cmake`: what `file(GLOB ... CONFIGURE_DEPENDS)` found when CMake ran last.

Every build with such a glob begins with this script, which runs CMake again where a glob finds
other files by now. Here the globs are asked without running anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.reading import read_text

__all__ = ["GLOBS_SCRIPT", "FileGlob", "read_globs"]

GLOBS_SCRIPT = "CMakeFiles/VerifyGlobs.cmake"

_CHECK = re.compile(r'^file\((GLOB|GLOB_RECURSE) NEW_GLOB (FOLLOW_SYMLINKS )?LIST_DIRECTORIES (true|false)'
                    r'(?: RELATIVE "((?:[^"\\]|\\.)*)")? "((?:[^"\\]|\\.)*)"\)\nset\(OLD_GLOB\n((?:  ".*"\n)*)', re.M)
_MAGIC = re.compile(r"[*?[]")
_ENTRY = re.compile(r'^  "(.*)"$', re.M)


class FileGlob(NamedTuple):
    """One glob: an absolute pattern, whether its last part is looked for at any depth, and the files found then."""

    pattern: str
    recursive: bool
    folders: bool
    links: bool
    found: tuple[str, ...]

    def changes(self) -> list[str]:
        """Files that it finds now and did not then, or the other way round."""
        return sorted(set(self._find()).symmetric_difference(self.found))

    def _find(self) -> Iterator[str]:
        if not self.recursive:
            yield from (path for path in _matching(self.pattern) if self.folders or not os.path.isdir(path))
            return
        folder, name = os.path.split(self.pattern)
        for start in _matching(folder):
            yield from self._descend(start, name, frozenset())

    def _descend(self, folder: str, name: str, above: frozenset[str]) -> Iterator[str]:
        """As CMake does: a link to a folder that is not followed is a file, one below itself is not entered, and the
        folders that are entered are listed whatever their name."""
        with suppress(OSError):
            for entry in os.scandir(folder):
                if not entry.is_dir() or (entry.is_symlink() and not self.links):
                    if fnmatchcase(entry.name, name):
                        yield entry.path
                    continue
                links = above | ({os.path.realpath(entry.path)} if entry.is_symlink() else set())
                if entry.is_symlink() and links == above:
                    continue
                if self.folders:
                    yield entry.path
                yield from self._descend(entry.path, name, links)

    def below(self, folders: Collection[str]) -> bool:
        """Whether it may find files in one of these folders (real paths)."""
        # The folder that the pattern names without a wildcard; CMake may know the checkout through a link.
        named = os.path.dirname(_MAGIC.split(self.pattern)[0] + "_")
        start = os.path.realpath(named)
        if self.recursive or named != os.path.dirname(self.pattern):
            return any(f"{folder}/".startswith(f"{start}/") for folder in folders)
        return start in folders


def read_globs(build_dir: Path) -> list[FileGlob]:
    """The globs that every build of this directory checks; none where CMake wrote no such script."""
    try:
        text = read_text(build_dir / GLOBS_SCRIPT)
    except OSError:
        return []
    found = []
    for match in _CHECK.finditer(text):
        kind, links, folders, base, pattern, entries = match.groups()
        files = (os.path.normpath(os.path.join(_plain(base or ""), _plain(entry)))
                 for entry in _ENTRY.findall(entries))
        found.append(FileGlob(os.path.normpath(_plain(pattern)), kind == "GLOB_RECURSE", folders == "true",
                              bool(links), tuple(files)))
    return found


def _matching(pattern: str) -> Iterator[str]:
    """What a pattern matches; unlike a shell's, CMake's `*` finds names that begin with a dot too."""
    folder, name = os.path.split(pattern)
    if not _MAGIC.search(pattern):
        if os.path.exists(pattern):
            yield pattern
        return
    for start in _matching(folder):
        with suppress(OSError):
            yield from (os.path.join(start, found) for found in os.listdir(start) if fnmatchcase(found, name))


def _plain(text: str) -> str:
    """A quoted argument of CMake without its escapes."""
    return re.sub(r"\\(.)", r"\1", text)
