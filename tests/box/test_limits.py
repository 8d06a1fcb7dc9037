"""How much of the machine a build may take: affinity, and control groups of both versions."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.box.limits import Limits, group_limits
from tasks.builder.command import default_jobs
from tests.support import PROJECT

GB = 1_000_000_000
UNLIMITED_V1 = "9223372036854771712"
STAT_V1 = "inactive_file 1\nactive_file 1\ntotal_inactive_file 600000000\ntotal_active_file 400000000\n"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


def process(tmp_path: Path, cgroup: str, *mounts: str) -> Path:
    """A process's folder in /proc; mounts are `root point kind options`, the point below `tmp_path`."""
    folder = tmp_path / "proc"
    lines = []
    for number, mount in enumerate(mounts):
        root, point, kind, options = mount.split(" ")
        lines.append(f"{number} 1 0:{number} {root} {tmp_path}/{point} rw - {kind} {kind} {options}\n")
    write(folder, cgroup=cgroup, mountinfo="".join(lines))
    return folder


def test_without_control_groups_nothing_is_limited(tmp_path: Path) -> None:
    assert group_limits(tmp_path / "none") == Limits(math.inf, math.inf)


def test_version_2_quota_and_memory_of_a_group_above_count(tmp_path: Path) -> None:
    given = process(tmp_path, "0::/slurm/job/step", "/ cg cgroup2 rw,nsdelegate")
    write(tmp_path / "cg/slurm", cpu__max="600000 100000", memory__max=str(20 * GB), memory__current=str(9 * GB),
          memory__stat=f"anon 1\ninactive_file {2 * GB}\nactive_file {GB}")
    write(tmp_path / "cg/slurm/job", cpu__max="max 100000", memory__max="max", memory__current=str(GB))
    assert group_limits(given) == Limits(6.0, 14 * GB)


def test_version_2_memory_high_limits_before_memory_max(tmp_path: Path) -> None:
    given = process(tmp_path, "0::/", "/ cg cgroup2 rw")
    write(tmp_path / "cg", memory__max="max", memory__high=str(8 * GB), memory__current="0")
    assert group_limits(given).memory == 8 * GB


def test_version_1_reads_each_controllers_own_hierarchy(tmp_path: Path) -> None:
    given = process(tmp_path, "4:memory:/m/inner\n2:cpu,cpuacct:/c\n1:name=systemd:/s\n0::/",
                    "/ memory cgroup rw,memory", "/ cpu cgroup rw,cpu,cpuacct", "/ systemd cgroup rw,name=systemd",
                    "/ unified cgroup2 rw")
    write(tmp_path / "cpu/c", cpu__cfs_quota_us="250000", cpu__cfs_period_us="100000")
    write(tmp_path / "memory/m", memory__limit_in_bytes=str(10 * GB), memory__usage_in_bytes=str(3 * GB),
          memory__stat=STAT_V1)
    write(tmp_path / "memory/m/inner", memory__limit_in_bytes=UNLIMITED_V1, memory__usage_in_bytes=str(GB))
    assert group_limits(given) == Limits(2.5, 8 * GB)


def test_version_1_without_a_quota_limits_no_cores(tmp_path: Path) -> None:
    given = process(tmp_path, "2:cpu:/", "/ cpu cgroup rw,cpu")
    write(tmp_path / "cpu", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert group_limits(given).cores == math.inf


@pytest.mark.parametrize(("path", "root"), [("/docker/abc", "/docker/abc"), ("/docker/abc", "/kubepods/x"),
                                            ("/../../other", "/")])
def test_a_container_finds_its_own_group_at_the_mount(tmp_path: Path, path: str, root: str) -> None:
    given = process(tmp_path, f"0::{path}", f"{root} cg cgroup2 rw")
    write(tmp_path / "cg", cpu__max="200000 100000")
    assert group_limits(given).cores == 2.0


def test_a_group_that_uses_more_than_its_limit_has_nothing_left(tmp_path: Path) -> None:
    given = process(tmp_path, "0::/", "/ cg cgroup2 rw")
    write(tmp_path / "cg", memory__max=str(GB), memory__current=str(2 * GB))
    assert group_limits(given).memory == 0


# -- jobs --------------------------------------------------------------------------------------------------------


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Sets cores and gigabytes."""
    def put(cores: float, gigabytes: float) -> None:
        monkeypatch.setattr("tasks.box.limits.read_limits", lambda: Limits(cores, gigabytes * GB))

    return put


@pytest.mark.parametrize(("cores", "gigabytes", "threads", "jobs"), [
    (16, 64, 1, 16), (16, 24, 1, 6), (2.5, 64, 1, 2), (0.5, 64, 1, 1), (16, 1, 1, 1),
    (16, 64, 4, 4), (16, 24, 4, 1), (16, 40, 4, 2), (2, 64, 4, 1)])
def test_jobs_times_threads_stays_within_cores_and_memory(box: Callable[[float, float], None], cores: float,
                                                          gigabytes: float, threads: int, jobs: int) -> None:
    box(cores, gigabytes)
    assert default_jobs(threads) == jobs


def test_affinity_limits_the_jobs() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert default_jobs() == 1
    finally:
        os.sched_setaffinity(0, allowed)


# -- real groups -------------------------------------------------------------------------------------------------


def _make(points: list[Path], name: str) -> list[Path]:
    made: list[Path] = []
    for point in points:
        (point / name).mkdir()
        made.append(point / name)
    return made


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """A real control group that limits cores and memory, one folder for each hierarchy."""
    root, name = Path("/sys/fs/cgroup"), f"fmha-test-{os.getpid()}"
    both = (root / "cgroup.subtree_control").exists()
    points = [root] if both else [root / "cpu", root / "memory"]
    try:
        made = _make(points, name)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if both and not {"cpu", "memory"} <= set((root / "cgroup.subtree_control").read_text().split()):
            pytest.skip("cpu and memory are not delegated")
        yield made
    finally:
        for folder in made:
            folder.rmdir()


def _limit(groups: list[Path], files: dict[str, str]) -> None:
    for name, text in files.items():
        for path in (folder / name for folder in groups):
            if path.exists():
                path.write_text(text)


def test_a_real_control_group_limits_cores_and_memory(groups: list[Path]) -> None:
    _limit(groups, {"cpu.max": "150000 100000", "memory.max": "5000000512", "cpu.cfs_quota_us": "150000",
                    "memory.limit_in_bytes": "5000000512"})

    def enter() -> None:
        for folder in groups:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    code = ("from tasks.box.limits import *; from tasks.builder.command import default_jobs; limits = group_limits();"
            "print(limits.cores, limits.memory, default_jobs())")
    told = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True,
                          preexec_fn=enter).stdout.split()
    assert float(told[0]) == 1.5
    assert 4.5 * GB < float(told[1]) <= 5.1 * GB
    assert told[2] == "1"
