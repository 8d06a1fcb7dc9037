"""The checkout as the build directory describes it: units, objects, provider, test executable.

Everything is asked from the build graph; no target name, object path or unit is assumed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tasks.checkout.compile_line import CompileLine, read_compile_line
from tasks.checkout.graph import BuildGraph, Statement, read_graph
from tasks.checkout.locate import Location
from tasks.errors import UserError

__all__ = ["Checkout", "Executable", "LinkStep", "Provider", "Unit", "read_checkout", "unit_names"]

_STEM = "libonnxruntime_providers_cuda"
# `_plugin` was the file's suffix in early 2026; since then the plugin bears the old name.
_SHARED = (f"{_STEM}.so", f"{_STEM}_plugin.so")
_SHARED_NAME = re.compile(r"\.so(\.\d+)*$")
_TESTS = ("onnxruntime_provider_test", "onnxruntime_test_all")
_STATIC = (f"{_STEM}.a", f"{_STEM}_plugin.a")


class Unit(NamedTuple):
    """One translation unit of the provider."""

    name: str
    source: Path
    object: Path
    target: str
    statement: Statement

    def compile_line(self, environ: Mapping[str, str]) -> CompileLine:
        """The unit's compile as it stands in the build files now."""
        return read_compile_line(self.statement.command, self.statement.workdir, environ)


class LinkStep(NamedTuple):
    """One linked file between the objects and the provider: an archive, a device link, the provider itself."""

    output: Path
    inputs: tuple[Path, ...]
    target: str


class Provider(NamedTuple):
    """What holds the device code at run time: the shared provider, or the executable it is linked into.

    `steps` run from the objects to `path`, which is the output of the last one.
    """

    path: Path
    target: str
    static: bool
    steps: tuple[LinkStep, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The target that makes the provider and, for a static one, that of the executable that it is linked into."""
        return tuple(dict.fromkeys(step.target for step in self.steps[-2 if self.static else -1:]))


class Executable(NamedTuple):
    """A test executable and the target that links it."""

    path: Path
    target: str


class Checkout(NamedTuple):
    """A located checkout with everything that the build graph says of its CUDA provider.

    `executables` are ONNX Runtime's test executables that this build directory makes; `graph` answers
    what else is asked.
    """

    location: Location
    units: tuple[Unit, ...]
    provider: Provider
    test: Executable | None
    executables: tuple[Path, ...]
    graph: BuildGraph


def unit_names(sources: list[tuple[Path, str]]) -> list[str]:
    """Names for (source, object path): the stem if unique, else the shortest unique trailing path."""
    stems = Counter(source.stem for source, _ in sources)
    names = []
    for source, obj in sources:
        if stems[source.stem] == 1:
            names.append(source.stem)
            continue
        rivals = [other for other, _ in sources if other.stem == source.stem and other != source]
        parts = source.parts
        depth = next((n for n in range(1, len(parts)) if all(other.parts[-n:] != parts[-n:] for other in rivals)),
                     len(parts))
        name = str(Path(*parts[-depth:]))
        # One source compiled by two targets: only the object tells them apart.
        if sum(other == source for other, _ in sources) > 1:
            name = f"{Path(obj).parts[-len(parts)] if len(Path(obj).parts) > len(parts) else obj}:{name}"
        names.append(name)
    return names


def _source_of(statement: Statement) -> Path | None:
    """The source that a compile statement compiles: the word after `-c`, or the first input named in the command."""
    words = statement.command
    for word in (*words[words.index("-c") + 1:], *words):
        path = os.path.normpath(os.path.join(statement.workdir, word))
        if path in statement.inputs and not word.startswith("-"):
            return Path(path)
    return None


class _Walk:
    """Follows a linked file down to its objects."""

    def __init__(self, graph: BuildGraph) -> None:
        self._graph = graph
        self.compiles: dict[str, Statement] = {}
        self.steps: dict[str, LinkStep] = {}

    def down(self, output: str) -> bool:
        """Whether any object lies below `output`; collects compiles, and steps from the objects upwards."""
        if output in self.compiles or output in self.steps:
            return True
        statement = self._graph.statement(output)
        if statement is None or output in statement.inputs:
            return False
        if statement.compiles:
            self.compiles[output] = statement
            return True
        # Another shared library is linked against, not into.
        below = tuple(Path(path) for path in statement.inputs if not _SHARED_NAME.search(path) and self.down(path))
        if below:
            self.steps[output] = LinkStep(Path(output), below, statement.target)
        return bool(below)


def _linked_files(graph: BuildGraph, link_mode: str, test: str | None) -> tuple[str, bool]:
    """The provider's linked file and whether it is a static library."""
    shared = graph.outputs_named(*_SHARED) if link_mode != "static" else []
    static = graph.outputs_named(*_STATIC) if link_mode != "shared" else []
    if shared:
        return shared[0], False
    if static and test is not None:
        return static[0], True
    if static:
        raise UserError("The provider is linked statically, but no test executable is built that could hold it.",
                        "name it: doit TASK test_binary=NAME")
    raise UserError(f"The build files link no {_SHARED[0]}"
                    + ("" if link_mode == "auto" else f" (link_mode is {link_mode})") + ".",
                    "configure with --use_cuda, then: build.sh --update")


def _find_test(graph: BuildGraph, name: str, build_dir: Path) -> Executable | None:
    if "/" in name:
        wanted = os.path.normpath(build_dir / name)
        found = [wanted] if graph.statement(wanted) else []
        found = found or [output for output in graph.outputs_named(Path(name).name) if output == wanted]
    else:
        found = graph.outputs_named(name)
        # Older trees have the operator tests in the one big executable.
        if not found and name == _TESTS[0]:
            found = graph.outputs_named(*_TESTS)
    statement = graph.statement(found[0]) if found else None
    return None if statement is None else Executable(Path(found[0]), statement.target)


def read_checkout(location: Location, link_mode: str, test_binary: str) -> Checkout:
    """Read the build graph of a located checkout. Raises :class:`UserError` where it has no CUDA provider."""
    graph = read_graph(location.build_dir, location.cache)
    test = _find_test(graph, test_binary, location.build_dir)
    linked, static = _linked_files(graph, link_mode, str(test.path) if test else None)
    walk = _Walk(graph)
    if not walk.down(linked):
        raise UserError(f"The build files show no objects for {linked}.", "configure again: build.sh --update")
    provider_statement = graph.statement(linked)
    assert provider_statement is not None
    steps = tuple(walk.steps.values())
    path = Path(linked)
    target = provider_statement.target
    if static:
        assert test is not None
        path, target = test.path, test.target
        steps = (*steps, LinkStep(path, (Path(linked),), test.target))
    compiles = [(source, output, statement) for output, statement in walk.compiles.items()
                if (source := _source_of(statement)) is not None]
    names = unit_names([(source, output) for source, output, _ in compiles])
    units = tuple(sorted((Unit(name, source, Path(output), statement.target, statement)
                          for name, (source, output, statement) in zip(names, compiles, strict=True)),
                         key=lambda unit: unit.name))
    executables = tuple(map(Path, graph.outputs_named(*_TESTS)))
    return Checkout(location, units, Provider(path, target, static, steps), test, executables, graph)
