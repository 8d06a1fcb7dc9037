"""What the sources of a miniature checkout are now: closures, revisions and contents, by a reading of its own.

Shares no code with the project that it is the judge of: every file is read again each time, no time or
size is looked at, and the few ways in which the fuzz writes an `#include` are all that it understands.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONFIGURED", "FOLDER", "UnitSource", "provider_units", "read_sources"]

FOLDER = Path("onnxruntime/contrib_ops/cuda/bert/cutlass_fmha")
CONFIGURED = "cmake/onnxruntime_config.h.in"
_LINE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>|(\w+))', re.M)
_MACRO = re.compile(r'^\s*#\s*define\s+(\w+)\s+"([^"]+)"', re.M)
_ASKED = re.compile(r'__has_include\("([^"]+)"\)')
_REVISION = re.compile(r"^#define MINIORT_(\w+)_REVISION (\d+)$", re.M)
_ERROR = re.compile(r"^\s*#\s*error", re.M)


@dataclass(frozen=True)
class UnitSource:
    """One unit of the provider as its sources are now.

    `content` is a digest of everything that counts for its object, `revisions` what a right object
    says of itself, `compiles` whether a compiler would take it.
    """

    name: str
    source: Path
    object: Path
    closure: frozenset[Path]
    watched: bool
    content: str
    revisions: dict[str, int]
    compiles: bool


def provider_units(root: Path) -> list[Path]:
    """The provider's units, as the miniature checkout's build files list them: all there are."""
    folders = (root / "onnxruntime/contrib_ops/cuda", root / "onnxruntime/core/providers/cuda")
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".cu", ".cc"))


def _name(source: Path) -> str:
    # The miniature checkout has two files of this name; units are named by the shortest unique tail.
    return f"{source.parent.name}/{source.name}" if source.name == "attention.cc" else source.stem


@dataclass(frozen=True)
class _Parsed:
    """What one content says: (name as written, in quotes, can do without), revisions, whether it is an error."""

    includes: tuple[tuple[str, bool, bool], ...]
    revisions: tuple[tuple[str, int], ...]
    broken: bool
    digest: str


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> _Parsed:
    macros = dict(_MACRO.findall(text))
    optional = set(_ASKED.findall(text))
    includes = []
    for quoted, angled, macro in _LINE.findall(text):
        name = quoted or angled or macros.get(macro, "")
        if name:  # else a macro of the toolkit's
            needed = "extra_" in name or "/" in quoted  # the rest are the system's
            includes.append((name, not angled, name in optional or not needed))
    revisions = tuple((name.lower(), int(number)) for name, number in _REVISION.findall(text))
    return _Parsed(tuple(includes), revisions, bool(_ERROR.search(text)), hashlib.sha256(text.encode()).hexdigest())


class _Reader:
    """Files of one moment; with `configured` as CMake would configure them now, else as they lie there."""

    def __init__(self, root: Path, build_dir: Path, configured: bool) -> None:
        self._input = root / CONFIGURED
        self._made = build_dir / "onnxruntime_config.h" if configured else None
        self._build_type = build_dir.name
        self._folders = (root / "onnxruntime", build_dir, build_dir / "_deps/cutlass-src/include")
        self._files: dict[Path, _Parsed] = {}
        self._found: dict[Path, list[tuple[str, Path | None, bool]]] = {}

    def file(self, path: Path) -> _Parsed:
        if path not in self._files:
            text = path.read_text() if path != self._made else self._input.read_text().replace(
                "@CMAKE_BUILD_TYPE@", self._build_type)
            self._files[path] = _parse(text)
        return self._files[path]

    def included(self, path: Path) -> list[tuple[str, Path | None, bool]]:
        """(name as written, the file or None, whether the compile can do without) for every `#include`."""
        if path not in self._found:
            self._found[path] = [
                (name, next((folder / name for folder in ((path.parent, *self._folders) if quoted else self._folders)
                             if (folder / name).is_file()), None), optional)
                for name, quoted, optional in self.file(path).includes]
        return self._found[path]

    def closure(self, source: Path) -> tuple[frozenset[Path], frozenset[str], bool]:
        """(files with the source, names not found, whether all that must be there is)."""
        files, missing, whole, todo = {source}, set(), True, [source]
        while todo:
            for name, found, optional in self.included(todo.pop()):
                if found is None:
                    missing.add(name)
                    whole = whole and optional
                elif found not in files:
                    files.add(found)
                    todo.append(found)
        return frozenset(files), frozenset(missing), whole


def read_sources(root: Path, build_dir: Path, environment: str = "", configured: bool = True) -> dict[str, UnitSource]:
    """Every unit of the provider, by name; `environment` stands for what counts and is no file.

    `configured`: the header that CMake makes counts as it would make it now, not as it lies there.
    """
    reader = _Reader(root, build_dir, configured)
    folder = root / FOLDER
    units = {}
    for source in provider_units(root):
        files, missing, whole = reader.closure(source)
        digest = hashlib.sha256(environment.encode())
        for name in sorted(missing):
            digest.update(f"\0missing {name}".encode())
        revisions: dict[str, int] = {}
        compiles = whole
        for path in sorted(files):
            parsed = reader.file(path)
            digest.update(f"\0{path}\0{parsed.digest}".encode())
            compiles = compiles and not parsed.broken
            revisions.update(parsed.revisions)
        obj = build_dir / "CMakeFiles/onnxruntime_providers_cuda.dir" / f"{str(source).lstrip('/')}.o"
        watched = any(path.parent == folder and path.suffix == ".h" for path in files)
        units[_name(source)] = UnitSource(_name(source), source, obj, files, watched, digest.hexdigest(), revisions,
                                          compiles)
    return units
