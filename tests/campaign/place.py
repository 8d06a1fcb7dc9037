"""A checkout with its build directory and what lies beside it, and the state that every scenario starts from."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.cells import Cell
from tests.support import FMHA, Run, Tree, run

__all__ = ["Place", "Pristine"]


class Place:
    """The folder that a column works in: `ort` (the checkout, built), `beside` (headers outside of it).

    `root` and `build_dir` are what the columns are pointed at; a scenario may point them elsewhere.
    """

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.folder = folder
        self.cell = cell
        self.beside = folder / "beside"
        self.beside.mkdir(parents=True, exist_ok=True)
        self.tree = Tree(folder / "ort", cell.generator, cell.defines)
        self.point(self.tree.root, self.tree.build_dir)

    def point(self, root: Path, build_dir: Path) -> None:
        """What the columns are told to work on, and the environment of their commands."""
        self.root = root
        self.build_dir = build_dir
        self.environ: dict[str, str] = {}

    def reset(self) -> None:
        """Point the columns at the checkout again."""
        self.point(self.tree.root, self.tree.build_dir)

    def script_words(self, *options: str) -> list[str]:
        """The checkout's own build.sh."""
        return [str(self.root / "build.sh"), "--build_dir", str(self.build_dir.parent), "--config",
                self.build_dir.name, *options]

    def script(self, *options: str) -> Run:
        """Run build.sh, one compile job at a time: two cells share the machine."""
        return run(self.script_words(*options), self.root, self.environ)

    def build(self, *options: str) -> Run:
        """The plain incremental build of all targets, or of `--target`."""
        return self.script("--build", "--parallel", "1", *options)

    def configure(self) -> None:
        """Run CMake with the cell's options."""
        self.tree.configure()

    @property
    def fmha(self) -> Path:
        """The folder of the watched headers."""
        return self.root / FMHA

    @property
    def executable(self) -> Path:
        """What opens or holds the provider, and says what that was compiled from."""
        return self.build_dir / "onnxruntime_provider_test"

    @property
    def provider(self) -> Path:
        """The file that holds the device code at run time."""
        return self.executable if self.cell.static else self.build_dir / "libonnxruntime_providers_cuda.so"


def _walk(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        for name in (*files, *links):
            yield Path(at, name)


_Mark = tuple[int, ...]


def _mark(path: Path) -> _Mark:
    stat = path.lstat()
    return stat.st_ino, stat.st_mode, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


class Pristine:
    """A place as it was at one moment, put back file by file: folders stay the ones they are.

    Only files that moved since are copied, with their times, so the build tool sees what it saw then.
    """

    def __init__(self, place: Place, store: Path) -> None:
        self._place = place
        self._store = store
        shutil.rmtree(store, ignore_errors=True)
        done = run(["cp", "-a", place.folder, store], store.parent)
        assert done.status == 0, done.text
        self._marks = {path.relative_to(place.folder): _mark(path) for path in _walk(place.folder)}
        self._home = place.tree.build_dir.stat().st_ino

    def restore(self, everything: bool = False) -> bool:
        """Put the place back; `everything` where another state was laid there. False where the build folder is new."""
        folder = self._place.folder
        self._place.reset()
        same_home = self._place.tree.build_dir.exists() and self._place.tree.build_dir.stat().st_ino == self._home
        for path in [path for path in _walk(folder) if path.relative_to(folder) not in self._marks]:
            path.unlink()
        for name, mark in self._marks.items():
            path = folder / name
            if everything or not os.path.lexists(path) or _mark(path) != mark:
                self._copy(name)
        self._prune()
        time.sleep(0.02)  # an edit within a clock tick of now would bear these times
        return same_home

    def _copy(self, name: Path) -> None:
        path = self._place.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            path.unlink()
        shutil.copy2(self._store / name, path, follow_symlinks=False)
        self._marks[name] = _mark(path)

    def _prune(self) -> None:
        """Remove folders that the stored state does not have."""
        for at, _, _ in os.walk(self._place.folder, topdown=False):
            if not (self._store / Path(at).relative_to(self._place.folder)).exists():
                os.rmdir(at)
