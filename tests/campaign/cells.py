"""The cells: which shape of the miniature checkout a scenario runs on."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

__all__ = ["DEVICE", "GRID", "QUICK", "SHAPES", "Cell", "any_cell", "gap", "host", "make", "module", "ninja",
           "nowhere", "plugin", "relocatable", "shared"]


@dataclass(frozen=True)
class Cell:
    """One way to configure the miniature checkout. `device`: the real nvcc, whole-program or relocatable."""

    generator: str
    gap: bool = True
    static: bool = False
    shape: str = "module"  # "module", "object library" or "plugin"
    device: str = ""  # "", "nvcc", "rdc"
    extra: tuple[str, ...] = field(default=())

    @property
    def label(self) -> str:
        """What the table calls it."""
        words = ["make" if self.is_make else "ninja", "static" if self.static else "shared",
                 "gap" if self.gap else "no gap"]
        return ", ".join(words + [word for word in (self.shape, self.device) if word not in ("", "module")])

    @property
    def is_make(self) -> bool:
        return self.generator == "Unix Makefiles"

    @property
    def defines(self) -> list[str]:
        """Cache entries for CMake."""
        switches = {"MINIORT_HOST_ONLY": not self.device, "MINIORT_DEPFILE_GAP": self.gap,
                    "MINIORT_STATIC_PROVIDER": self.static, "MINIORT_RDC": self.device == "rdc",
                    "MINIORT_OBJECT_LIBRARY": self.shape == "object library",
                    "MINIORT_PLUGIN_PROVIDER": self.shape == "plugin", "CMAKE_EXPORT_COMPILE_COMMANDS": True}
        return [f"{name}={'ON' if on else 'OFF'}" for name, on in switches.items()] + ["MINIORT_GTEST=OWN", *self.extra]


_GENERATORS = ("Unix Makefiles", "Ninja")
GRID = tuple(Cell(generator, gap, static)
             for generator, static, gap in product(_GENERATORS, (False, True), (True, False)))
SHAPES = tuple(Cell(generator, shape=shape) for generator, shape in product(_GENERATORS, ("object library", "plugin")))
DEVICE = (Cell("Unix Makefiles", device="nvcc"), Cell("Ninja", device="rdc"))
QUICK = (Cell("Unix Makefiles"), Cell("Ninja"))


# Where a scenario fits. Compiles of device code take ten times as long: few scenarios run there.


def any_cell(cell: Cell) -> bool:
    """In every cell, those with device code too."""
    return bool(cell)


def nowhere(cell: Cell) -> bool:
    """In no cell."""
    return not cell


def host(cell: Cell) -> bool:
    """Where the host compiler compiles all units."""
    return not cell.device


def make(cell: Cell) -> bool:
    """Where make builds."""
    return host(cell) and cell.is_make


def ninja(cell: Cell) -> bool:
    """Where ninja builds."""
    return host(cell) and not cell.is_make


def shared(cell: Cell) -> bool:
    """Where the provider is a library of its own."""
    return host(cell) and not cell.static


def module(cell: Cell) -> bool:
    """Where the provider's own target compiles the units."""
    return host(cell) and cell.shape == "module"


def gap(cell: Cell) -> bool:
    """Where the depfiles leave the watched headers out."""
    return host(cell) and cell.gap


def relocatable(cell: Cell) -> bool:
    """Where device code is relocatable, so that there is a device link."""
    return cell.device == "rdc"


def plugin(cell: Cell) -> bool:
    """Where the provider is built as newer trees build their plugin."""
    return host(cell) and cell.shape == "plugin"
