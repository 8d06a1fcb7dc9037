"""The JSON document of the judging tasks: `report.json`, and what `--json` prints."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tasks.evidence.chain import Link, UnitJudgement, Verdict, worst

__all__ = ["SCHEMA", "Report", "UnitRow", "error_document", "timestamp"]

SCHEMA = 1


def timestamp(moment: float) -> str:
    """ISO 8601 with the zone's offset, whole milliseconds."""
    return datetime.datetime.fromtimestamp(moment).astimezone().isoformat(timespec="milliseconds")


class UnitRow(NamedTuple):
    """One unit for the report. `device_code` is ``changed``, ``unchanged`` or ``none``, against the build before.

    `kernels` are the mangled names of those that changed; `by_arch` says it in words for each architecture.
    """

    judgement: UnitJudgement
    source: str
    object: str
    device_code: str = "none"
    kernels: tuple[str, ...] = ()
    by_arch: Mapping[str, str] = MappingProxyType({})

    def as_dict(self) -> dict[str, Any]:
        """The unit's entry in the document."""
        return {"name": self.judgement.name, "source": self.source, "object": self.object,
                "verdict": self.judgement.verdict, "reason": self.judgement.reason,
                "device_code": self.device_code, "kernels": list(self.kernels),
                "by_arch": dict(self.by_arch)}


class Report(NamedTuple):
    """One judgement of the chain. Only the first `judged` links decide the verdict."""

    task: str
    judged: int
    links: tuple[Link, ...]
    units: tuple[UnitRow, ...]
    ort_root: str
    build_dir: str
    provider: Mapping[str, str | None]
    started: float
    ended: float
    refusal: str | None = None
    tests: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """The verdict of the worst link judged."""
        return worst(link.verdict for link in self.links if link.n <= self.judged)

    @property
    def broken(self) -> Link | None:
        """The first judged link that is not fresh."""
        return next((link for link in self.links if link.n <= self.judged and link.verdict != "fresh"), None)

    @property
    def disproof(self) -> str:
        """The verdict with the first evidence against it, in one line; "" where it is fresh."""
        if self.broken is None:
            return ""
        # A unit's evidence has its own verdict: `fmha_sm80: stale: kernel_forward.h changed`.
        return f"{self.verdict}: {self.broken.evidence[0].replace(f': {self.verdict}: ', ': ', 1)}"

    @property
    def claims(self) -> str:
        """What a `fresh` says, and what it does not."""
        return (f"links 1-{self.judged} for the closures of {len(self.units)} units that reach watched headers;"
                " nothing about the rest of the provider")

    def as_dict(self) -> dict[str, Any]:
        """The document; its keys are fixed (schema 1)."""
        return {
            "schema": SCHEMA, "task": self.task, "verdict": self.verdict, "refusal": self.refusal,
            "claims": self.claims, "ort_root": self.ort_root, "build_dir": self.build_dir,
            "provider": dict(self.provider),
            "links": [{"n": link.n, "name": link.name, "verdict": link.verdict, "evidence": list(link.evidence),
                       "remedy": link.remedy} for link in self.links],
            "units": [unit.as_dict() for unit in self.units],
            "tests": dict(self.tests) if self.tests is not None else None,
            "started": timestamp(self.started), "ended": timestamp(self.ended),
        }

    def as_json(self) -> str:
        """The document as text."""
        return to_json(self.as_dict())


def to_json(document: Mapping[str, Any]) -> str:
    """Two-space JSON; bytes of a path that are no text stay readable."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def error_document(task: str, message: str) -> str:
    """What `--json` prints where nothing could be judged."""
    return to_json({"schema": SCHEMA, "task": task, "error": message.splitlines()})
