"""Receipts: what was proved about one object or one linked file, kept beside the build directory's state.

Each receipt is one JSON file, replaced atomically. A receipt that cannot be read is no receipt, and
neither is one that is not, to the byte, what was written: it begins with the digest of the rest. A
unit's inputs stand on a line of their own, which is taken apart only where one of them is asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from tasks.evidence import STATE_NAME
from tasks.evidence.snapshot import Identity, identity_of, moment_of

__all__ = ["FORMAT", "GeneratedReceipt", "LinkReceipt", "ReceiptStore", "StepRecord", "UnitReceipt", "file_name",
           "sealed", "unsealed", "write_atomically"]

# Raised when what a receipt means changes (a better closure, say): older receipts prove nothing then.
FORMAT = 3


class UnitReceipt(NamedTuple):
    """One object was compiled under our lock from inputs that did not move meanwhile.

    `inputs` maps absolute paths (source, closure, compilers) to (identity, SHA-256); `recipe` holds
    what is no file: the compile line's digest and the environment's part. `home` is (device, inode)
    of the build directory. A `withdrawn` receipt never proves ``fresh`` again, but still ``stale``;
    so does one with `moved`, the inputs (and recipe keys) that were written meanwhile: the others hold.
    """

    unit: str
    source: str
    object: str
    home: tuple[int, int]
    object_identity: Identity
    object_digest: str
    inputs: Mapping[str, tuple[Identity, str]]
    recipe: Mapping[str, str]
    built: float
    withdrawn: bool = False
    moved: tuple[str, ...] = ()

    @property
    def moment(self) -> str:
        """:func:`moment_of` the inputs as they were, but for the source: other build directories touch it."""
        if isinstance(self.inputs, _KeptInputs):
            return self.inputs.moment
        return moment_of({path: identity for path, (identity, _) in self.inputs.items() if path != self.source})


class _KeptInputs(Mapping[str, "tuple[Identity, str]"]):
    """Inputs as a sealed receipt holds them, with the receipt's `moment`. Taken apart only for who asks for many."""

    _FEW = 4

    def __init__(self, text: str, moment: str) -> None:
        self._asked = 0
        self.text = text
        self.moment = moment

    @cached_property
    def _known(self) -> dict[str, tuple[Identity, str]]:
        return {path: (Identity(*identity), digest) for path, (identity, digest) in json.loads(self.text).items()}

    def __getitem__(self, path: str) -> tuple[Identity, str]:
        self._asked += 1
        if self._asked > self._FEW:
            return self._known[path]
        # A quotation mark after a space begins a text: those within one have a backslash before them.
        _, key, after = f" {self.text[1:]}".partition(f" {json.dumps(path)}: ")
        if not key:
            raise KeyError(path)
        (identity, digest), _ = json.JSONDecoder().raw_decode(after)
        return Identity(*identity), digest

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class StepRecord(NamedTuple):
    """One archive or linked file was written under our lock after its `inputs` (paths to SHA-256)."""

    identity: Identity
    digest: str
    inputs: Mapping[str, str]


class LinkReceipt(NamedTuple):
    """The linker wrote `linked` under our lock after these objects.

    `objects` maps the units' objects to SHA-256; `steps` holds every step between them and `linked`
    (an archive, a device link, `linked` itself) by its output.
    """

    linked: str
    home: tuple[int, int]
    identity: Identity
    digest: str
    objects: Mapping[str, str]
    steps: Mapping[str, StepRecord]
    built: float


class GeneratedReceipt(NamedTuple):
    """The build system made one file (a header, its own build files) under our lock from `inputs` that did not move.

    `inputs` maps absolute paths to (identity, SHA-256; empty for a folder), or to None where the build leaves nothing
    there (a symbolic output); an input is left out where it is not known as what the file was made from. `inode`,
    `mtime_ns` and `digest` are those of the file; a digest that is empty is of one that a build began to make, and did
    not finish.
    """

    inode: int
    mtime_ns: int
    digest: str
    inputs: Mapping[str, tuple[Identity, str] | None]

    def withdrawn(self, changed: Iterable[str]) -> GeneratedReceipt:
        """The receipt while the file is made again: these inputs stay changed until it is."""
        changed = frozenset(changed)
        return GeneratedReceipt(0, 0, "", {path: known for path, known in self.inputs.items() if path not in changed})


