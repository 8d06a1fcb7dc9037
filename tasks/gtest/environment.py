"""The environment that a test process gets: scrubbed of what can make a run green by accident, and said.

Knows variables by name only; it reads and changes nothing of this process's own environment.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RUN_MARK", "Environment", "prepare"]

# Every process of one run carries it, so that those that left the session are found and ended too.
RUN_MARK = "DOIT_TEST_MEA_RUN"

_SCRUBBED = (
    "GTEST_*", "TEST_*", "TESTBRIDGE_*", "XML_OUTPUT_FILE",  # selection, sharding and output, Bazel's too
    "ORT_DISABLE_*", "ORT_ENABLE_*", "ORT_MIN_SEQ_LEN_*", "ORT_UNIT_TEST_MAIN_LOG_LEVEL",  # the dispatch
    "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG", "LD_DEBUG_OUTPUT",  # what is mapped, and how it is told
    "CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT",  # which code runs
)
# Behind a launcher (a container, another host) there may be variables that are not seen here.
_UNSET_BEHIND_LAUNCHER = (
    "GTEST_FILTER", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX", "GTEST_SHARD_STATUS_FILE", "GTEST_REPEAT",
    "GTEST_ALSO_RUN_DISABLED_TESTS", "GTEST_FAIL_FAST", "GTEST_OUTPUT", "GTEST_FLAGFILE", "TEST_TOTAL_SHARDS",
    "TEST_SHARD_INDEX", "TESTBRIDGE_TEST_ONLY", "XML_OUTPUT_FILE", "ORT_DISABLE_FLASH_ATTENTION",
    "ORT_DISABLE_MEMORY_EFFICIENT_ATTENTION", "LD_PRELOAD", "LD_AUDIT", "CUDA_FORCE_PTX_JIT",
)
# Without these the dispatch lines are not printed.
_DISPATCH_LINES = {"ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO": "1", "ORT_UNIT_TEST_MAIN_LOG_LEVEL": "0"}
_SHOWN = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class Environment:
    """What a command is started with. `added` is only for the test process, not for its launcher."""

    base: Mapping[str, str]
    added: Mapping[str, str]
    scrubbed: tuple[str, ...]
    shown: Mapping[str, str]
    launcher: tuple[str, ...]
    keep: tuple[str, ...]

    def command(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """The words to start; behind a launcher the environment travels as words."""
        if not self.launcher:
            return words
        unset = [word for name in dict.fromkeys((*self.scrubbed, *_UNSET_BEHIND_LAUNCHER))
                 if not _any(self.keep, name) for word in ("-u", name)]
        added = (f"{name}={value}" for name, value in self.added.items())
        return (*self.launcher, "env", *unset, *added, *words)

    def variables(self) -> dict[str, str]:
        """The environment of the first process of the command."""
        return dict(self.base) if self.launcher else {**self.base, **self.added}


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def prepare(environ: Mapping[str, str], keep: tuple[str, ...], launcher: tuple[str, ...], mark: str,
            loader_log: Path | None = None) -> Environment:
    """Scrub `environ` but for the names (or patterns) in `keep`; with a path, the loader logs there."""
    scrubbed = tuple(sorted(name for name in environ if _any(_SCRUBBED, name) and not _any(keep, name)))
    base = {name: value for name, value in environ.items() if name not in scrubbed}
    added = dict(_DISPATCH_LINES)
    if loader_log is not None:
        added |= {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(loader_log)}
    shown = {name: environ[name] for name in _SHOWN if name in environ}
    return Environment({**base, RUN_MARK: mark}, added, scrubbed, shown, launcher, keep)
