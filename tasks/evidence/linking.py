"""Proves that the steps between objects and provider were run under our lock, each after its inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tasks.evidence.receipts import LinkReceipt, StepRecord
from tasks.evidence.snapshot import Identity, Observer

__all__ = ["Step", "prove_steps"]


class Step(NamedTuple):
    """An archive or linked file and those of its inputs that hold a watched unit's code."""

    output: str
    inputs: tuple[str, ...]


def _record(step: Step, before: Identity | None, since_ns: int, old: StepRecord | None,
            now: Observer) -> StepRecord | None:
    identity, digest = now.identity(step.output), now.digest(step.output)
    inputs = {path: now.digest(path) for path in step.inputs}
    if identity is None or digest is None or not all(inputs.values()):
        return None
    known = {path: text for path, text in inputs.items() if text is not None}
    # A linker closes its output after it has read its inputs: its ctime is never the older one.
    after_inputs = all((i := now.identity(path)) is not None and i.ctime_ns <= identity.ctime_ns for path in known)
    if identity != before and identity.mtime_ns >= since_ns and after_inputs:
        return StepRecord(identity, digest, known)
    if old is not None and old.digest == digest and dict(old.inputs) == known:
        return StepRecord(identity, digest, known)
    return None


def prove_steps(steps: Sequence[Step], before: Mapping[str, Identity | None], since_ns: int,
                old: LinkReceipt | None, now: Observer) -> tuple[dict[str, StepRecord], list[str]]:
    """Records of the proved steps, and the outputs of the others. `steps` run from the objects upwards.

    A step is proved when its output was rewritten since `before` and the moment `since_ns` (in ns, the
    file system's clock), after its inputs, or when its earlier record still describes output and
    inputs. What stands on an unproved step is unproved.
    """
    records: dict[str, StepRecord] = {}
    unproved: list[str] = []
    for step in steps:
        earlier = old.steps.get(step.output) if old is not None else None
        record = _record(step, before.get(step.output), since_ns, earlier, now)
        if record is None or any(path in unproved for path in step.inputs):
            unproved.append(step.output)
        else:
            records[step.output] = record
    return records, unproved
