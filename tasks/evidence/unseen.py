"""Edits that are there already and that no build tool will see, since it compares modification times alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from tasks.evidence import STATE_NAME
from tasks.evidence.receipts import FORMAT, ReceiptStore, UnitReceipt, unsealed
from tasks.evidence.snapshot import Observer

__all__ = ["Unseen", "receipts_of_original", "unseen_edit"]

# What lay down an object with an older mtime (an archive, a cache) did so much later than it was compiled.
_LAID_DOWN_NS = 2_000_000_000

Unseen = Literal["old-mtime", "inode-changed", "edited-while-compiling", "link-repointed", "copied"]


def receipts_of_original(build_dir: Path) -> ReceiptStore | None:
    """The receipts that a copied build directory brought along; None where it is no copy.

    They prove nothing ``fresh``, but an object with their digest was compiled from their inputs.
    """
    own = ReceiptStore(build_dir)
    for path in sorted((build_dir / STATE_NAME / "receipts").glob("unit.*.json")):
        try:
            data = unsealed(path.read_text(encoding="utf-8", errors="surrogateescape")) or {}
            home = tuple(data["home"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if data.get("format") == FORMAT and len(home) == 2 and home != own.home:
            original = ReceiptStore(build_dir)
            original.home = (int(home[0]), int(home[1]))
            return original
    return None


def _link_time(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns if os.path.islink(path) else 0
    except OSError:
        return 0


def unseen_edit(header: str, obj: str, receipt: UnitReceipt | None, began_ns: int | None, observer: Observer,
                copied: bool = False) -> Unseen | None:
    """Why `header` is not newer than `obj` and yet not what `obj` was compiled from; None where nothing says so.

    A receipt of this very object decides. Without one, times can only raise a doubt: the header was
    written while the object was being compiled (`began_ns`), or its inode moved after the object's.
    """
    now, made = observer.identity(header), observer.identity(obj)
    if now is None or made is None or now.mtime_ns > made.mtime_ns:
        return None
    moved = receipt is not None and header in receipt.moved
    if receipt is not None and not moved and observer.is_digest(obj, receipt.object_identity, receipt.object_digest):
        compiled = receipt.inputs.get(header)
        if compiled is None or observer.is_digest(header, *compiled):
            return None
        return "copied" if copied else "old-mtime"
    if _link_time(header) > made.mtime_ns:
        return "link-repointed"
    if began_ns is not None and began_ns < now.mtime_ns:
        return "edited-while-compiling"
    laid_down = made.ctime_ns - made.mtime_ns > _LAID_DOWN_NS
    return "inode-changed" if now.ctime_ns > made.ctime_ns and not laid_down else None
