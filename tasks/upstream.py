"""What lies upstream of the units' inputs: files from which the build would first make build files and headers.

Build files say which units there are and how they are compiled, so an edit of a `CMakeLists.txt`
counts as much as one of a header, though no file that a unit is compiled from has changed yet.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.generated import generated_headers, unnamed_headers
from tasks.checkout.globs import GLOBS_SCRIPT, FileGlob, read_globs
from tasks.checkout.graph import BuildGraph
from tasks.evidence.generated import Generated, outdated
from tasks.evidence.receipts import GeneratedReceipt
from tasks.evidence.snapshot import Observer

__all__ = ["Pending", "Upstream", "find_pending", "read_upstream"]


class Upstream(NamedTuple):
    """The build files, as one file that every run of CMake writes anew, generated headers that watched units see, the
    globs that may find another source of the provider, and headers in the build directory that no rule names."""

    build_files: Generated | None
    headers: tuple[Generated, ...]
    globs: tuple[FileGlob, ...]
    unnamed: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[Generated, ...]:
        """All that is generated, in the order of making."""
        return (*((self.build_files,) if self.build_files is not None else ()), *self.headers)


class Pending(NamedTuple):
    """What a build would make before it compiles, as far as can be told: for CMake, what it would find changed;
    for each header, the inputs that are not those that it was made from.

    `unlisted`: the build files do not say what CMake read, so neither a build nor anyone else sees it change.
    `unnamed` are headers that builds of ours were seen to write by commands that do not name them.
    """

    configure: tuple[str, ...]
    headers: Mapping[str, Sequence[str]]
    unlisted: bool = False
    unnamed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.made_first or self.unlisted or bool(self.unnamed)

    @property
    def made_first(self) -> bool:
        """Whether the next build begins with making something."""
        return bool(self.configure or self.headers)

    def told(self) -> list[str]:
        """One line for each thing that would be made."""
        lines = []
        if self.configure:
            lines.append(f"{_names(self.configure)} changed since CMake wrote the build files")
        for header, inputs in self.headers.items():
            name = os.path.basename(header)
            lines.append(f"{name} does not exist" if header in inputs else
                         f"{_names(inputs)} changed since {name} was made from it")
        if self.unlisted:
            lines.append("the build files do not list what CMake read (CMAKE_SUPPRESS_REGENERATION leaves that out),"
                         " so an edit of a CMake file is not seen")
        if self.unnamed:
            lines.append(f"{_names(self.unnamed)}: the build writes it by a command that does not name it: only a build"
                         " tells whether it is current")
        return lines


def _names(paths: Sequence[str]) -> str:
    others = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    return os.path.basename(paths[0]) + others


def read_upstream(graph: BuildGraph, build_dir: Path, sources: Iterable[Path], headers: Collection[str]) -> Upstream:
    """What is upstream of the provider's `sources` and the `headers` that watched units see. Runs nothing."""
    rule = graph.configuring()
    folders = {os.path.realpath(os.path.dirname(source)) for source in sources}
    made = generated_headers(graph, build_dir, headers)
    build_files = None if rule is None else Generated(rule.output, rule.inputs, of_many=True)
    # A script of earlier globs stays where it is when the last glob is gone.
    asked = build_files is not None and any(
        os.path.realpath(path) == str(build_dir / GLOBS_SCRIPT) for path in build_files.inputs
        if path.endswith(f"/{GLOBS_SCRIPT}"))
    return Upstream(build_files, tuple(Generated(*header) for header in made),
                    tuple(found for found in read_globs(build_dir) if found.below(folders)) if asked else (),
                    tuple(unnamed_headers(graph, build_dir, headers)))


def find_pending(upstream: Upstream, receipts: Mapping[str, GeneratedReceipt], observer: Observer) -> Pending:
    """What is not proved to be made from its inputs as they are now."""
    for receipt in receipts.values():
        observer.learn_all(receipt.inputs)
    found = outdated(upstream.files, receipts, observer)
    configure = found.pop(upstream.build_files.output, []) if upstream.build_files is not None else []
    for pattern in upstream.globs:
        configure += [path for path in pattern.changes() if path not in configure]
    return Pending(tuple(configure), found, upstream.build_files is None,
                   tuple(path for path in upstream.unnamed if path in receipts))
