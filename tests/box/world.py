"""Checkouts with build folders that nobody compiled: the few files that disk and disk_clean look at."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.box.judge import Folder
from tasks.box.mounts import read_mounts
from tasks.box.processes import Processes
from tasks.box.survey import Box, survey

DAY = 86400
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and other users' files need root")


def unused() -> Processes:
    """A box without another process."""
    return Processes(mounts=read_mounts())


def age_all(folder: Path, days: float) -> None:
    then = time.time() - days * DAY
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.utime(os.path.join(place, name), (then, then), follow_symlinks=False)
    os.utime(folder, (then, then))


class World:
    """A checkout in `root` with the configured build directory `build/Linux/Release`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools/ci_build").mkdir(parents=True)
        (root / "cmake").mkdir()
        (root / "tools/ci_build/build.py").touch()
        (root / "cmake/CMakeLists.txt").touch()
        (root / "precious.txt").write_text("mine")
        self.configured = self.add("Linux/Release", days=0)

    def add(self, name: str, days: float, home: Path | None = None, made_in: Path | None = None) -> Path:
        """A build folder under the build root whose newest file is `days` old."""
        folder = self.root / "build" / name
        (folder / "CMakeFiles/provider.dir").mkdir(parents=True)
        (folder / "CMakeCache.txt").write_text(
            f"CMAKE_HOME_DIRECTORY:INTERNAL={home or self.root / 'cmake'}\n"
            f"CMAKE_CACHEFILE_DIR:INTERNAL={made_in or folder}\nCMAKE_BUILD_TYPE:STRING={folder.name}\n"
            "CMAKE_GENERATOR:INTERNAL=Ninja\nonnxruntime_USE_CUDA:BOOL=ON\n")
        (folder / "CMakeFiles/provider.dir/fmha_sm80.cu.o").write_bytes(b"x" * 5000)
        (folder / "libonnxruntime_providers_cuda.so").write_bytes(b"y" * 9000)
        age_all(folder, days)
        return folder

    def look(self, see=unused, days: float = 30) -> Box:
        return survey(self.root, self.configured, days, see=see)

    def judged(self, folder: Path, see=unused) -> Folder:
        return next(one for one in self.look(see).folders if one.path == folder)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path.resolve() / "it's an ort %s")


def _mount(source: str, target: Path, kind: str, flags: int, data: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def _unmount(point: str) -> None:
    lazily = 2
    if ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(point), lazily) != 0:
        raise OSError(ctypes.get_errno(), f"umount {point}")


def _mounted(point: str) -> int:
    return [mount.number for mount in read_mounts() if mount.point == point][-1]


@contextlib.contextmanager
def tmpfs(target: Path, options: str = "size=1m") -> Iterator[Path]:
    target.mkdir(parents=True, exist_ok=True)
    _mount("none", target, "tmpfs", 0, options)
    number = _mounted(str(target))
    try:
        yield target
    finally:
        # It may have been moved with the folder around it.
        point = next(mount.point for mount in read_mounts() if mount.number == number)
        _unmount(point)


@contextlib.contextmanager
def bind(source: Path, target: Path) -> Iterator[Path]:
    target.mkdir(parents=True, exist_ok=True)
    _mount(os.fspath(source), target, "", 4096, "")
    number = _mounted(str(target))
    try:
        yield target
    finally:
        # It may have been moved with the folder around it.
        point = next(mount.point for mount in read_mounts() if mount.number == number)
        _unmount(point)


def as_nobody(work: Callable[[Path], str]) -> str:
    """What `work` says when a user without rights does it, in a folder of that user."""
    import psutil  # noqa: F401 - the interpreter's own folder may be closed to that user

    folder = Path(tempfile.mkdtemp(prefix="fmha-box-", dir="/var/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    reader, writer = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
                answer = work(folder)
            except BaseException as error:
                answer = f"raised {error!r}"
            os.write(writer, answer.encode())
            os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8") as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        return answer
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
