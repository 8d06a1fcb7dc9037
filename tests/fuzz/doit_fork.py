"""Runs `python -m doit` in a fork of this process, which has imported everything already.

The same module runs as `__main__`, with the same arguments, environment and folder; only the imports
are spared, which are two thirds of the time of a command that has nothing to do.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import PROJECT, Run, clean_environment

__all__ = ["ForkedDoit", "preload"]


def preload() -> None:
    """Import what a command imports, so that forks have it."""
    import tasks

    for module in pkgutil.walk_packages(tasks.__path__, "tasks."):
        importlib.import_module(module.name)
    for name in ("psutil", "plumbum", "rich.console", "rich.table", "rich.progress", "sqlite3",
                 "elftools.elf.elffile", "doit.doit_cmd", "doit.cmd_run", "multiprocessing"):
        importlib.import_module(name)


class ForkedDoit:
    """One running `doit`, in a session of its own. Its output goes to `log` with suffixes of its own."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        self._out, self._err = log.with_suffix(".out"), log.with_suffix(".err")
        environment = clean_environment(environ)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        self._status: int | None = None
        if self.pid == 0:
            self._become_doit(arguments, environment)

    def _become_doit(self, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        status = 70
        try:
            os.setsid()
            for descriptor, path in ((0, Path(os.devnull)), (1, self._out), (2, self._err)):
                flags = os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
                opened = os.open(path, flags, 0o644)
                os.dup2(opened, descriptor)
                os.close(opened)
            sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False)
                                                 for number, mode in ((0, "r"), (1, "w"), (2, "w")))
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(PROJECT)
            os.environ.clear()
            os.environ.update(environment)
            sys.path.insert(0, str(PROJECT))
            sys.argv = ["doit", *arguments]
            runpy.run_module("doit", run_name="__main__", alter_sys=True)
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1 if end.code else 0
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except OSError:
                    status = 120
            os._exit(status)

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def wait(self, timeout: float = 120.0) -> Run:
        """Its status and output; :class:`subprocess.TimeoutExpired` where it does not end."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired("doit", timeout)
            time.sleep(0.002)
        assert self._status is not None
        return Run(self._status, self._out.read_text(errors="replace"), self._err.read_text(errors="replace"))

    def kill(self) -> None:
        """SIGKILL, and wait for the end; without effect where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
