#!/usr/bin/env python3
"""Configures and builds the miniature checkout: the few options of ONNX Runtime's build.py that matter here.

Standard library only. Knows where nvcc may be and which paths the tools cannot stand; all else is CMake's.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

_ROOT = Path(os.path.abspath(__file__)).parents[2]  # links stay: the checkout keeps the name it is reached by
# What CMake, make, ninja and nvcc all take in a path. Measured: CMake fails on ", nvcc on ' and $, make's
# dependencies are lost after %, ninja's after ' $ and &.
_PLAIN = re.compile(r"[\w ./+,=@~^-]*")
# nvcc runs its own parts through a shell, without quotes.
_PLAIN_TOOLKIT = re.compile(r"[\w./+,=@~^-]*")


class BuildError(Exception):
    """What the user has to mend; the text says how."""


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    """The command line; phases that are not named all run."""
    parser = argparse.ArgumentParser(prog="build.sh", description="Build the miniature checkout.",
                                     allow_abbrev=False)
    parser.add_argument("--build_dir", default=str(_ROOT / "build" / "Linux"),
                        help="parent of the build directories, one a configuration (build/Linux)")
    parser.add_argument("--config", default="Debug",
                        choices=["Debug", "MinSizeRel", "Release", "RelWithDebInfo"],
                        help="the configuration (Debug)")
    parser.add_argument("--update", action="store_true", help="run CMake")
    parser.add_argument("--build", action="store_true", help="build; neither phase named: both run")
    parser.add_argument("--parallel", nargs="?", type=int, const=0, default=1, metavar="N",
                        help="compile jobs; without a number one a core (1)")
    parser.add_argument("--target", metavar="T", help="build this target only; the last one named wins")
    parser.add_argument("--cmake_generator", metavar="G", help="the generator (CMake's own default)")
    parser.add_argument("--cmake_extra_defines", nargs="+", action="append", default=[], metavar="D",
                        help="cache entries NAME=VALUE, without -D; may be repeated")
    parser.add_argument("--allow_running_as_root", action="store_true",
                        help="accepted; root may build anyway")
    arguments = parser.parse_args(argv)
    if arguments.parallel < 0:
        parser.error("--parallel takes a number of jobs, 0 for one a core")
    if not arguments.update and not arguments.build:
        arguments.update = arguments.build = True
    arguments.cmake_extra_defines = [define for group in arguments.cmake_extra_defines for define in group]
    return arguments


def plain_path(path: Path, allowed: re.Pattern[str] = _PLAIN) -> Path:
    """`path` itself, or a link to it under a name that every tool can stand.

    The link's name follows from the path, so that every run of one checkout sees the same names. Its
    folder is the user's own and not writable by others.
    """
    if allowed.fullmatch(str(path)):
        return path
    base = Path(tempfile.gettempdir())
    if not _PLAIN_TOOLKIT.fullmatch(str(base)):
        base = Path("/tmp")
    folder = base / f"miniort-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise BuildError(f"{folder} is needed for a link to {path}, but is not a folder of yours alone.\n"
                         f"remove it: rm -r {shlex.quote(str(folder))}")
    link = folder / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    if not link.is_symlink() or Path(os.readlink(link)) != path:
        fresh = folder / f"{link.name}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(path)
        fresh.replace(link)
    return link


def _package_folders() -> Iterable[Path]:
    names = (sysconfig.get_path(key) for key in ("purelib", "platlib"))
    return dict.fromkeys(Path(name) for name in (*names, *sys.path) if name)


def find_nvcc() -> Path | None:
    """nvcc of `CUDA_HOME`, of `PATH`, or of the PyPI packages beside this Python, in this order."""
    home = os.environ.get("CUDA_HOME")
    if home and os.access(nvcc := Path(home) / "bin" / "nvcc", os.X_OK):
        return nvcc.absolute()
    if found := shutil.which("nvcc"):
        return Path(found).absolute()
    for folder in _package_folders():
        for nvcc in sorted(folder.glob("nvidia/cu[0-9]*/bin/nvcc"), reverse=True):
            if os.access(nvcc, os.X_OK):
                return nvcc
    return None


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"{name} is not on PATH.\ninstall it: python3 -m pip install {name}")
    return found


def _run(command: list[str]) -> int:
    print("+", shlex.join(command), flush=True)
    code = subprocess.run(command, check=False).returncode
    return 128 - code if code < 0 else code


def _is_set(defines: list[str], name: str) -> bool:
    return any(re.split("[:=]", define, maxsplit=1)[0] == name for define in defines)


def configure(cmake: str, root: Path, build_dir: Path, arguments: argparse.Namespace) -> int:
    """Run CMake. The compiler is named at the first run only: naming another later would wipe the cache."""
    defines = [f"CMAKE_BUILD_TYPE={arguments.config}", "onnxruntime_USE_CUDA=ON"]
    extra = arguments.cmake_extra_defines
    first = not (build_dir / "CMakeCache.txt").exists()
    if first and not _is_set(extra, "CMAKE_CUDA_COMPILER") and not os.environ.get("CUDACXX"):
        nvcc = find_nvcc()
        if nvcc is not None:
            toolkit = plain_path(nvcc.parents[1], _PLAIN_TOOLKIT)
            defines.append(f"CMAKE_CUDA_COMPILER={toolkit / 'bin' / 'nvcc'}")
    command = [cmake, "-S", str(root / "cmake"), "-B", str(build_dir)]
    if arguments.cmake_generator:
        command += ["-G", arguments.cmake_generator]
    return _run([*command, *(f"-D{define}" for define in (*defines, *extra))])


def build(cmake: str, build_dir: Path, arguments: argparse.Namespace) -> int:
    """Build one target, or all."""
    command = [cmake, "--build", str(build_dir), "--config", arguments.config]
    if arguments.target:
        command += ["--target", arguments.target]
    return _run([*command, "--parallel", str(arguments.parallel or os.cpu_count() or 1)])


def _build_dir(arguments: argparse.Namespace, root: Path) -> Path:
    """`<build_dir>/<config>`, reached through the checkout's own plain name where it lies in the checkout."""
    wanted = Path(os.path.abspath(arguments.build_dir), arguments.config)
    wanted.mkdir(parents=True, exist_ok=True)
    if wanted.is_relative_to(_ROOT):
        inside = root / wanted.relative_to(_ROOT)
        if _PLAIN.fullmatch(str(inside)):
            return inside
    return plain_path(wanted)


def main(argv: list[str]) -> int:
    """Run the phases asked for; the first failure's exit code is the result."""
    arguments = parse_arguments(argv)
    try:
        cmake = _program("cmake")
        root = plain_path(_ROOT)
        build_dir = _build_dir(arguments, root)
        code = configure(cmake, root, build_dir, arguments) if arguments.update else 0
        if code == 0 and arguments.build:
            code = build(cmake, build_dir, arguments)
    except (BuildError, OSError) as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
