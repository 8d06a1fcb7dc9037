"""Header names on disk: which files lie under which folders, and what was asked.

Folders are listed once instead of asking for every candidate: a name that is in no listing needs no
system call. What was listed and found is kept with its stamp, so that another run can tell whether
every answer would still be the same.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from tasks.checkout.reading import Stamp, stamp_from

__all__ = ["ANY", "Disk"]

# In a name, it stands for text that is not known; no file's name holds it.
ANY = "\0"


class _Anything(frozenset[str]):
    """The listing of a folder that may be entered, but not listed: any name may be in it."""

    def __contains__(self, name: object) -> bool:
        return True


class Disk:
    """Folders and files at one moment. A file has one name here: its folder's real path and its own name.

    `folders` holds every folder that an answer depends on (None: missing), `files` every file that was
    asked for (None: listed, but no regular file), `asked` every name that was looked for in a
    listing, `whole` the folders of which every name counts.
    """

    def __init__(self) -> None:
        self.began_ns = time.time_ns()
        self.folders: dict[str, Stamp | None] = {}
        self.files: dict[str, Stamp | None] = {}
        self.asked: set[str] = set()
        self.whole: set[str] = set()
        self._listings: dict[str, frozenset[str] | None] = {}
        self._below: dict[tuple[str, str], str | None] = {}
        self._real: dict[str, str] = {}
        self._found: dict[tuple[str, str], str | None] = {}

    def listing(self, folder: str) -> frozenset[str] | None:
        """The names in a folder; None where it is missing."""
        if folder not in self._listings:
            self._listings[folder] = self._list(folder)
        return self._listings[folder]

    def _list(self, folder: str) -> frozenset[str] | None:
        try:
            found = os.stat(folder)
            self.folders[folder] = stamp_from(found)
            return frozenset(os.listdir(folder)) if stat.S_ISDIR(found.st_mode) else None
        except PermissionError:
            return _Anything()
        except (OSError, ValueError):
            self.folders[folder] = None
            return None

    def holders(self, folders: Iterable[str]) -> dict[str, list[str]] | None:
        """For each name the folders that hold it, in order; None where one of them cannot be listed."""
        found: dict[str, list[str]] = {}
        for folder in folders:
            names = self.listing(folder)
            if isinstance(names, _Anything):
                return None
            for name in names or ():
                found.setdefault(name, []).append(folder)
        return found

    def telling(self, folder: str) -> str | None:
        """The names of a listing that an answer can depend on, as one text; None where there is no listing."""
        names = self.listing(folder)
        if names is None or isinstance(names, _Anything):
            return None
        # No name holds a slash.
        return "/".join(["", *sorted(names)] if folder in self.whole else sorted(names & self.asked))

    def real(self, folder: str) -> str:
        """The folder's path with links resolved."""
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return self._real[folder]

    def below(self, folder: str, name: str) -> str | None:
        """The folder `name` (with its slashes) under `folder`; None where it is missing for certain."""
        key = (folder, name)
        if key not in self._below:
            path: str | None = folder
            for part in name.split("/"):
                names = self.listing(path) if path is not None else None
                self.asked.add(part)
                if part in ("", "."):
                    continue
                # `..` leaves a linked folder for the folder that its target lies in, as the kernel has it.
                path = f"{path}/{part}" if names is not None and (part == ".." or part in names) else None
            self._below[key] = path
        return self._below[key]

    def file(self, path: str) -> bool:
        """Whether `path` is a regular file (or a link to one)."""
        if path not in self.files:
            try:
                found = os.stat(path)
                self.files[path] = stamp_from(found) if stat.S_ISREG(found.st_mode) else None
            except (OSError, ValueError):
                self.files[path] = None
        return self.files[path] is not None

    def find(self, folder: str, name: str) -> str | None:
        """The file `name` (with its slashes) under `folder`, by its one name."""
        key = (folder, name)
        if key not in self._found:
            self._found[key] = self._find(folder, name)
        return self._found[key]

    def _find(self, folder: str, name: str) -> str | None:
        head, _, tail = name.rpartition("/")
        self.asked.add(tail)
        inner = self.below(folder, head) if head else folder
        names = self.listing(inner) if inner is not None else None
        if inner is None or names is None or tail not in names:
            return None
        path = f"{self.real(inner).rstrip('/')}/{tail}"
        return path if self.file(path) else None

    def absolute(self, path: str) -> str | None:
        """The file at an absolute path, by its one name."""
        head, _, tail = path.rpartition("/")
        return self.find(head or "/", tail) if tail else None

    def matching(self, folder: str, name: str) -> Iterator[str]:
        """The files under `folder` whose name fits `name`, in which :data:`ANY` stands for any text."""
        head, _, rest = name.partition("/")
        pattern = re.compile(".*".join(map(re.escape, head.split(ANY))), re.S)
        names = [head]
        if ANY in head:
            self.whole.add(folder)
            names = sorted(found for found in self.listing(folder) or () if pattern.fullmatch(found))
        for found in names:
            if not rest:
                path = self.find(folder, found)
                if path is not None:
                    yield path
            elif (inner := self.below(folder, found)) is not None:
                yield from self.matching(inner, rest)
