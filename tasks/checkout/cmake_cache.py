"""Reads `CMakeCache.txt` and the compiler facts that CMake keeps beside it. Runs nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.reading import read_text

__all__ = ["CMakeCache", "compiler_facts", "read_cache"]

_ENTRY = re.compile(r'^(?:"(?P<quoted>[^"]+)"|(?P<plain>[^#/:=\s][^:=]*)):(?P<type>[A-Z]+)=(?P<value>.*)$', re.M)
_SET = re.compile(r'^set\((\w+) "?(.*?)"?\)$', re.M)

# What CMake itself takes for false (if() in its manual).
_FALSE = frozenset(("", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"))


class CMakeCache(NamedTuple):
    """Entries of one `CMakeCache.txt` by name."""

    path: Path
    entries: dict[str, str]

    def get(self, name: str, default: str = "") -> str:
        """The entry's value as text; `default` where it is missing."""
        return self.entries.get(name, default)

    def truth(self, name: str, default: bool = False) -> bool:
        """The entry's value as CMake's `if()` would see it."""
        value = self.entries.get(name)
        if value is None:
            return default
        return value.upper() not in _FALSE and not value.endswith("-NOTFOUND")

    @property
    def home(self) -> Path:
        """CMake's source directory (`<ort_root>/cmake`)."""
        return Path(self.get("CMAKE_HOME_DIRECTORY"))

    @property
    def made_in(self) -> Path:
        """The folder that the cache was made in: another one after the build directory was copied or moved."""
        return Path(self.get("CMAKE_CACHEFILE_DIR"))

    @property
    def generator(self) -> str:
        """CMake's name of the generator, such as ``Unix Makefiles``."""
        return self.get("CMAKE_GENERATOR")


def _value(text: str) -> str:
    """CMake puts a value in apostrophes where blanks at its ends count; others do not count."""
    text = text.rstrip("\r\t ")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def read_cache(path: Path) -> CMakeCache:
    """Parse a `CMakeCache.txt`. Raises :class:`OSError` where it cannot be read."""
    text = read_text(path)
    entries = {m["quoted"] or m["plain"]: _value(m["value"]) for m in _ENTRY.finditer(text)}
    return CMakeCache(path, entries)


def compiler_facts(build_dir: Path, language: str) -> dict[str, str]:
    """The `set()` lines of the newest `CMakeFiles/<version>/CMake<language>Compiler.cmake`; empty without one."""
    found = sorted(build_dir.glob(f"CMakeFiles/*/CMake{language}Compiler.cmake"), key=lambda p: p.stat().st_mtime_ns)
    if not found:
        return {}
    text = read_text(found[-1])
    return {m[1]: m[2] for m in _SET.finditer(text)}
