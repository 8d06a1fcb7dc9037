"""One look at the checkout: its units that reach a watched header, with everything that counts for their objects.

A survey describes one moment; whoever waits, builds or is told of an edit makes a new one.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tasks.builder.launcher import OWN_VARIABLES
from tasks.checkout.compile_line import COMPILER_VARIABLES, CompileLine, SearchPath
from tasks.checkout.locate import Location, locate
from tasks.checkout.model import Checkout, Provider, Unit, read_checkout
from tasks.checkout.reading import noting
from tasks.checkout.toolchain import Toolchain, host_compiler
from tasks.closure.cache import ClosureCache
from tasks.closure.catalogue import Closure
from tasks.errors import UserError
from tasks.evidence import STATE_NAME
from tasks.evidence.chain import UnitFacts
from tasks.evidence.linking import Step
from tasks.outline import Outline, keep_outline, kept_outline, outline_key
from tasks.settings import Settings
from tasks.upstream import Upstream, read_upstream

__all__ = ["Survey", "WatchedUnit", "locate_checkout", "read_survey"]


class WatchedUnit(NamedTuple):
    """A unit that reaches a watched header.

    `reaches` lists those headers, `compilers` the real paths of what compiles it.
    """

    unit: Unit
    closure: Closure
    line: CompileLine
    facts: UnitFacts
    reaches: tuple[str, ...]
    compilers: frozenset[str]

    @property
    def name(self) -> str:
        """The unit's name."""
        return self.unit.name


@dataclass(frozen=True, eq=False, repr=False)
class Survey:
    """The checkout, the watched headers (absolute paths) and the units that reach them, by name.

    `linked` is what holds the device code at run time, `toolchain` the compilers, `upstream` what the
    build would first make build files and headers from. `seen` are identities of files that this look
    has asked for, as their fields; it need not hold every input.
    """

    settings: Settings
    location: Location
    toolchain: Toolchain
    headers: tuple[str, ...]
    linked: Provider
    units: Mapping[str, WatchedUnit]
    upstream: Upstream
    seen: Mapping[str, Sequence[int]]

    @cached_property
    def checkout(self) -> Checkout:
        """All that the build files say: every unit, test executables. Read when it is asked for."""
        return read_checkout(self.location, self.settings.link_mode, self.settings.test_binary)

    @property
    def provider(self) -> str:
        """The file that is judged at link 3: the shared provider, or the executable it is linked into."""
        return str(self.linked.path)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The link steps above the watched units' objects, from the objects upwards."""
        holding = {unit.facts.object for unit in self.units.values()}
        steps = []
        for step in self.linked.steps:
            inputs = tuple(path for path in map(str, step.inputs) if path in holding)
            if inputs:
                holding.add(str(step.output))
                steps.append(Step(str(step.output), inputs))
        return tuple(steps)

    @cached_property
    def inputs(self) -> frozenset[str]:
        """Every input of every watched unit."""
        return frozenset().union(*(unit.facts.inputs for unit in self.units.values()))


def _watched_headers(settings: Settings, location: Location) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for pattern in settings.headers:
        matches = glob.glob(pattern, root_dir=location.ort_root, recursive=True)
        for match in sorted(matches):
            path = os.path.join(location.ort_root, match)
            if os.path.isfile(path):
                folder, name = os.path.split(path)
                found[os.path.join(os.path.realpath(folder), name)] = None
    if not found:
        raise UserError(f"No header matches {', '.join(settings.headers)} under {location.ort_root}.",
                        'set headers in fmha.toml, such as: headers = ["onnxruntime/**/cutlass_fmha/*.h"]')
    return tuple(found)


def _recipe(line: CompileLine, environ: Mapping[str, str]) -> dict[str, str]:
    text = "\0".join((*line.words, line.workdir))
    recipe = {"compile line": hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()}
    for name, value in environ.items():
        if name in COMPILER_VARIABLES or (name.startswith("CCACHE_") and name not in OWN_VARIABLES):
            recipe[name] = value
    return recipe


def _compiler_files(toolchain: Toolchain, line: CompileLine, environ: Mapping[str, str]) -> frozenset[str]:
    """Real paths of what compiles the unit: nvcc (also behind a wrapper script) and the host compiler."""
    roles = ("CUDA", "host", "CXX") if line.language == "CUDA" else ("CXX",)
    named = [str(toolchain.compilers[role]) for role in roles if role in toolchain.compilers]
    named += [os.path.join(line.workdir, line.compiler), host_compiler(line, environ) or ""]
    return frozenset(os.path.realpath(path) for path in named if os.path.isfile(path))


