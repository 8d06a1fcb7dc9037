"""Whether what the build system makes itself is made from its inputs as they are now. Pure but for an Observer.

That is its build files, which CMake writes from `CMakeLists.txt` and the files that those include,
and the headers that custom commands write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tasks.evidence.receipts import GeneratedReceipt
from tasks.evidence.snapshot import Identity, Observer

__all__ = ["Generated", "outdated"]


class Generated(NamedTuple):
    """A file that the build system makes from `inputs`. All are absolute paths.

    `of_many`: it stands for other files that the same run writes, so its own content does not tell which run that was.
    """

    output: str
    inputs: tuple[str, ...]
    of_many: bool = False


def _changed(file: Generated, receipt: GeneratedReceipt | None, observer: Observer) -> list[str]:
    output = observer.identity(file.output)
    if output is None:
        return [file.output]
    by_receipt, by_times = _judged_by(file, receipt, output, observer)
    changed = []
    for path in file.inputs:
        now = observer.identity(path)
        known = receipt is not None and path in receipt.inputs
        recorded = receipt.inputs[path] if receipt is not None and known else None
        if now is None:
            good = known and recorded is None
        else:
            same = recorded is not None and observer.is_digest(path, *recorded)
            older = max(now.mtime_ns, now.ctime_ns) < output.mtime_ns
            good = (same or not by_receipt) and (older or not by_times)
        if not good:
            changed.append(path)
    return changed


def _judged_by(file: Generated, receipt: GeneratedReceipt | None, output: Identity,
               observer: Observer) -> tuple[bool, bool]:
    """Whether the inputs have to be those of the receipt, and whether they have to be older than `output`."""
    if receipt is None:
        return False, True
    if receipt.digest == "":
        # The times of what a build of ours began to make, and did not finish, tell nothing.
        return True, False
    # Someone else's build made it anew, from inputs that may be gone by now: then the times tell, as far as times can.
    same_inode, same_time = output.inode == receipt.inode, output.mtime_ns == receipt.mtime_ns
    # One of the two is enough: a copy that was put back with its time (an archive) has another inode.
    if observer.digest(file.output) != receipt.digest or (file.of_many and not same_inode and not same_time):
        return False, True
    # Its own time alone tells nothing (a touched `build.ninja` keeps a build from running CMake), but a file system
    # gives an inode again, so it may be of another run all the same.
    return True, file.of_many and not same_time


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
