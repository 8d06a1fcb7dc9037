"""What a survey takes from the build files (linked file, link steps, watched units), kept until one of them changes.

A build directory of ONNX Runtime's size has megabytes of build files; asking for their stamps takes
a hundredth of reading them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tasks.checkout.globs import FileGlob
from tasks.checkout.graph import Statement
from tasks.checkout.model import LinkStep, Provider, Unit
from tasks.checkout.reading import Notes, Stamp, stamp_of
from tasks.evidence.generated import Generated
from tasks.evidence.receipts import write_atomically
from tasks.upstream import Upstream

__all__ = ["Outline", "keep_outline", "kept_outline", "outline_key"]

_FORMAT = 4


class Outline(NamedTuple):
    """The provider, its units and what is upstream, of one moment; `closures` is the digest of what all units' closures
    hung on."""

    provider: Provider
    units: tuple[Unit, ...]
    upstream: Upstream
    closures: str


def outline_key(*parts: object) -> str:
    """A digest of what decides how the build files are read, beside their content."""
    return hashlib.sha256(json.dumps([_FORMAT, *parts], default=str).encode(errors="surrogateescape")).hexdigest()


def keep_outline(path: Path, key: str, notes: Notes, outline: Outline) -> None:
    """Write the outline, where its folder is there and can be written. `notes` are those of its reading."""
    objects = {unit.statement.output for unit in outline.units}
    document = {
        "key": key, "closures": outline.closures,
        "files": [(name, stamp and stamp.kept(notes.began_ns)) for name, stamp in notes.stamps.items()],
        "provider": _provider_json(outline.provider, objects), "units": [_unit_json(unit) for unit in outline.units],
        "upstream": _upstream_json(outline.upstream),
    }
    # Nothing is lost where it cannot be kept.
    with suppress(OSError):
        if path.parent.is_dir():
            write_atomically(path, json.dumps(document))


def kept_outline(path: Path, key: str) -> Outline | None:
    """The outline of an earlier look, if reading the build files would give it again today."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["key"] != key or not _unmoved(document["files"]):
            return None
        return Outline(_provider(document["provider"]), tuple(map(_unit, document["units"])),
                       _upstream(document["upstream"]), document["closures"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _unmoved(files: Iterable[tuple[str, list[int] | None]]) -> bool:
    return all(stamp_of(name) == (None if stamp is None else Stamp(*stamp)) for name, stamp in files)


def _provider_json(provider: Provider, objects: set[str]) -> Mapping[str, Any]:
    """Of the steps' inputs only what comes from the units: the other objects are many, and nobody asks for them."""
    steps = []
    known = set(objects)
    for step in provider.steps:
        known.add(os.fspath(step.output))
        steps.append((os.fspath(step.output), [path for path in map(os.fspath, step.inputs) if path in known],
                      step.target))
    return {"path": os.fspath(provider.path), "target": provider.target, "static": provider.static, "steps": steps}


def _provider(data: Mapping[str, Any]) -> Provider:
    steps = tuple(LinkStep(Path(output), tuple(map(Path, inputs)), target) for output, inputs, target in data["steps"])
    return Provider(Path(data["path"]), data["target"], data["static"], steps)


def _unit_json(unit: Unit) -> list[object]:
    statement = unit.statement
    return [unit.name, os.fspath(unit.source), os.fspath(unit.object), unit.target, statement.output,
            statement.inputs, statement.command, statement.workdir, statement.target]


def _unit(data: list[Any]) -> Unit:
    name, source, obj, target, output, inputs, command, workdir, statement_target = data
    return Unit(name, Path(source), Path(obj), target,
                Statement(output, tuple(inputs), tuple(command), workdir, statement_target))


def _upstream_json(upstream: Upstream) -> list[object]:
    return [upstream.build_files, upstream.headers, upstream.globs, upstream.unnamed]


def _upstream(data: list[Any]) -> Upstream:
    build_files, headers, globs, unnamed = data
    return Upstream(None if build_files is None else _generated(build_files), tuple(map(_generated, headers)),
                    tuple(FileGlob(pattern, recursive, folders, links, tuple(found))
                          for pattern, recursive, folders, links, found in globs), tuple(unnamed))


def _generated(data: list[Any]) -> Generated:
    output, inputs, of_many = data
    return Generated(output, tuple(inputs), of_many)
