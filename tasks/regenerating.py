"""Makes a build make its build files and headers anew where they are not proved, and writes the receipts for them."""

from __future__ import annotations

from tasks.evidence.receipts import GeneratedReceipt, ReceiptStore
from tasks.evidence.snapshot import Identity, Observer
from tasks.survey import Survey
from tasks.upstream import Pending, find_pending

__all__ = ["Regeneration"]


class Regeneration:
    """One moment before a build, with what is upstream of its units then. Needs the lock."""

    def __init__(self, survey: Survey, store: ReceiptStore) -> None:
        self._store = store
        observer = Observer()
        self.pending: Pending = find_pending(survey.upstream, store.generated(), observer)
        self._inside = f"{survey.location.build_dir}/"
        self._before = {path: observer.identity(path) for file in survey.upstream.files for path in file.inputs}

    def configure_command(self, survey: Survey) -> list[str] | None:
        """The words that run CMake again, as the build would; None where that is not needed."""
        build_dir = survey.location.build_dir
        return [survey.location.cache.get("CMAKE_COMMAND", "cmake"), str(build_dir)] if self.pending.configure else None

    def keep(self, after: Survey) -> None:
        """After a build that succeeded: receipts for what was made from inputs that did not move since that moment.

        What was pending has been made by now: CMake was run, and an outdated header was not there when the build began.
        """
        now = Observer()
        for receipt in self._store.generated().values():
            now.learn_all(receipt.inputs)
        made = {file.output for file in after.upstream.files}
        receipts = {}
        for file in after.upstream.files:
            output, digest = now.identity(file.output), now.digest(file.output)
            if output is None or digest is None:
                continue
            inputs = {}
            for path in file.inputs:
                identity, content = now.identity(path), now.digest(path)
                if identity and content and (path in made or self._unmoved(path, identity, output)):
                    inputs[path] = (identity, content)
            if len(inputs) == len(set(file.inputs)):
                receipts[file.output] = GeneratedReceipt(output.inode, digest, inputs)
        self._store.save_generated(receipts)

    def _unmoved(self, path: str, identity: Identity, output: Identity) -> bool:
        """Whether the input still is what `output` was made from."""
        if identity == self._before.get(path):
            return True
        # First read by this run of CMake, or written by it: older than what was made from it then.
        late = path not in self._before or path.startswith(self._inside)
        return late and max(identity.mtime_ns, identity.ctime_ns) < output.mtime_ns
