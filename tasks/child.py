"""Starts a child process with exactly the environment that it is given.

Every package may import this module; it imports nothing of the project but the errors.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import subprocess

__all__ = ["start_child"]


def start_child(words: Sequence[str], cwd: str | Path, environ: Mapping[str, str],
                **options: Any) -> subprocess.Popen[bytes]:
    """Start a command, never through a shell; `options` are :class:`subprocess.Popen`'s. It reads no input.

    A program without a folder is looked for on the PATH of `environ`. Raises :class:`OSError`.
    """
    import subprocess

    from plumbum import local

    program = words[0] if "/" in words[0] else shutil.which(words[0], path=environ.get("PATH"))
    if program is None:
        raise FileNotFoundError(2, "it is not on PATH", words[0])
    # plumbum adds `env` to the environment that it saw when it was imported: empty that first.
    with local.env():
        local.env.clear()
        return cast("subprocess.Popen[bytes]", local[program][list(words[1:])].popen(
            cwd=str(cwd), env=dict(environ), stdin=subprocess.DEVNULL, **options))
