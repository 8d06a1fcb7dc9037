"""What one walk over a folder finds: size, ages, and everything that speaks against removing it.

Knows names and stat results, no process and no checkout.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["ASIDE_PREFIX", "BUILT", "PLAIN", "STATE", "Tally", "count", "side_of"]

# A folder on its way out is first moved into one of these, beside where it was.
ASIDE_PREFIX = ".fmha-removing-"

# What kind of place a directory is: anything in `BUILT` was written by CMake or the build, nothing in `STATE` was.
PLAIN, BUILT, STATE = range(3)

_BUILT_FOLDERS = frozenset(("CMakeFiles", "_deps", "testdata"))
_STATE_FOLDERS = frozenset((".fmha", ".cache", ".idea", ".vscode", "__pycache__", ".pytest_cache", ".mypy_cache"))
_BUILT_SUFFIXES = frozenset((
    "a", "bin", "c", "cc", "cmake", "cpp", "cu", "cubin", "cuh", "d", "dll", "exe", "fatbin", "h", "hpp", "i", "ii",
    "inc", "lds", "lib", "lo", "make", "ninja", "o", "obj", "onnx", "ort", "pb", "pc", "proto", "ptx", "py", "rsp", "s",
    "so", "stamp", "whl"))
_BUILT_NAMES = frozenset((
    "CMakeCache.txt", "Makefile", ".ninja_deps", ".ninja_log", "compile_commands.json", "install_manifest.txt",
    "requirements.txt", "VERSION_NUMBER"))
_VERSIONED = re.compile(r"\.so(\.\d+)+$")

# Kinds of files that people and profilers make, and no build of ONNX Runtime.
_PRECIOUS = frozenset((
    "csv", "diff", "doc", "docx", "ipynb", "md", "ncu-rep", "nsys-rep", "ods", "odt", "orig", "patch", "pdf", "qdrep",
    "rej", "swo", "swp", "xlsx"))


@dataclass
class Tally:
    """Sums over a folder. Sizes are bytes on disk, times are Unix seconds and 0 where there is none.

    `newest` is the newest file that a build writes, `other` the newest of all others. `doubts` maps a
    kind of finding to its first instance. `linked` holds files with several names: (device, inode) ->
    (bytes, names there are, names seen).
    """

    bytes: int = 0
    files: int = 0
    folders: int = 0
    newest: float = 0.0
    newest_path: str = ""
    other: float = 0.0
    other_path: str = ""
    doubts: dict[str, str] = field(default_factory=dict)
    linked: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    caches: list[str] = field(default_factory=list)

    def add(self, more: Tally) -> None:
        """Take in what another part of the same folder came to."""
        self.bytes += more.bytes
        self.files += more.files
        self.folders += more.folders
        if more.newest > self.newest:
            self.newest, self.newest_path = more.newest, more.newest_path
        if more.other > self.other:
            self.other, self.other_path = more.other, more.other_path
        for kind, what in more.doubts.items():
            self.doubts.setdefault(kind, what)
        for inode, (size, names, seen) in more.linked.items():
            known = self.linked.get(inode)
            if known is not None:
                self.bytes -= size
                seen += known[2]
            self.linked[inode] = (size, names, seen)
        self.caches += more.caches

    @property
    def gain(self) -> int:
        """Bytes that removing the folder wins: not those of files that have a name elsewhere."""
        return self.bytes - sum(size for size, names, seen in self.linked.values() if seen < names)

    @property
    def sums(self) -> tuple[int, int, int, float]:
        """What must be the same again for the folder to be the one that was judged."""
        return self.bytes, self.files, self.folders, self.newest


def side_of(parent: int, name: str) -> int:
    """The kind of the directory `name` in one of kind `parent`."""
    if parent != PLAIN:
        return parent
    return BUILT if name in _BUILT_FOLDERS else STATE if name in _STATE_FOLDERS else PLAIN


def _built(name: str, mode: int) -> bool:
    """Whether a build writes a file like this one, of none of the kinds in `_BUILT_SUFFIXES`."""
    return name in _BUILT_NAMES or mode & 0o111 != 0 or _VERSIONED.search(name) is not None


def _special(tally: Tally, top: str, path: str, mode: int) -> None:
    if stat.S_ISLNK(mode):
        target = os.path.realpath(path)
        if target != top and not target.startswith(top + "/"):
            tally.doubts.setdefault("link", f"{path} is a link that leads out, to {target}")
    else:
        tally.doubts.setdefault("special", f"{path} is a socket, pipe or device")


def count(tally: Tally, folder: str, side: int, top: str, device: int, user: int) -> list[tuple[str, int]]:
    """Add one directory's own entries to `tally`; returns its subdirectories with their kinds.

    `top` is the real path of the folder that is walked, `device` its device, `user` who should own everything.
    """
    inner: list[tuple[str, int]] = []
    tally.folders += 1
    try:
        # Names are looked up from the open directory: half the price of a lookup by path.
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        tally.doubts.setdefault("unreadable", f"{folder} cannot be read ({error.strerror})")
        return inner
    try:
        with os.scandir(opened) as entries:
            _entries(tally, inner, entries, folder, side, top, device, user)
    except FileNotFoundError:
        tally.doubts.setdefault("changing", f"{folder} changes meanwhile")
    except OSError as error:
        tally.doubts.setdefault("unreadable", f"{folder} cannot be read ({error.strerror})")
    finally:
        os.close(opened)
    return inner


def _entries(tally: Tally, inner: list[tuple[str, int]], entries: Iterator[os.DirEntry[str]], folder: str, side: int,
             top: str, device: int, user: int) -> None:
    """The loop over all files: every line in it is paid hundreds of thousands of times, every call twice that."""
    newest, other, newest_entry, other_entry = tally.newest, tally.other, None, None
    size, files = 0, 0
    plain, built_here = side == PLAIN, side != STATE
    regular, directory, built_suffixes = stat.S_IFREG, stat.S_IFDIR, _BUILT_SUFFIXES
    for entry in entries:
        found = entry.stat(follow_symlinks=False)
        mode = found.st_mode
        kind = mode & 0o170000
        if found.st_uid != user:
            tally.doubts.setdefault("owner", f"{folder}/{entry.name} belongs to another user")
        if kind == directory:
            if found.st_dev != device:
                tally.doubts.setdefault("mount", f"{folder}/{entry.name} is on another file system")
            else:
                size += found.st_blocks
                inner.append((f"{folder}/{entry.name}", side_of(side, entry.name)))
            if entry.name == ".git" and side != BUILT:
                tally.doubts.setdefault("git", f"{folder}/.git is a git repository")
            continue
        files += 1
        if found.st_nlink <= 1 or _is_new(tally, found):
            size += found.st_blocks
        if kind != regular:
            _special(tally, top, f"{folder}/{entry.name}", kind)
            continue
        built = built_here
        # Most files of a build are known by their suffix.
        if plain and entry.name.rpartition(".")[2] not in built_suffixes:
            built = _built(entry.name, mode)
            _precious(tally, folder, entry.name, folder == top)
        if built:
            if found.st_mtime > newest:
                newest, newest_entry = found.st_mtime, entry
        elif plain and found.st_mtime > other:
            other, other_entry = found.st_mtime, entry
    if newest_entry is not None:
        tally.newest, tally.newest_path = newest, f"{folder}/{newest_entry.name}"
    if other_entry is not None:
        tally.other, tally.other_path = other, f"{folder}/{other_entry.name}"
    tally.bytes += size * 512
    tally.files += files


def _is_new(tally: Tally, found: os.stat_result) -> bool:
    """Whether this is the first name of a file with several: its bytes count once."""
    inode = (found.st_dev, found.st_ino)
    known = tally.linked.get(inode)
    tally.linked[inode] = (found.st_blocks * 512, found.st_nlink, known[2] + 1 if known else 1)
    return known is None


def _precious(tally: Tally, folder: str, name: str, at_top: bool) -> None:
    if name == "CMakeCache.txt":
        if not at_top:
            tally.caches.append(f"{folder}/{name}")
    elif name.rpartition(".")[2] in _PRECIOUS or name == ".git" or name[-1] == "~":
        tally.doubts.setdefault("precious", f"{folder}/{name} was not written by a build")
