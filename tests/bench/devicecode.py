"""The containers of a linked provider, found and walked, beside NVIDIA's own lister in the same run."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.bench.measure import Figure, in_turn, run
from tests.binary import synthetic as syn
from tests.binary.toolkit import tool
from tests.support import PROJECT, clean_environment

__all__ = ["device_code_figures"]

_WALK = "import sys, pathlib, tasks.binary.image as image; image.device_image(pathlib.Path(sys.argv[1])).archs"
_CONTAINERS = 609  # of the published provider


def _many(path: Path, containers: int) -> Path:
    path.write_bytes(syn.library_with(*(
        syn.container(*(syn.entry(number.to_bytes(8, "little"), sm=sm) for sm in (75, 80, 90)))
        for number in range(containers))))
    return path


def device_code_figures(folder: Path, provider: Path | None, rounds: int) -> dict[str, Figure]:
    """Whole processes, the interpreter's start and imports included; the files lie in the page cache."""
    environ = clean_environment()
    environ.pop("PYTHONDONTWRITEBYTECODE")
    files = {f"{number} containers": _many(folder / f"{number}.so", number)
             for number in (_CONTAINERS, 10 * _CONTAINERS)}
    commands = {name: [sys.executable, "-c", _WALK, str(path)] for name, path in files.items()}
    if provider is not None:
        commands = {provider.name: [sys.executable, "-c", _WALK, str(provider)]} | commands
        if lister := tool("cuobjdump"):
            commands[f"cuobjdump -lelf {provider.name}"] = [str(lister), "-lelf", str(provider)]
    return in_turn({name: (lambda words=words: run(words, PROJECT, environ)) for name, words in commands.items()},
                   rounds)