def locate_checkout(settings: Settings) -> Location:
    """The checkout and build directory that the settings mean."""
    return locate(settings.ort_root, settings.build_dir, settings.start_dir)


class _Look:
    """One look at a located checkout: from what an earlier one kept, or from the build files."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], location: Location) -> None:
        self._settings, self._environ, self._location = settings, environ, location
        self.toolchain = Toolchain(location.build_dir)
        # Only where all that was kept holds: what is read and resolved anew takes its time.
        self.seen: Mapping[str, Sequence[int]] = {}
        self._state = location.build_dir / STATE_NAME
        own = (str(location.ort_root), str(location.build_dir))
        self._cache = ClosureCache(self._state / "closures", self.toolchain.system_folders, own)
        cache = location.cache
        self._key = outline_key(*own, settings.link_mode, settings.test_binary, cache.generator, cache.made_in,
                                cache.get("CMAKE_BUILD_TYPE"), [environ.get(name) for name in COMPILER_VARIABLES])

    def kept(self, headers: tuple[str, ...]) -> tuple[Provider, dict[str, WatchedUnit], Upstream] | None:
        """What an earlier look found, if one at all files would find the same now."""
        outline = kept_outline(self._state / "outline", self._key)
        if outline is None:
            return None
        lines = {unit.name: unit.compile_line(self._environ) for unit in outline.units}
        closures = self._cache.unchanged(_sources(outline.units, lines), headers, outline.closures)
        if closures is None:
            return None
        self._cache.save()
        self.seen = self._cache.seen
        return outline.provider, self._watched(outline.units, lines, closures, headers), outline.upstream

    def fresh(self, headers: tuple[str, ...]) -> tuple[Provider, dict[str, WatchedUnit], Upstream]:
        """What the build files say and the sources include; kept for the next look."""
        with noting() as notes:
            checkout = read_checkout(self._location, self._settings.link_mode, self._settings.test_binary)
            lines = {unit.name: unit.compile_line(self._environ) for unit in checkout.units}
        closures = self._cache.closures(_sources(checkout.units, lines))
        self._cache.save()
        units = self._watched(checkout.units, lines, closures, headers)
        with noting(notes):
            seen = frozenset[str]().union(*(unit.closure.files for unit in units.values()))
            upstream = read_upstream(checkout.graph, self._location.build_dir,
                                     (unit.source for unit in checkout.units), seen)
        outline = Outline(checkout.provider, tuple(unit.unit for unit in units.values()), upstream, self._cache.digest)
        keep_outline(self._state / "outline", self._key, notes, outline)
        return checkout.provider, units, upstream

    def _watched(self, units: Iterable[Unit], lines: Mapping[str, CompileLine], closures: Mapping[str, Closure],
                 headers: tuple[str, ...]) -> dict[str, WatchedUnit]:
        found = {}
        for unit in units:
            line, closure = lines[unit.name], closures[unit.name]
            # A computed include that was not understood may be of any header.
            reaches = headers if closure.unresolved else closure.among(headers)
            if reaches:
                compilers = _compiler_files(self.toolchain, line, self._environ)
                inputs = closure.files | {str(unit.source), *reaches} | compilers
                recipe = _recipe(line, self._environ)
                facts = UnitFacts(unit.name, str(unit.source), str(unit.object), inputs, recipe)
                found[unit.name] = WatchedUnit(unit, closure, line, facts, reaches, compilers)
        return found


def _sources(units: Iterable[Unit], lines: Mapping[str, CompileLine]) -> dict[str, tuple[Path, SearchPath]]:
    return {unit.name: (unit.source, lines[unit.name].search) for unit in units}


def read_survey(settings: Settings, environ: Mapping[str, str], location: Location | None = None) -> Survey:
    """Look at the checkout now. Raises :class:`UserError` where it cannot be judged. Runs nothing."""
    location = location or locate_checkout(settings)
    headers = _watched_headers(settings, location)
    look = _Look(settings, environ, location)
    linked, units, upstream = look.kept(headers) or look.fresh(headers)
    if not units:
        raise UserError(f"No unit of {linked.path.name} includes a watched header"
                        f" ({', '.join(os.path.basename(header) for header in headers)}).",
                        "set headers in fmha.toml, or configure the build directory again: build.sh --update")
    return Survey(settings, location, look.toolchain, headers, linked, units, upstream, look.seen)
