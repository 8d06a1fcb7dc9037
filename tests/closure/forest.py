"""A folder of sources whose closures are asked of the project and of the real compiler, side by side."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tasks.checkout.compile_line import COMPILER_VARIABLES, SearchPath, read_compile_line
from tasks.closure.catalogue import Closure
from tasks.closure.resolve import Resolver


@cache
def compiler_folders(compiler: str) -> tuple[str, ...]:
    """The compiler's own header folders, as it tells them itself."""
    flags = ["-x", "cu", "-E", "-Xcompiler", "-v"] if compiler == "nvcc" else ["-x", "c++", "-E", "-v"]
    told = subprocess.run([compiler, *flags, "/dev/null"], capture_output=True, text=True, check=True).stderr
    listed = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", told, re.S)
    assert listed is not None, told
    return tuple(dict.fromkeys(os.path.realpath(line.strip()) for line in listed[1].splitlines()))


def prerequisites(rule: str) -> list[str]:
    """The prerequisites of one rule as GCC escapes them."""
    words = re.findall(r"(?:[^\s\\]|\\.)+", rule.replace("\\\n", " "))
    words = words[1:] if words[0].endswith(":") else words[words.index(":") + 1:]
    return [re.sub(r"\\([ #\\:])", r"\1", word).replace("$$", "$") for word in words]


class Forest:
    """Sources below `root`; `a.h`, `b.h` and `c.h` lie beside the unit."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        # GCC takes headers of one content for one where `#import` or `#pragma once` is about.
        self.write({"a.h": "// a\n", "b.h": "// b\n", "c.h": "// c\n"})

    def write(self, files: Mapping[str, str | bytes]) -> Forest:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return self

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def search(self, words: tuple[str, ...], unit: str, environ: Mapping[str, str], compiler: str) -> SearchPath:
        return read_compile_line((compiler, *words, "-c", unit), str(self.root), environ).search

    def resolve(self, *words: str, unit: str = "u.cc", environ: Mapping[str, str] | None = None,
                compiler: str = "g++", system: tuple[str, ...] | None = None) -> Closure:
        """The project's closure of one compile."""
        search = self.search(words, unit, environ or {}, compiler)
        resolver = Resolver(compiler_folders(compiler) if system is None else system, (str(self.root),))
        return resolver.closure(self.root / unit, search.quote, search.angle, search.forced, search.defines,
                                search.system)

    def closure(self, *words: str, unit: str = "u.cc", environ: Mapping[str, str] | None = None,
                compiler: str = "g++") -> set[str]:
        """The project's closure, relative to the root."""
        files = self.resolve(*words, unit=unit, environ=environ, compiler=compiler).files
        return {os.path.relpath(path, self.root) for path in files if path.startswith(f"{self.root}/")}

    def listed(self, *words: str, unit: str = "u.cc", environ: Mapping[str, str] | None = None,
               compiler: str = "g++") -> set[str]:
        """What the compiler itself lists, relative to the root, without the unit."""
        clean = {name: value for name, value in os.environ.items() if name not in COMPILER_VARIABLES}
        done = subprocess.run([compiler, "-w", *words, "-M", unit], cwd=self.root, capture_output=True, text=True,
                              env={**clean, **(environ or {})}, check=False)
        assert done.returncode == 0, done.stderr
        found = set()
        for name in prerequisites(done.stdout):
            folder, tail = os.path.split(os.path.join(self.root, name))
            path = os.path.join(os.path.realpath(folder), tail)
            if path.startswith(f"{self.root}/") and path != str(self.root / unit):
                found.add(os.path.relpath(path, self.root))
        return found

    def exactly(self, text: str | bytes, *words: str, environ: Mapping[str, str] | None = None,
                compiler: str = "g++", unit: str = "u.cc") -> set[str]:
        """The closure of a unit with this text, where the compiler lists the very same; else the test fails."""
        self.write({unit: text})
        ours = self.closure(*words, unit=unit, environ=environ, compiler=compiler)
        real = self.listed(*words, unit=unit, environ=environ, compiler=compiler)
        assert ours == real
        return ours

    def at_least(self, text: str | bytes, *words: str, compiler: str = "g++", unit: str = "u.cc") -> set[str]:
        """The closure of a unit with this text, where the compiler lists nothing beyond it."""
        self.write({unit: text})
        ours = self.closure(*words, unit=unit, compiler=compiler)
        assert self.listed(*words, unit=unit, compiler=compiler) <= ours
        return ours
