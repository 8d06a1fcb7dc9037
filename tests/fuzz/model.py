"""What is true of the artifacts, and which verdicts that allows. Knows no rule of the fuzz and runs nothing.

Truth is kept by content: which contents of its sources an object with these bytes was compiled from.
The project may call fresh only what is right, stale only what is wrong, and must call fresh what it
has called fresh before and what has not changed since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.sources import UnitSource

__all__ = ["FOREIGN", "UNKNOWN", "Artifacts", "Model", "look_at"]

# Contents that an object can be from, beside real ones: not known, and certainly another than any.
UNKNOWN, FOREIGN = "unknown", "foreign"

Identity = tuple[int, int, int, int]


@dataclass(frozen=True)
class Artifacts:
    """Objects and provider at one moment: (inode, size, mtime_ns, ctime_ns) and SHA-256; None where missing."""

    objects: Mapping[str, tuple[Identity, str] | None]
    provider: tuple[Identity, str] | None

    def changed_since(self, before: Artifacts) -> set[str]:
        """Units whose object was written since then."""
        return {name for name, now in self.objects.items() if now is not None and now != before.objects.get(name)}


def _file(path: Path) -> tuple[Identity, str] | None:
    try:
        stat = path.stat()
        return ((stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns),
                hashlib.sha256(path.read_bytes()).hexdigest())
    except FileNotFoundError:
        return None


def look_at(units: Mapping[str, UnitSource], provider: Path) -> Artifacts:
    """The artifacts as they are now."""
    return Artifacts({name: _file(unit.object) for name, unit in units.items()}, _file(provider))


class Model:
    """What the fuzz knows. `built` is the provider's own word: revisions by unit, None where it cannot be opened."""

    def __init__(self) -> None:
        # (unit, digest of an object) -> contents that gave these bytes. True for ever, so never reset.
        self.contents: dict[tuple[str, str], set[str]] = {}
        self.forget()

    def forget(self) -> None:
        """Another build directory: nothing is proved about it."""
        # unit -> (digest of its object, content of its sources) as they were called fresh.
        self.proven: dict[str, tuple[str, str]] = {}
        self.linked: str | None = None
        # unit -> modification time that its compiler gave its object, in ns.
        self.written: dict[str, int] = {}

    # -- what happened ---------------------------------------------------------------------------------------

    def compiled(self, before: Artifacts, after: Artifacts, units: Mapping[str, UnitSource], quiet: bool) -> set[str]:
        """Objects were written, from the sources as they are where nobody edited meanwhile; their names."""
        changed = after.changed_since(before)
        for name in changed:
            entry = after.objects[name]
            assert entry is not None
            self.written[name] = entry[0][2]
            contents = self.contents.setdefault((name, entry[1]), set())
            if quiet:
                contents.add(units[name].content)
            elif units[name].content not in contents:
                contents.add(UNKNOWN)
        return changed

    def put_there(self, name: str, artifacts: Artifacts) -> None:
        """An object from elsewhere, unless it is one of this unit's own."""
        entry = artifacts.objects[name]
        if entry is not None:
            self.contents.setdefault((name, entry[1]), {FOREIGN})

    def begun(self, units: Mapping[str, UnitSource], artifacts: Artifacts) -> None:
        """A rebuild is begun: receipts of units that need it are withdrawn."""
        for name in [name for name in self.proven if not self.is_proven(name, units, artifacts)]:
            del self.proven[name]

    def called_fresh(self, document: Mapping[str, Any], units: Mapping[str, UnitSource], now: Artifacts) -> None:
        """A verdict that was checked: what is fresh stays so until something changes."""
        for row in document["units"]:
            entry = now.objects[row["name"]]
            if row["verdict"] == "fresh" and entry is not None:
                self.proven[row["name"]] = (entry[1], units[row["name"]].content)
        if document["verdict"] == "fresh" and now.provider is not None:
            self.linked = now.provider[1]

    # -- what follows ----------------------------------------------------------------------------------------

    def is_proven(self, name: str, units: Mapping[str, UnitSource], now: Artifacts) -> bool:
        """Whether the object was called fresh and nothing that counts changed since."""
        entry = now.objects[name]
        return entry is not None and self.proven.get(name) == (entry[1], units[name].content)

    def must_be_fresh(self, units: Mapping[str, UnitSource], seen: Mapping[str, UnitSource], now: Artifacts) -> bool:
        """Whether anything but ``fresh`` would be a false alarm."""
        return (now.provider is not None and now.provider[1] == self.linked
                and all(self.is_proven(name, units, now) and unit.content == seen[name].content
                        for name, unit in units.items() if unit.watched))

    def holds(self, name: str, units: Mapping[str, UnitSource], now: Artifacts) -> bool | None:
        """Whether the object was compiled from the sources as they are; None where that is not known."""
        entry = now.objects[name]
        if entry is None:
            return False
        contents = self.contents.get((name, entry[1]), {UNKNOWN})
        if units[name].content in contents:
            return True
        return None if UNKNOWN in contents else False

    def _may_be_another(self, name: str, units: Mapping[str, UnitSource], now: Artifacts) -> bool:
        entry = now.objects[name]
        contents = self.contents.get((name, entry[1]), {UNKNOWN}) if entry is not None else {UNKNOWN}
        return contents != {units[name].content}

    def faults(self, document: Mapping[str, Any], units: Mapping[str, UnitSource], seen: Mapping[str, UnitSource],
               now: Artifacts, built: Mapping[str, Mapping[str, int]] | None) -> list[str]:
        """What is wrong with a judgement of this very moment; nothing where all is well.

        `units` is what the sources mean, `seen` what a compiler would see before CMake is run again: objects
        are judged by that, the whole by the other.
        """
        if "error" in document:
            return [f"no verdict: {document['error']}"]
        watched = {name for name, unit in seen.items() if unit.watched}
        rows = {row["name"]: row for row in document["units"]}
        if rows.keys() != watched:
            return [f"units: {sorted(rows.keys() ^ watched)} should (not) be among those that reach a watched header"]
        found = [line for name in sorted(watched) for line in self._row_faults(rows[name], seen, now)]
        right = built is not None and all(built.get(name) == units[name].revisions for name in watched)
        held = built is not None and all(built.get(name) == seen[name].revisions for name in watched)
        verdict, link = document["verdict"], document["links"][2]
        if verdict == "fresh" and not right:
            found.append(f"false green: the provider holds {_others(built, units, watched)}")
        if verdict != "fresh" and self.must_be_fresh(units, seen, now):
            found.append(f"false alarm: {verdict}, but nothing changed since it was fresh")
        if link["verdict"] == "stale" and held and all(row["verdict"] == "fresh" for row in rows.values()):
            found.append(f"false alarm: link 3 is stale, but the provider holds what it should: {link['evidence']}")
        return found

    def _row_faults(self, row: Mapping[str, Any], units: Mapping[str, UnitSource], now: Artifacts) -> Iterable[str]:
        name, verdict = row["name"], row["verdict"]
        if verdict == "fresh" and self.holds(name, units, now) is False:
            yield f"false green: {name} is fresh, but was not compiled from this"
        if verdict == "stale" and not self._may_be_another(name, units, now):
            yield f"false alarm: {name} is stale ({row['reason']}), but was compiled from exactly this"
        if verdict != "fresh" and self.is_proven(name, units, now):
            yield f"false alarm: {name} is {verdict} ({row['reason']}), but nothing changed since it was fresh"


def _others(built: Mapping[str, Mapping[str, int]] | None, units: Mapping[str, UnitSource], watched: set[str]) -> str:
    if built is None:
        return "nothing that can be opened"
    return "; ".join(f"{name} {built.get(name)} instead of {units[name].revisions}" for name in sorted(watched)
                     if built.get(name) != units[name].revisions)
