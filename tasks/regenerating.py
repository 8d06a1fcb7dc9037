"""Makes a build make its build files and headers anew where they are not proved, and writes the receipts for them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable

from tasks.checkout.locate import Location
from tasks.errors import UserError
from tasks.evidence import STATE_NAME
from tasks.evidence.generated import Generated
from tasks.evidence.receipts import GeneratedReceipt, ReceiptStore
from tasks.evidence.snapshot import Identity, Observer, clock_ns, identity_of
from tasks.survey import Survey
from tasks.upstream import Pending, Upstream, find_pending

__all__ = ["Regeneration", "configure_remedy", "configure_words"]


def configure_words(location: Location, *options: str) -> list[str]:
    """The words that run CMake again, as a build would, by the CMake that made the build directory."""
    # By the names that CMake knows: through another one (a link) it would write other paths, and all be compiled.
    cache = location.cache
    build_dir = cache.get("CMAKE_CACHEFILE_DIR") or str(location.build_dir)
    return [cache.get("CMAKE_COMMAND", "cmake"), *options, "-S", str(cache.home), "-B", build_dir]


def _cmake_is_gone(location: Location) -> bool:
    return not os.path.exists(location.cache.get("CMAKE_COMMAND"))


def configure_remedy(location: Location, pending: Pending) -> str | None:
    """The command that a person has to run before any build makes what is pending; None where a build does it."""
    gone = _cmake_is_gone(location)
    if not pending.unlisted and not (pending.configure and gone):
        return None
    words = configure_words(location, *(["-DCMAKE_SUPPRESS_REGENERATION=OFF"] if pending.unlisted else []))
    return shlex.join(["cmake" if gone else words[0], *words[1:]])


class Regeneration:
    """One moment before a build, with what is upstream of its units then. Needs the lock.

    What is pending loses its receipt first: a build that fails, or is killed, may leave it half made, or made
    from what lies there no more, and newer than all that it is made from.
    """

    def __init__(self, survey: Survey, store: ReceiptStore) -> None:
        self._store = store
        observer = Observer()
        known = store.generated()
        self.pending: Pending = find_pending(survey.upstream, known, observer)
        # Its real name, and the one that CMake knows it by.
        self._inside = (f"{survey.location.build_dir}/", f"{survey.location.cache.made_in}/")
        # By the clock of the file system that the build writes to.
        self._began_ns = clock_ns(survey.location.build_dir / STATE_NAME)
        files = survey.upstream.files
        self._before = {path: observer.identity(path) for file in files for path in (*file.inputs, file.output)}
        self._outdated = dict(self.pending.headers)
        if survey.upstream.build_files is not None and self.pending.configure:
            self._outdated[survey.upstream.build_files.output] = self.pending.configure
        if self._outdated:
            nothing = GeneratedReceipt(0, 0, "", {})
            store.save_generated(known | {output: known.get(output, nothing).withdrawn(changed)
                                          for output, changed in self._outdated.items()})

    def configure_command(self, survey: Survey) -> list[str] | None:
        """The words that run CMake again, as the build would; None where that is not needed.

        Raises :class:`UserError` where the CMake of the build files is gone, and the build asks it (make always does).
        """
        location = survey.location
        if _cmake_is_gone(location) and (self.pending.configure or location.cache.generator == "Unix Makefiles"):
            cmake, *others = configure_words(location)
            raise UserError(f"{cmake} made the build files, and is gone: another CMake has to make them again.",
                            shlex.join(["cmake", *others]))
        return configure_words(location) if self.pending.configure else None

    def configured(self, after: Survey) -> None:
        """After CMake ran, and before the build that may fail: the receipt for what it wrote."""
        if after.upstream.build_files is not None:
            self._keep([after.upstream.build_files], self._store.generated())

    def built(self, after: Survey) -> None:
        """After a build that succeeded: receipts for what was made from inputs that did not move since that moment."""
        known, files = self._store.generated(), after.upstream.files
        kept = {file.output for file in files} | set(after.upstream.unnamed)
        receipts = {output: receipt for output, receipt in known.items() if output in kept}
        self._keep(files, receipts | self._written_unnamed(after.upstream))

    def _written_unnamed(self, upstream: Upstream) -> dict[str, GeneratedReceipt]:
        """The headers without a rule that this build wrote: from now on it is known that builds do."""
        build_files = upstream.build_files
        if build_files is None or identity_of(build_files.output) != self._before.get(build_files.output):
            return {}  # CMake ran in the build, and may have written them
        written = {path: identity for path in upstream.unnamed if (identity := identity_of(path)) is not None
                   and max(identity.mtime_ns, identity.ctime_ns) >= self._began_ns}
        return {path: GeneratedReceipt(identity.inode, identity.mtime_ns, "", {}) for path, identity in written.items()}

    def _keep(self, files: Iterable[Generated], receipts: dict[str, GeneratedReceipt]) -> None:
        now = Observer()
        for receipt in receipts.values():
            now.learn_all(receipt.inputs)
        made = set()
        for file in files:
            output, digest = now.identity(file.output), now.digest(file.output)
            if output is None or digest is None:
                continue
            former = receipts.get(file.output)
            # Build files that no CMake run wrote anew, or a header that was moved away, not made, and put back.
            unmoved = _same_file(output, self._before.get(file.output))
            old = file.output in self._outdated and unmoved
            # Of what may have been read by another run of CMake nothing is kept, though it wrote the same here.
            same = former is not None and former.digest == digest and (unmoved or not file.of_many)
            inputs = dict(former.inputs) if former is not None and (old or same) else {}
            if not old:
                made.add(file.output)
                inputs |= self._made_from(file, output, made, now)
            receipts[file.output] = GeneratedReceipt(output.inode, output.mtime_ns, digest,
                                                     {path: inputs[path] for path in file.inputs if path in inputs})
        self._store.save_generated(receipts)

    def _made_from(self, file: Generated, output: Identity, made: Collection[str],
                   now: Observer) -> dict[str, tuple[Identity, str] | None]:
        """The inputs that are what the file was made from."""
        found: dict[str, tuple[Identity, str] | None] = {}
        for path in file.inputs:
            identity = now.identity(path)
            if identity is None:
                found[path] = None
            elif path in made or self._unmoved(path, identity, output):
                found[path] = (identity, now.digest(path) or "")
        return found

    def _unmoved(self, path: str, identity: Identity, output: Identity) -> bool:
        """Whether the input still is what `output` was made from."""
        if identity == self._before.get(path):
            return True
        # First read by this run of CMake, or written by it: older than what was made from it then.
        late = path not in self._before or path.startswith(self._inside)
        return late and max(identity.mtime_ns, identity.ctime_ns) < output.mtime_ns


def _same_file(now: Identity, before: Identity | None) -> bool:
    return before is not None and (now.inode, now.mtime_ns) == (before.inode, before.mtime_ns)
