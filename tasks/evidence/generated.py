"""Whether what the build system makes itself is made from its inputs as they are now. Pure but for an Observer.

That is its build files, which CMake writes from `CMakeLists.txt` and the files that those include,
and the headers that custom commands write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tasks.evidence.receipts import GeneratedReceipt
from tasks.evidence.snapshot import Observer

__all__ = ["Generated", "outdated"]


class Generated(NamedTuple):
    """A file that the build system makes from `inputs`. All are absolute paths."""

    output: str
    inputs: tuple[str, ...]


def _changed(file: Generated, receipt: GeneratedReceipt | None, observer: Observer) -> list[str]:
    output = observer.identity(file.output)
    if output is None:
        return [file.output]
    # Someone else's build made it anew: then the times tell, as far as times can. Its own time alone
    # tells nothing: a touched `build.ninja` keeps a build from running CMake.
    # The times of what a build of ours began to make, and did not finish, tell nothing either.
    anew = receipt is None or (receipt.digest != "" and (
        output.inode != receipt.inode or observer.digest(file.output) != receipt.digest))
    changed = []
    for path in file.inputs:
        now = observer.identity(path)
        if receipt is not None and path in receipt.inputs:
            known = receipt.inputs[path]
            if now is None if known is None else observer.is_digest(path, *known):
                continue
        if not anew or now is None or max(now.mtime_ns, now.ctime_ns) >= output.mtime_ns:
            changed.append(path)
    return changed


def outdated(files: Iterable[Generated], receipts: Mapping[str, GeneratedReceipt],
             observer: Observer) -> dict[str, list[str]]:
    """The files that are not proved to be made from their inputs, with the inputs that are others than those.

    `files` come in the order in which they are made: what is made from an outdated one is outdated too.
    """
    found: dict[str, list[str]] = {}
    for file in files:
        changed = _changed(file, receipts.get(file.output), observer)
        changed += [path for path in file.inputs if path in found and path not in changed]
        if changed:
            found[file.output] = changed
    return found
