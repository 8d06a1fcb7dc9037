"""Disk quotas of the current user and group, where the kernel keeps them (quotactl_fd(2), Linux 5.14 and newer)."""

from __future__ import annotations

import ctypes
import os
import struct

__all__ = ["Left", "decode", "quota_left"]

# Left bytes and inodes; None where there is no limit.
Left = tuple[int | None, int | None]

# The same number on every architecture (asm-generic/unistd.h).
_QUOTACTL_FD = 443
_GET_QUOTA = 0x800007
_USER, _GROUP = 0, 1
# struct if_dqblk of linux/quota.h: limits in KiB, space in bytes.
_RECORD = struct.Struct("=8QI4x")


def decode(record: bytes) -> Left:
    """What a quota record leaves. A limit of 0 is none; the soft limit counts where there is no hard one."""
    hard, soft, used, hard_inodes, soft_inodes, used_inodes, *_ = _RECORD.unpack(record[:_RECORD.size])
    limit, inodes = (hard or soft) * 1024, hard_inodes or soft_inodes
    return max(0, limit - used) if limit else None, max(0, inodes - used_inodes) if inodes else None


def quota_left(folder: str) -> Left:
    """The tighter of the user's and the group's quota; (None, None) where there is none or it cannot be read."""
    if os.geteuid() == 0:
        return None, None  # no quota holds root
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None, None
    try:
        found = [decode(record) for kind, who in ((_USER, os.geteuid()), (_GROUP, os.getegid()))
                 if (record := _ask(descriptor, kind, who)) is not None]
    finally:
        os.close(descriptor)
    sizes = [size for size, _ in found if size is not None]
    inodes = [count for _, count in found if count is not None]
    return min(sizes, default=None), min(inodes, default=None)


def _ask(descriptor: int, kind: int, who: int) -> bytes | None:
    record = ctypes.create_string_buffer(_RECORD.size)
    try:
        status = ctypes.CDLL(None, use_errno=True).syscall(
            ctypes.c_long(_QUOTACTL_FD), ctypes.c_int(descriptor), ctypes.c_uint(_GET_QUOTA << 8 | kind),
            ctypes.c_uint(who), record)
    except (OSError, AttributeError):
        return None
    return record.raw if status == 0 else None
