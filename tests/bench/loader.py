"""What it costs to know which libraries a test process mapped: the loader's log, and an audit library beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tasks.gtest.environment import prepare
from tasks.gtest.loader import compare, identity_of, read_logs
from tests.bench.measure import Figure, in_turn, run
from tests.support import Tree, clean_environment

__all__ = ["loader_figures"]

_PROVIDER = "libonnxruntime_providers_cuda.so"
# The other mechanism, for comparison: the loader calls it for every library that it maps.
_AUDIT = """\
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
unsigned la_version(unsigned version) { return version; }
unsigned la_objopen(struct link_map *map, Lmid_t id, uintptr_t *cookie) {
  FILE *file = fopen(getenv("AUDIT_LOG"), "a");
  if (file) { fprintf(file, "%s\\n", map->l_name); fclose(file); }
  return 0;
}
"""


def loader_figures(folder: Path, rounds: int) -> dict[str, Figure]:
    """The miniature checkout's test executable by itself, with the log that `test_mea` reads, and audited."""
    tree = Tree(folder / "miniort", defines=["MINIORT_HOST_ONLY=ON"])
    tree.configure()
    if (done := tree.make()).status:
        raise RuntimeError(done.text)
    source, library = folder / "audit.c", folder / "audit.so"
    source.write_text(_AUDIT)
    plain = {"PATH": clean_environment()["PATH"], "HOME": str(folder)}
    run(["gcc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], folder, plain)
    binary, provider = tree.build_dir / "onnxruntime_provider_test", tree.build_dir / _PROVIDER
    logs = folder / "logs"
    logs.mkdir()

    def test(environ: Mapping[str, str]) -> tuple[float, float, float]:
        return run([str(binary)], tree.build_dir, environ)

    def logged() -> tuple[float, float, float]:
        wall, cpu, peak = test(prepare(plain, (), (), "bench", logs / "loader").variables())
        began, processor = time.monotonic(), time.process_time()
        mapped = compare(read_logs(logs / "loader", binary), provider, identity_of(provider), tree.build_dir)
        cost = time.monotonic() - began, time.process_time() - processor
        if mapped.ours is None:
            raise RuntimeError(f"{provider} was not mapped")
        for log in logs.iterdir():
            log.unlink()
        return wall + cost[0], cpu + cost[1], peak

    def audited() -> tuple[float, float, float]:
        timing = test({**prepare(plain, (), (), "bench").variables(), "LD_AUDIT": str(library),
                       "AUDIT_LOG": str(logs / "audit")})
        if _PROVIDER not in (logs / "audit").read_text():
            raise RuntimeError(f"{provider} was not mapped")
        (logs / "audit").unlink()
        return timing

    commands: dict[str, Callable[[], tuple[float, float, float]]] = {
        "test executable": lambda: test(prepare(plain, (), (), "bench").variables()),
        "with the loader's log, written and read": logged, "with an audit library": audited}
    return in_turn(commands, rounds)
