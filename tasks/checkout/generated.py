"""What the build system would make before it compiles: its build files by running CMake, headers by custom commands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tasks.checkout.graph import BuildGraph

__all__ = ["Made", "generated_headers", "unnamed_headers"]

# (absolute path of what is made, absolute paths of what it is made from)
Made = tuple[str, tuple[str, ...]]


def generated_headers(graph: BuildGraph, build_dir: Path, paths: Iterable[str]) -> list[Made]:
    """Those of `paths` that rules of the build make, and what these are made from in turn, in the order of making."""
    found: dict[str, tuple[str, ...]] = {}

    def visit(path: str, above: tuple[str, ...]) -> None:
        if path in found or path in above or not path.startswith(inside):
            return
        rule = graph.rule(path)
        if rule is None or not rule.inputs:
            return
        for source in rule.inputs:
            visit(source, (*above, path))
        found[path] = rule.inputs

    inside = f"{build_dir}/"
    for path in sorted(paths):
        visit(path, ())
    return list(found.items())


def unnamed_headers(graph: BuildGraph, build_dir: Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` that lie in the build directory, and that no rule of the build names.

    CMake wrote them, or somebody, or a command that does not say so (an `ExternalProject`, a target of commands).
    """
    fetched = f"{build_dir}/_deps/"
    return [path for path in sorted(paths) if path.startswith(f"{build_dir}/") and not path.startswith(fetched)
            and graph.rule(path) is None]
