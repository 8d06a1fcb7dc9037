"""Edits of sources as people make them: each takes paths and contents, and knows nothing of builds."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from tests.fuzz.sources import FOLDER
from tests.fuzz.world import POOL, World, record

__all__ = ["EXTRAS", "MOMENTS", "SHADOW", "STYLES", "Editor", "set_time"]

EXTRAS = ("extra_0", "extra_1", "extra_2")
STYLES = ("plain", "angled", "near", "macro", "asked")
# Times that tools set: an archive's, a server's whose clock is ahead, and a touch.
MOMENTS = ("2001", "ahead", "now")
# A header that, where it is there, is found before the one in `_deps`.
SHADOW = "onnxruntime/cutlass/fast_math.h"
_HISTORY = 6
_REVISION = re.compile(r"(_REVISION) (\d+)$", re.M)


class Editor:
    """Edits files of a world and remembers their contents."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._revision = 100
        self._history: dict[Path, list[str]] = {}
        self._built: dict[Path, str] = {}

    def _write(self, path: Path, text: str) -> None:
        past = self._history.setdefault(path, [])
        if path.exists():
            past.append(path.read_text())
            del past[:-_HISTORY]
        path.write_text(text)

    def next_revision(self, text: str) -> str:
        """The text with a revision that no text had; as long as before, since all have three digits."""
        self._revision += 1
        return _REVISION.sub(rf"\1 {self._revision}", text, count=1)

    # -- single files ----------------------------------------------------------------------------------------

    def edit(self, path: Path) -> None:
        self._write(path, self.next_revision(path.read_text()))

    def comment(self, path: Path) -> None:
        self._revision += 1
        self._write(path, f"{path.read_text()}// {self._revision}\n")

    def disguised(self, path: Path) -> None:
        """Another content with the size and the times of the one before."""
        stat = path.stat()
        self._write(path, self.next_revision(path.read_text()))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def break_it(self, path: Path) -> None:
        self._write(path, path.read_text() + "#error broken\n")

    def revert(self, path: Path, back: int) -> None:
        if past := self._history.get(path):
            self._write(path, past[-1 - back % len(past)])

    def replace_by_link(self, path: Path) -> None:
        """The file becomes a link to one with its content in another folder."""
        if not path.is_symlink():
            self._revision += 1
            folder = self._world.root / "variants"
            folder.mkdir(exist_ok=True)
            real = folder / f"{self._revision}-{path.name}"
            path.rename(real)
            path.symlink_to(real)

    # -- the set of headers ----------------------------------------------------------------------------------

    def extra(self, name: str) -> Path:
        return self._world.root / FOLDER / f"{name}.h"

    def existing(self) -> list[Path]:
        """All files that may be edited and are there."""
        paths = [self._world.path(name) for name in POOL] + [self.extra(name) for name in EXTRAS]
        return [path for path in (*paths, self._world.root / SHADOW) if path.is_file()]

    def add(self, name: str) -> None:
        """A new watched header, which nobody includes yet (or includes already, in vain)."""
        self._write(self.extra(name), self.next_revision(f"#pragma once\n{record(name)}"))

    def include(self, name: str, includer: Path, style: str) -> None:
        """The includer includes the header, at its end."""
        path = f"contrib_ops/cuda/bert/cutlass_fmha/{name}.h"
        text = {
            "plain": f'#include "{path}"\n',
            "angled": f"#include <{path}>\n",
            "near": f'#include "{name}.h"\n' if includer.parent == self._world.root / FOLDER
                    and not includer.is_symlink() else f'#include "{path}"\n',
            "macro": f'#define {name.upper()}_HEADER "{path}"\n#include {name.upper()}_HEADER\n',
            "asked": f'#if __has_include("{path}")\n#include "{path}"\n#endif\n',
        }[style]
        self._write(includer, includer.read_text() + text)

    def drop_include(self, name: str, includer: Path) -> None:
        text = includer.read_text()
        text = re.sub(rf'#if __has_include\("[^"]*{name}\.h"\)\n#include.*\n#endif\n', "", text)
        text = re.sub(rf'#define {name.upper()}_HEADER .*\n#include {name.upper()}_HEADER\n', "", text)
        new = re.sub(rf'#include [<"][^">]*{name}\.h[">]\n', "", text)
        if new != includer.read_text():
            self._write(includer, new)

    def delete(self, name: str, with_includes: bool) -> None:
        path = self.extra(name)
        if path.exists():
            self._write(path, path.read_text())
            path.unlink()
        if with_includes:
            for includer in self.existing():
                self.drop_include(name, includer)

    def rename(self, old: str, new: str) -> None:
        """As an editor renames a header: the file, and its name wherever it stands."""
        if self.extra(old).exists() and not self.extra(new).exists():
            self.extra(old).rename(self.extra(new))
            for path in self.existing():
                text = path.read_text()
                renamed = re.sub(rf"\b{old}\b", new, text)
                renamed = re.sub(rf"\b({old.upper()}|MINIORT_{old.upper()})_", lambda match: match[0].replace(
                    old.upper(), new.upper()), renamed)
                if renamed != text:
                    self._write(path, renamed)

    def shadow(self) -> None:
        """A header appears earlier on the include path, or is gone again."""
        path = self._world.root / SHADOW
        if path.exists():
            path.unlink()
            return
        path.parent.mkdir(exist_ok=True)
        original = self._world.build_dir / "_deps/cutlass-src/include/cutlass/fast_math.h"
        self._write(path, self.next_revision(original.read_text()))

    # -- all at once -----------------------------------------------------------------------------------------

    def remember_built(self) -> None:
        """The sources as they are now were called fresh."""
        self._built = {path: path.read_text() for path in self.existing()}

    def restore_built(self) -> None:
        """Back to what was called fresh last, as `git checkout` goes back to a branch."""
        if self._built:
            for path in self.existing():
                if path not in self._built:
                    path.unlink()
            for path, text in self._built.items():
                if not path.exists() or path.read_text() != text:
                    self._write(path, text)

    def mend(self) -> None:
        """Take out what does not compile: errors, and includes of headers that are not there."""
        for path in self.existing():
            if "#error" in path.read_text():
                self._write(path, path.read_text().replace("#error broken\n", ""))
        for name in EXTRAS:
            if not self.extra(name).exists():
                for path in self.existing():
                    self.drop_include(name, path)


def set_time(path: Path, moment: str) -> None:
    """Set the modification time."""
    when = {"2001": 1e9, "ahead": time.time() + 86400, "now": time.time()}[moment]
    os.utime(path, (when, when))
