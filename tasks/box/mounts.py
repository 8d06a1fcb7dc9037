"""What is mounted where, as the kernel lists it (proc_pid_mountinfo(5)); says under which names a folder is reached."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mount", "below", "is_below", "mount_of", "names_of", "parse_mounts", "read_mounts"]

_ESCAPE = re.compile(r"\\([0-7]{3})")

# File systems that one kernel alone writes. On any other one (NFS, CIFS, Lustre, 9p, FUSE ...) a folder may be in use
# on a machine that cannot be seen from here.
_LOCAL = frozenset(("bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs",
                    "reiserfs", "tmpfs", "xfs", "zfs"))


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo: `root` is the folder of the file system `device` (major:minor) that `point` shows."""

    number: int
    device: str
    root: str
    point: str
    kind: str
    options: str

    @property
    def local(self) -> bool:
        """Whether only this machine can use it."""
        return self.kind in _LOCAL


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo text, in its order."""
    mounts = []
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        words, kinds = front.split(" "), back.split(" ")
        if len(words) >= 6 and len(kinds) >= 3:
            mounts.append(Mount(int(words[0]), words[2], _plain(words[3]), _plain(words[4]), kinds[0], kinds[2]))
    return tuple(mounts)


def read_mounts(process: int | str = "self") -> tuple[Mount, ...]:
    """The mounts that a process sees. Raises :class:`OSError` where it cannot be read."""
    return parse_mounts(Path(f"/proc/{process}/mountinfo").read_text(encoding="utf-8", errors="surrogateescape"))


def is_below(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies in it, by their names."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mount_of(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that shows the absolute real path `path`: the deepest one, the last of several at one point."""
    best: Mount | None = None
    for mount in mounts:
        if is_below(path, mount.point) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def below(folder: str, mounts: Sequence[Mount]) -> list[str]:
    """Mount points in `folder`, itself left out."""
    return [mount.point for mount in mounts if mount.point != folder and is_below(mount.point, folder)]


def _rest(path: str, folder: str) -> str:
    return path[len(folder.rstrip("/")):]


def names_of(folder: str, mounts: Sequence[Mount], theirs: Sequence[Mount] | None = None) -> Iterator[str]:
    """Every path under which `theirs` (by default `mounts`) shows `folder` or a part of it.

    `folder` is a real path among `mounts`; bind mounts and other mount namespaces give it further names.
    """
    home = mount_of(folder, mounts)
    if home is None:
        return
    inner = home.root.rstrip("/") + _rest(folder, home.point) or "/"
    for mount in mounts if theirs is None else theirs:
        if mount.device != home.device:
            continue
        if is_below(inner, mount.root):
            yield mount.point.rstrip("/") + _rest(inner, mount.root) or "/"
        elif is_below(mount.root, inner):
            yield mount.point
