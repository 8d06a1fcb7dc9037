"""Fingerprints of objects and what changed between two of them. Knows no provider and no receipt."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tasks.binary.code import ArchCode, code_by_arch
from tasks.binary.fatbin import Container
from tasks.binary.host import host_digest
from tasks.binary.image import DeviceImage, device_image
from tasks.binary.source import Source

__all__ = ["DeviceChange", "Fingerprint", "compare", "container_digest", "fingerprint"]

_FORMAT = 1


@dataclass(frozen=True)
class Fingerprint:
    """An object's host code, its containers as they lie there, and its device code by architecture.

    `host` is a hexadecimal digest; `containers` are (size in bytes, SHA-256); `device` maps ``sm_80``,
    ``compute_90``, ... to digests that two compiles of equal code share.
    """

    host: str
    containers: tuple[tuple[int, str], ...]
    device: Mapping[str, ArchCode]

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "format": _FORMAT, "host": self.host, "containers": [list(pair) for pair in self.containers],
            "device": {arch: {"kernels": dict(code.kernels), "functions": dict(code.functions), "data": code.data}
                       for arch, code in self.device.items()},
        }

    @classmethod
    def from_json(cls, data: Any) -> Fingerprint:
        """The fingerprint that :meth:`to_json` wrote. Raises :class:`ValueError` for anything else."""
        try:
            if data["format"] != _FORMAT:
                raise ValueError("another format of fingerprint")
            return cls(str(data["host"]), tuple((int(size), str(text)) for size, text in data["containers"]),
                       {str(arch): ArchCode(_texts(code["kernels"]), _texts(code["functions"]), str(code["data"]))
                        for arch, code in data["device"].items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no fingerprint: {error}") from None


def _texts(data: Mapping[str, str]) -> dict[str, str]:
    return {str(name): str(text) for name, text in data.items()}


@dataclass(frozen=True)
class DeviceChange:
    """What differs between two objects of one unit.

    `device_code` is ``none`` where neither has any. `kernels`, `functions` map architectures to mangled
    names that are new, gone or other now; `data` are the architectures whose variables or constants differ.
    """

    device_code: Literal["changed", "unchanged", "none"]
    host_code: bool
    kernels: Mapping[str, tuple[str, ...]]
    functions: Mapping[str, tuple[str, ...]]
    data: tuple[str, ...]

    @property
    def text(self) -> str:
        """In words: ``device code changed (3 kernels)``, ``host code only``, ``no machine code changed``."""
        if self.device_code != "changed":
            return self._without_device_code()
        return _changed({name for names in self.kernels.values() for name in names},
                        {name for names in self.functions.values() for name in names})

    def text_for(self, arch: str) -> str:
        """The same for one architecture, such as ``sm_80``."""
        if arch not in self.kernels and arch not in self.functions and arch not in self.data:
            return self._without_device_code()
        return _changed(self.kernels.get(arch, ()), self.functions.get(arch, ()))

    def _without_device_code(self) -> str:
        return "host code only" if self.host_code else "no machine code changed"


def _changed(kernels: Collection[str], functions: Collection[str]) -> str:
    counted = [f"{len(names)} {word}{'' if len(names) == 1 else 's'}"
               for names, word in ((kernels, "kernel"), (functions, "device function")) if names]
    return f"device code changed ({', '.join(counted) or 'data only'})"


def container_digest(source: Source, container: Container) -> str:
    """SHA-256 of a container's bytes as they lie in the file."""
    total = hashlib.sha256()
    for block in source.blocks(container.offset, container.size):
        total.update(block)
    return total.hexdigest()


def fingerprint(path: Path, image: DeviceImage | None = None) -> Fingerprint:
    """Read an object's fingerprint; `image` saves a second walk. Raises :class:`BadFatbin`."""
    image = image or device_image(path)
    with image.open() as source:
        containers = tuple((c.size, container_digest(source, c)) for c in image.containers)
        host = host_digest(source)
    return Fingerprint(host, containers, code_by_arch(image))


def _differing(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name)))


def _by_arch(old: Fingerprint, new: Fingerprint) -> Iterator[tuple[str, ArchCode, ArchCode]]:
    nothing = ArchCode({}, {}, "")
    for arch in sorted(old.device.keys() | new.device.keys()):
        yield arch, old.device.get(arch, nothing), new.device.get(arch, nothing)


def compare(old: Fingerprint, new: Fingerprint) -> DeviceChange:
    """What changed from `old` to `new`. Equal containers are equal code; others are compared by their digests."""
    host = old.host != new.host
    if old.containers == new.containers:
        return DeviceChange("unchanged" if new.containers else "none", host, {}, {}, ())
    kernels, functions, data = {}, {}, []
    for arch, before, after in _by_arch(old, new):
        if names := _differing(before.kernels, after.kernels):
            kernels[arch] = names
        if names := _differing(before.functions, after.functions):
            functions[arch] = names
        if before.data != after.data:
            data.append(arch)
    changed = bool(kernels or functions or data)
    return DeviceChange("changed" if changed else "unchanged", host, kernels, functions, tuple(data))
