"""What the last test run proved of links 4 to 7, kept with the digests of everything that ran.

When one of those files is another now, the evidence is of something that is gone: `not run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tasks.evidence.chain import Link, not_checked
from tasks.evidence.receipts import sealed, unsealed, write_atomically
from tasks.evidence.snapshot import Identity, Observer

__all__ = ["FIRST_LINK", "RunStore"]

FIRST_LINK = 4
_LAST_LINK = 7
_FORMAT = 2


class RunStore:
    """`run.json` in the state folder."""

    def __init__(self, state: Path) -> None:
        self._path = state / "run.json"

    def save(self, links: Iterable[Link], files: Iterable[str]) -> None:
        """Keep the links with the identities and digests of the files that ran. Raises :class:`OSError`."""
        observer = Observer()
        known = {path: (identity, digest) for path in files
                 if (identity := observer.identity(path)) and (digest := observer.digest(path))}
        document = {"format": _FORMAT, "files": known,
                    "links": [[link.n, link.verdict, list(link.evidence), link.remedy] for link in links]}
        write_atomically(self._path, sealed(document))

    def links(self, provider: str, observer: Observer, remedy: str) -> list[Link]:
        """Links 4 to 7 as the last run left them, or as `not run`."""
        data = self._load()
        why = "not run" if data is None else self._objection(data["files"], provider, observer)
        if data is None or why:
            return [not_checked(n, why).with_remedy(remedy) for n in range(FIRST_LINK, _LAST_LINK + 1)]
        return [Link(n, verdict, tuple(evidence), mend) for n, verdict, evidence, mend in data["links"]]

    def _load(self) -> Mapping[str, Any] | None:
        try:
            data = unsealed(self._path.read_text(encoding="utf-8", errors="surrogateescape"))
            if data is None or data["format"] != _FORMAT or not isinstance(data["files"], dict):
                return None
            return data if [entry[0] for entry in data["links"]] == [4, 5, 6, 7] else None
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    @staticmethod
    def _objection(files: Mapping[str, Any], provider: str, observer: Observer) -> str:
        if provider not in files:
            return "not run with this provider"
        for path, (identity, digest) in files.items():
            if not observer.is_digest(path, Identity(*identity), digest):
                return f"not run since {Path(path).name} changed"
        return ""
