"""One look at the checkout: its units that reach a watched header, with everything that counts for their objects.

A survey describes one moment; whoever waits, builds or is told of an edit makes a new one.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tasks.builder.launcher import OWN_VARIABLES
from tasks.checkout.compile_line import COMPILER_VARIABLES, CompileLine
from tasks.checkout.locate import Location, locate
from tasks.checkout.model import Checkout, Unit, read_checkout
from tasks.closure.cache import ClosureCache
from tasks.closure.resolve import Closure
from tasks.errors import UserError
from tasks.evidence import STATE_NAME
from tasks.evidence.chain import UnitFacts
from tasks.evidence.linking import Step
from tasks.settings import Settings

__all__ = ["Survey", "WatchedUnit", "locate_checkout", "read_survey"]


@dataclass(frozen=True)
class WatchedUnit:
    """A unit that reaches a watched header. `reaches` lists those headers."""

    unit: Unit
    closure: Closure
    line: CompileLine
    facts: UnitFacts
    reaches: tuple[str, ...]

    @property
    def name(self) -> str:
        """The unit's name."""
        return self.unit.name


@dataclass(frozen=True)
class Survey:
    """The checkout, the watched headers (absolute paths) and the units that reach them, by name."""

    settings: Settings
    checkout: Checkout
    headers: tuple[str, ...]
    units: Mapping[str, WatchedUnit]

    @property
    def location(self) -> Location:
        """Checkout and build directory."""
        return self.checkout.location

    @property
    def provider(self) -> str:
        """The file that is judged at link 3: the shared provider, or the executable it is linked into."""
        return str(self.checkout.provider.path)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The link steps above the watched units' objects, from the objects upwards."""
        holding = {unit.facts.object for unit in self.units.values()}
        steps = []
        for step in self.checkout.provider.steps:
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


def _compiler_files(checkout: Checkout, line: CompileLine) -> set[str]:
    """Real paths of what compiles the unit: nvcc (also behind a wrapper script) and the host compiler."""
    roles = ("CUDA", "host", "CXX") if line.language == "CUDA" else ("CXX",)
    named = [str(checkout.compilers[role]) for role in roles if role in checkout.compilers]
    named.append(os.path.join(line.workdir, line.compiler))
    return {os.path.realpath(path) for path in named if os.path.isfile(path)}


def locate_checkout(settings: Settings) -> Location:
    """The checkout and build directory that the settings mean."""
    return locate(settings.ort_root, settings.build_dir, settings.start_dir)


def read_survey(settings: Settings, environ: Mapping[str, str], location: Location | None = None) -> Survey:
    """Look at the checkout now. Raises :class:`UserError` where it cannot be judged. Runs nothing."""
    location = location or locate_checkout(settings)
    checkout = read_checkout(location, settings.link_mode, settings.test_binary)
    headers = _watched_headers(settings, location)
    own = (str(location.ort_root), str(location.build_dir))
    lines = {unit.name: unit.compile_line(environ) for unit in checkout.units}
    cache = ClosureCache(location.build_dir / STATE_NAME / "closures", checkout.system_folders, own)
    closures = cache.closures({unit.name: (unit.source, lines[unit.name].search) for unit in checkout.units})
    cache.save()
    units = {}
    for unit in checkout.units:
        line, closure = lines[unit.name], closures[unit.name]
        # A computed include that was not understood may be of any header.
        reaches = headers if closure.unresolved else closure.among(headers)
        if not reaches:
            continue
        inputs = closure.files | {str(unit.source), *reaches} | _compiler_files(checkout, line)
        facts = UnitFacts(unit.name, str(unit.source), str(unit.object), inputs, _recipe(line, environ))
        units[unit.name] = WatchedUnit(unit, closure, line, facts, reaches)
    if not units:
        raise UserError(f"No unit of {checkout.provider.path.name} includes a watched header"
                        f" ({', '.join(os.path.basename(header) for header in headers)}).",
                        "set headers in fmha.toml, or configure the build directory again: build.sh --update")
    return Survey(settings, checkout, headers, units)
