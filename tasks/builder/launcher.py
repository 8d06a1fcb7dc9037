"""Compiler caches in front of the compiler (ccache, sccache): told to compile for real, and asked what they did.

A cache may give an old object back for a source that changed: ccache in `depend_mode` knows only the headers that the
compiler's depfile names, and one that is missing there is missing to it too. So whatever is built under the lock is
compiled anew: `recache` (ccache's manual) and `SCCACHE_RECACHE` (sccache's `docs/Configuration.md`) store a result,
but never look one up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tasks.child import start_child

__all__ = ["OWN_VARIABLES", "Launchers", "Told", "launcher_of", "launchers_of", "sccache_counts", "what_ccache_did"]

# Set for the build by this module, so a user's own values of them are no input of an object.
OWN_VARIABLES = ("CCACHE_RECACHE", "CCACHE_NORECACHE", "CCACHE_STATSLOG")
_NAMES = ("ccache", "sccache")
_ASK_LIMIT_S = 20
# A launcher stands in front of the compiler, perhaps after `cmake -E env NAME=VALUE`.
_FIRST_WORDS = 12
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")


class Told(NamedTuple):
    """What ccache did in one build: how many sources it had compiled, and which objects came from its cache."""

    compiled: int
    from_cache: tuple[str, ...]


def launcher_of(words: Sequence[str], compilers: Iterable[str] = ()) -> str | None:
    """The compiler cache of a compile line, or behind a compiler's name (`compilers` are real paths); its path."""
    for word in (*words[:_FIRST_WORDS], *compilers):
        if os.path.basename(word) in _NAMES:
            return word
    return None


def launchers_of(lines: Iterable[tuple[Sequence[str], Iterable[str]]]) -> dict[str, str]:
    """Every compiler cache of the (words, compilers), its path by its name."""
    found = [word for words, compilers in lines if (word := launcher_of(words, compilers)) is not None]
    return {os.path.basename(word): word for word in found}


def what_ccache_did(stats_log: Path, start: int = 0) -> Told | None:
    """Read ccache's `stats_log` from byte `start` on; None where it wrote none (before 4.4, or with `stats = false`).

    For each call a line `# SOURCE`, then its counters, one a line.
    """
    try:
        with stats_log.open("rb") as file:
            file.seek(start)
            lines = file.read().decode(errors="surrogateescape").splitlines()
    except OSError:
        return None
    calls: list[tuple[str, set[str]]] = []
    for line in lines:
        if line.startswith("# "):
            calls.append((line[2:], set()))
        elif calls:
            calls[-1][1].add(line.strip())
    hits = [source for source, counters in calls if counters & set(_HITS)]
    return Told(len(calls) - len(hits), tuple(hits)) if calls else None


def sccache_counts(program: str, cwd: Path, environ: Mapping[str, str]) -> tuple[int, int] | None:
    """(compilations, cache hits) of the server since it was started; None where it does not tell.

    Asking starts the server where none runs: one that the build starts would inherit the lock.
    """
    import subprocess

    try:
        process = start_child([program, "--show-stats", "--stats-format=json"], cwd, environ,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return None
    try:
        output, _ = process.communicate(timeout=_ASK_LIMIT_S)
        stats = json.loads(output)["stats"]
        return int(stats["compilations"]), sum(stats["cache_hits"]["counts"].values())
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError, AttributeError):
        return None
    finally:
        if process.poll() is None:
            with suppress(OSError):
                process.kill()
            process.wait()


class Launchers:
    """The launchers (path by name) of one build, from its environment to what they say that they did."""

    def __init__(self, found: Mapping[str, str], environ: Mapping[str, str], cwd: Path, state: Path) -> None:
        self._found = found
        self._cwd = cwd
        self.environ = dict(environ)
        self._sccache_before: tuple[int, int] | None = None
        if "ccache" in found:
            self.environ.pop("CCACHE_NORECACHE", None)
            self.environ["CCACHE_RECACHE"] = "1"
            self.environ.setdefault("CCACHE_STATSLOG", str(state / "ccache-stats"))
            self._stats_log = Path(self.environ["CCACHE_STATSLOG"])
            if "CCACHE_STATSLOG" not in environ:
                self._stats_log.unlink(missing_ok=True)
            self._start = self._stats_log.stat().st_size if self._stats_log.exists() else 0
        if "sccache" in found:
            self.environ["SCCACHE_RECACHE"] = "1"
            self._sccache_before = sccache_counts(found["sccache"], cwd, self.environ)

    def end(self) -> tuple[frozenset[str], bool, list[str]]:
        """(real paths of the sources whose objects came from a cache, whether sccache compiled, lines for a person).

        sccache tells sums of its server, which may serve other builds too. It is known to have compiled all that
        came through it only where it counted compiles and no hit: one that does not tell may have restored, and
        so may another server than the one that is asked, which counts neither.
        """
        cached: frozenset[str] = frozenset()
        lines = []
        if "ccache" in self._found:
            told = what_ccache_did(self._stats_log, self._start)
            cached = frozenset(map(os.path.realpath, told.from_cache)) if told is not None else cached
            lines.append(self._ccache_line(told))
        sccache_compiled = False
        if "sccache" in self._found:
            after = sccache_counts(self._found["sccache"], self._cwd, self.environ)
            if after is None or self._sccache_before is None:
                lines.append("sccache: asked to compile anew, and does not tell what it did")
            else:
                compiled, hits = (now - then for now, then in zip(after, self._sccache_before, strict=True))
                sccache_compiled = compiled > 0 and hits == 0
                lines.append(f"sccache: {compiled} compiled anew, {hits} from its cache (all builds of its server)")
        return cached, sccache_compiled, lines

    @staticmethod
    def _ccache_line(told: Told | None) -> str:
        if told is None:
            return "ccache: asked to compile anew, and does not tell what it did"
        cached = f": {', '.join(map(os.path.basename, told.from_cache))}" if told.from_cache else ""
        return f"ccache: {told.compiled} compiled anew, {len(told.from_cache)} from its cache{cached}"