def write_atomically(path: Path, text: str) -> None:
    """Replace a file as a whole: a reader sees the old or the new content, also where the writer is killed.

    Nothing is forced to the disk, which beside a build can take seconds: after a power cut the old content, or one
    that was cut short, is there. The first is judged beside the files as they are then, the second is none.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as error:
        # A write that fails (a full disk) does not say where.
        error.filename = error.filename or str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _seal(rest: str) -> str:
    return f'{{"sha256": "{hashlib.sha256(rest.encode(errors="surrogateescape")).hexdigest()}", '


def sealed(data: Mapping[str, Any], more: str = "") -> str:
    """A JSON document that begins with the SHA-256 of what follows it, `more` on lines of its own among that.

    `data` has one entry at least.
    """
    rest = json.dumps(data)[1:] + (more and f"\n{more}")
    return _seal(rest) + rest


def unsealed(text: str) -> dict[str, Any] | None:
    """The document, where it and what follows it are still as :func:`sealed` made them; else None."""
    length = len(_seal(""))
    try:
        data = json.loads(text.partition("\n")[0]) if text[:length] == _seal(text[length:]) else None
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def file_name(unit: str) -> str:
    """A file name for a unit's name: readable, and unique where the readable part was cut."""
    plain = re.sub(r"[^\w.+-]", "_", unit)
    if plain == unit and len(unit) <= 100:
        return unit
    return f"{plain[:100]}-{hashlib.sha256(unit.encode(errors='surrogateescape')).hexdigest()[:12]}"


class ReceiptStore:
    """The receipts of one build directory, in `<build_dir>/.fmha/receipts/`."""

    def __init__(self, build_dir: Path) -> None:
        self._folder = build_dir / STATE_NAME / "receipts"
        identity = identity_of(build_dir)
        self.home: tuple[int, int] = (identity.device, identity.inode) if identity else (0, 0)

    def unit(self, name: str) -> UnitReceipt | None:
        """The unit's receipt of this very build directory, valid or withdrawn."""
        data, inputs = self._load("unit." + file_name(name))
        try:
            if data is None or data["unit"] != name:
                return None
            return UnitReceipt(
                unit=name, source=data["source"], object=data["object"], home=self.home,
                object_identity=Identity(*data["object_identity"]), object_digest=data["object_digest"],
                inputs=_KeptInputs(inputs, data["moment"]), recipe=dict(data["recipe"]), built=float(data["built"]),
                withdrawn=bool(data["withdrawn"]), moved=tuple(data["moved"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def link(self) -> LinkReceipt | None:
        """The linked file's receipt of this very build directory."""
        data, _ = self._load("link")
        try:
            if data is None:
                return None
            steps = {output: StepRecord(Identity(*step["identity"]), step["digest"], dict(step["inputs"]))
                     for output, step in data["steps"].items()}
            return LinkReceipt(linked=data["linked"], home=self.home, identity=Identity(*data["identity"]),
                               digest=data["digest"], objects=dict(data["objects"]), steps=steps,
                               built=float(data["built"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def save_unit(self, receipt: UnitReceipt) -> None:
        """Write a unit's receipt in place of any earlier one."""
        data = {**receipt._asdict(), "moment": receipt.moment}
        inputs = data.pop("inputs")
        text = inputs.text if isinstance(inputs, _KeptInputs) else json.dumps(dict(inputs))
        self._save("unit." + file_name(receipt.unit), data, text)

    def save_link(self, receipt: LinkReceipt) -> None:
        """Write the link receipt in place of any earlier one."""
        steps = {output: step._asdict() for output, step in receipt.steps.items()}
        self._save("link", {**receipt._asdict(), "steps": steps})

    def generated(self) -> dict[str, GeneratedReceipt]:
        """Receipts of what the build system made itself, by path."""
        data, _ = self._load("generated")
        try:
            return {} if data is None else {
                output: GeneratedReceipt(inode, mtime_ns, digest, {
                    path: known and (Identity(*known[0]), str(known[1])) for path, known in inputs.items()})
                for output, (inode, mtime_ns, digest, inputs) in data["outputs"].items()}
        except (KeyError, TypeError, ValueError, AttributeError):
            return {}

    def save_generated(self, receipts: Mapping[str, GeneratedReceipt]) -> None:
        """Write the receipts of everything that is generated in place of the earlier ones."""
        self._save("generated", {"home": self.home, "outputs": {
            output: (receipt.inode, receipt.mtime_ns, receipt.digest, receipt.inputs)
            for output, receipt in receipts.items()}})

    def withdraw(self, name: str) -> None:
        """Mark the unit's receipt: from now on it can only prove ``stale``."""
        receipt = self.unit(name)
        if receipt is not None and not receipt.withdrawn:
            self.save_unit(receipt._replace(withdrawn=True))

    def _load(self, name: str) -> tuple[dict[str, Any] | None, str]:
        """The document, and what stands on the lines after it."""
        try:
            text = (self._folder / f"{name}.json").read_text(encoding="utf-8", errors="surrogateescape")
        except (OSError, ValueError):
            return None, ""
        data = unsealed(text)
        # A copied build directory has the files, but not the directory's identity.
        ours = data is not None and data.get("format") == FORMAT and data.get("home") == list(self.home)
        return (data, text.partition("\n")[2]) if ours else (None, "")

    def _save(self, name: str, data: Mapping[str, Any], more: str = "") -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._folder / f"{name}.json", sealed({"format": FORMAT, **data}, more))
