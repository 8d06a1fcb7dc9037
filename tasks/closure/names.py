"""Finds header names along one compile's search path."""

from __future__ import annotations

from collections.abc import Sequence

from tasks.closure.directives import Directive
from tasks.closure.disk import ANY, Disk

__all__ = ["Search"]


class Search:
    """One compile's search path.

    GCC's order ("Search Path"): a quoted name is tried in the folder of the file that includes it,
    then along `-iquote`; then both forms go along `-I`, `-isystem` and `-idirafter`, and last along
    the compiler's own folders. Of a folder named twice the first counts, but one that is a system
    folder too counts only there. The order of the compiler's own folders is not known here, nor
    whether nvcc puts some in front of `-isystem`: all that they hold counts.
    """

    def __init__(self, disk: Disk, quote: tuple[str, ...], angle: tuple[str, ...], system: tuple[str, ...],
                 own_to_compiler: tuple[str, ...]) -> None:
        self._disk = disk
        self._compiler = own_to_compiler
        late = {self._folder_id(folder) for folder in (*system, *own_to_compiler)}
        user = angle[:len(angle) - len(system)]
        self._quote = tuple(folder for folder in quote if self._folder_id(folder) not in late)
        self._angle = (*(folder for folder in user if self._folder_id(folder) not in late), *system)
        self._known: dict[tuple[bool, str], tuple[str, ...]] = {}
        self._holders: dict[tuple[str, ...], dict[str, list[str]] | None] = {}

    def _folder_id(self, folder: str) -> tuple[int, int] | str:
        self._disk.listing(folder)
        stamp = self._disk.folders.get(folder)
        return folder if stamp is None else (stamp.device, stamp.inode)

    def find(self, directive: Directive, folder: str) -> tuple[str, ...]:
        """The files that a directive in `folder` can open; `folder` is empty where there is none."""
        if ANY in directive.name or directive.next:
            return self._every(directive, folder)
        quoted = directive.form == '"'
        if directive.name.startswith("/"):
            found = self._disk.absolute(directive.name)
            return (found,) if found else ()
        if quoted and folder and (here := self._disk.find(folder, directive.name)):
            return (here,)
        key = (quoted, directive.name)
        if key not in self._known:
            self._known[key] = self._first(directive.name, quoted)
        return self._known[key]

    def _first(self, name: str, quoted: bool) -> tuple[str, ...]:
        find = self._disk.find
        quote = self._candidates(self._quote, name) if quoted and self._quote else ()
        first = next((found for folder in (*quote, *self._candidates(self._angle, name))
                      if (found := find(folder, name))), None)
        compilers = [found for folder in self._candidates(self._compiler, name) if (found := find(folder, name))]
        return tuple(dict.fromkeys([first, *compilers] if first else compilers))

    def _candidates(self, folders: tuple[str, ...], name: str) -> Sequence[str]:
        """Those of `folders`, in order, in which the first part of `name` lies: mostly one of dozens."""
        part = name.partition("/")[0]
        if part in ("", ".", ".."):
            return folders
        if folders not in self._holders:
            self._holders[folders] = self._disk.holders(folders)
        self._disk.asked.add(part)
        holders = self._holders[folders]
        return holders.get(part, ()) if holders is not None else folders

    def _every(self, directive: Directive, folder: str) -> tuple[str, ...]:
        """Every match: `#include_next` starts somewhere along the path, an unknown text can be any of them."""
        if directive.name.startswith("/"):
            return tuple(self._disk.matching("/", directive.name[1:]))
        folders = (*self._angle, *self._compiler)
        if directive.form == '"':
            folders = (*((folder,) if folder else ()), *self._quote, *folders)
        return tuple(dict.fromkeys(found for place in folders for found in self._disk.matching(place, directive.name)))
