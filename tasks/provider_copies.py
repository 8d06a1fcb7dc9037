"""Other copies of the proved provider in the build directory, such as the Python package's: are they old?

Reads only; decides no verdict.
"""

from __future__ import annotations

import filecmp
import json
import os
import shlex
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.checkout.reading import stamp_of
from tasks.evidence import STATE_NAME
from tasks.evidence.receipts import write_atomically

if TYPE_CHECKING:
    from tasks.survey import Survey

__all__ = ["old_copies"]

# Where ONNX Runtime's Python target copies it, and where its setup.py stages and packs a wheel.
_PACKAGES = ("onnxruntime/capi", "build/*/onnxruntime/capi", "build/*/wheel/onnxruntime/capi")
_WHEELS = "dist/*.whl"
# Objects, this project's own state, fetched sources: no provider is made or staged there, and they hold most files.
_SKIPPED = ("CMakeFiles", STATE_NAME, ".git", "_deps")
_BLOCK = 1 << 20


def _known(build_dir: Path, name: str) -> Iterator[Path]:
    for pattern in _PACKAGES:
        yield from build_dir.glob(f"{pattern}/{name}")


def _everywhere(build_dir: Path, name: str) -> Iterator[Path]:
    for folder, folders, files in os.walk(build_dir):
        folders[:] = [inner for inner in folders if inner not in _SKIPPED]
        if name in files:
            yield Path(folder, name)


class _Comparisons:
    """Which copies and wheels hold another provider. What did not move since is not read again."""

    def __init__(self, provider: Path, path: Path) -> None:
        self._provider = provider
        self._path = path
        self._began_ns = time.time_ns()
        self._new: dict[str, list[Any]] = {}
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            known = {}
        self._known = known if isinstance(known, dict) else {}

    def is_old(self, copy: Path, differs: Callable[[Path, Path], bool]) -> bool:
        """What `differs` says of the copy and the provider; False, and asked again, where one cannot be read."""
        stamps = [stamp_of(path) for path in (copy, self._provider)]
        if None in stamps:
            return False
        kept = [list(stamp.kept(self._began_ns)) for stamp in stamps if stamp is not None]
        entry = self._known.get(str(copy))
        moving = any(stamp[-1] == -1 for stamp in kept)  # a write of this moment may not show in a stamp
        if moving or not (isinstance(entry, list) and len(entry) == 2 and entry[0] == kept and type(entry[1]) is bool):
            try:
                entry = [kept, differs(copy, self._provider)]
            except OSError:
                return False
        self._new[str(copy)] = entry
        old: bool = entry[1]
        return old

    def save(self) -> None:
        """Keep the answers for the next look, where that can be."""
        if self._new != self._known and self._path.parent.is_dir():
            with suppress(OSError):
                write_atomically(self._path, json.dumps(self._new))


def _checksum(path: Path) -> int:
    value = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            value = zlib.crc32(block, value)
    return value


def _is_another(copy: Path, provider: Path) -> bool:
    if copy.samefile(provider):
        return False
    return copy.stat().st_size != provider.stat().st_size or not filecmp.cmp(copy, provider, shallow=False)


def _packs_another(wheel: Path, provider: Path) -> bool:
    """By the size and checksum that the archive lists."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            packed = [item for item in archive.infolist() if item.filename.endswith(f"/capi/{provider.name}")]
    except (ValueError, NotImplementedError, zipfile.BadZipFile):
        return False  # still being written: nothing is known of it
    return any(item.file_size != provider.stat().st_size or _checksum(provider) != item.CRC for item in packed)


def old_copies(survey: Survey, everywhere: bool) -> list[str]:
    """One line for each copy that is not the provider as it is now, with the target or command that renews it.

    Looked at are the Python package's folders and wheels, and what the build files copy; with `everywhere`
    every folder of the build directory that is no place of objects or fetched sources.
    """
    if survey.linked.static:
        return []
    provider, build_dir = Path(survey.provider), survey.location.build_dir
    places = _everywhere(build_dir, provider.name) if everywhere else _known(build_dir, provider.name)
    comparisons = _Comparisons(provider, build_dir / STATE_NAME / "copies")
    old = sorted({path for path in places if comparisons.is_old(path, _is_another)})
    wheels = [path for path in sorted(build_dir.glob(_WHEELS)) if comparisons.is_old(path, _packs_another)]
    comparisons.save()
    return [*(f"old copy: {path}: {_renewal(survey, path)}" for path in old),
            *(f"old copy in {wheel}: build.sh --build --build_wheel packs it anew" for wheel in wheels)]


def _renewal(survey: Survey, path: Path) -> str:
    """Who makes the copy. A step after a target's link runs only when that target links."""
    from tasks.closure.order import copies_of

    if path.is_relative_to(survey.location.build_dir / "build"):
        return "build.sh --build --build_wheel stages it anew"
    command = shlex.join(["cmake", "-E", "copy", survey.provider, str(path)])
    checkout = survey.checkout
    for copy in copies_of(survey.location, survey.provider, checkout.provider.targets):
        if Path(copy.destination) == path:
            return f"target {copy.target} copies it, only when it links itself; now: {command}"
    return f"no target makes it; renew it, or remove it: {command}"
