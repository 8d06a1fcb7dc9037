"""From a look at the checkout to the audit: records, cells, causes, findings. Changes no file that a build reads."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tasks.checkout.locate import require_trust
from tasks.checkout.model import Unit
from tasks.closure.catalogue import Closure
from tasks.closure.causes import Places, told
from tasks.closure.matrix import Cell, confirmed, judge_cell, read_compile
from tasks.closure.recorded import Files, UnitRecord, read_records
from tasks.closure.resolve import Resolver
from tasks.errors import UserError
from tasks.evidence.snapshot import Observer
from tasks.evidence.unseen import receipts_of_original, unseen_edit
from tasks.session import Session
from tasks.survey import Survey, WatchedUnit

__all__ = ["Audit", "AuditedUnit", "Finding", "audit_checkout"]


@dataclass(frozen=True)
class AuditedUnit:
    """One row: a unit, what is recorded of it, and its cells by header."""

    name: str
    source: str
    object: str
    target: str
    language: str
    record: UnitRecord
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Finding:
    """One cause or other finding: its key, one line, one mend, and whom it is about."""

    kind: str
    text: str
    mend: str
    units: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Audit:
    """The whole answer. `causes` explain cells that are not tracked, `findings` change no exit status."""

    ort_root: str
    build_dir: str
    generator: str
    headers: tuple[str, ...]
    units: tuple[AuditedUnit, ...]
    causes: tuple[Finding, ...]
    findings: tuple[Finding, ...]

    @property
    def tracked(self) -> bool:
        """Whether every filled cell is tracked."""
        return all(cell.state == "tracked" for unit in self.units for cell in unit.cells.values())


class _Auditor:
    """One audit at one moment."""

    def __init__(self, session: Session, survey: Survey) -> None:
        self._session = session
        self.survey = survey
        self._location = survey.location
        self._observer = Observer()
        self.files = Files(str(survey.location.build_dir))
        self.headers = survey.headers
        self._reals = {header: os.path.realpath(header) for header in survey.headers}
        self._wanted = frozenset(self._reals) | frozenset(self._reals.values())
        statements = [unit.statement for unit in survey.checkout.units]
        self.records = read_records(survey.location, statements, self.files)
        self._original = receipts_of_original(survey.location.build_dir)

    def rows(self) -> list[AuditedUnit]:
        """Surveyed units first, then those whose record names a watched header that they find no more."""
        rows = [self._row(unit) for unit in self.survey.units.values() if unit.facts.object in self.records]
        rows += [row for unit in self.survey.checkout.units
                 if unit.name not in self.survey.units and (row := self._dropped(unit)) is not None]
        return sorted(rows, key=lambda row: row.name)

    def _row(self, unit: WatchedUnit) -> AuditedUnit:
        record = self.records[unit.facts.object]
        recorded = self._wanted.intersection(record.files or ()) | self._wanted.intersection(unit.unit.statement.inputs)
        line = read_compile(unit.line.words)
        known = self._known(record, unit.facts.source)
        exists = self.files.mtime(unit.facts.object) is not None
        cells = {}
        for header in unit.reaches:
            listed = header in recorded or os.path.realpath(header) in recorded
            unseen = self._unseen(unit.name, unit.facts.object, header, record) if listed and not record.due else None
            other = "" if listed else self._namesake(header, record.files or (), unit.closure.files)
            cells[header] = judge_cell(unit.name, header, record, line, listed, known, unseen, exists, other)
        for header in self._gone(unit.reaches, recorded, record):
            if other := self._namesake(header, unit.closure.files, frozenset(record.files or ())):
                cells[header] = judge_cell(unit.name, header, record, line, True, True, None, exists, other)
        return AuditedUnit(unit.name, unit.facts.source, unit.facts.object, unit.unit.target, unit.line.language,
                           record, cells)

    def _gone(self, reaches: Iterable[str], recorded: frozenset[str], record: UnitRecord) -> list[str]:
        """Recorded watched headers that the unit does not find any more, though nothing makes the tool look."""
        if record.due is not None:
            return []
        reached = {self._reals.get(header, header) for header in reaches}
        return [header for header, real in self._reals.items() if header in recorded and real not in reached]

    def _dropped(self, unit: Unit) -> AuditedUnit | None:
        record = self.records.get(str(unit.object))
        if record is None or record.due is not None:
            return None
        recorded = self._wanted.intersection(record.files or ())
        gone = self._gone((), recorded, record) if recorded else []
        if not gone:
            return None
        line = unit.compile_line(self._session.environ)
        closure = self._closure(unit)
        cells = {}
        for header in gone:
            if other := self._namesake(header, closure.files, frozenset(record.files or ())):
                cells[header] = judge_cell(unit.name, header, record, read_compile(line.words), True, True, None, True,
                                           other)
        return AuditedUnit(unit.name, str(unit.source), str(unit.object), unit.target, line.language, record,
                           cells) if cells else None

    def _closure(self, unit: Unit) -> Closure:
        own = (str(self._location.ort_root), str(self._location.build_dir))
        search = unit.compile_line(self._session.environ).search
        resolver = Resolver(self.survey.toolchain.system_folders, own)
        return resolver.closure(unit.source, search.quote, search.angle, search.forced, search.defines)

    @staticmethod
    def _namesake(header: str, among: Iterable[str], but: frozenset[str]) -> str:
        """Another file of the header's name, in `among` and not in `but`."""
        ending = "/" + os.path.basename(header)
        return next((path for path in among if path.endswith(ending) and path != header and path not in but), "")

    def _known(self, record: UnitRecord, source: str) -> bool:
        """Whether the record names the source alone, or anything besides it that exists."""
        own = self.files.key(source)
        others = [path for path in record.files or () if path != own]
        return record.files is not None and (
            not others or any(self.files.mtime(path) is not None for path in others))

    def _unseen(self, name: str, obj: str, header: str, record: UnitRecord) -> str | None:
        receipt = self._session.store.unit(name)
        copied = receipt is None and self._original is not None
        if copied and self._original is not None:
            receipt = self._original.unit(name)
        return unseen_edit(header, obj, receipt, record.began_ns, self._observer, copied)

    def confirm(self, rows: list[AuditedUnit]) -> tuple[list[AuditedUnit], str]:
        """The rows with the build tool's own answers; where it was not asked, why."""
        from tasks.closure import asking

        try:
            require_trust(self._location)
        except UserError as error:
            return rows, error.cause
        headers = {header for row in rows for header in row.cells}
        if len(headers) > asking.MOST_HEADERS:
            return rows, f"the build tool itself was not asked: {len(headers)} headers, one dry run each"
        asked = [row for row in rows if row.record.due is None and row.record.stops is None and row.record.folded]
        statements = {str(unit.object): unit.statement for unit in self.survey.checkout.units}
        wanted = {row.object: tuple(row.cells) for row in asked}
        chosen = [statements[row.object] for row in asked]
        program = self._location.cache.get("CMAKE_MAKE_PROGRAM")
        build_dir, environ = self._location.build_dir, self._session.environ
        if self._location.cache.generator == "Unix Makefiles":
            names = {header: tuple(dict.fromkeys((header, *self.files.spellings(header),
                                                  *self.files.spellings(os.path.realpath(header)))))
                     for header in headers}
            answers = asking.ask_make(program, build_dir, environ, chosen, wanted, names)
        elif not (self._session.state.is_dir() and self._session.writable()):
            return rows, "ninja itself was not asked: copies of its logs would lie in .fmha, which is not there"
        else:
            answers = asking.ask_ninja(program, build_dir, self._location.cache.get("CMAKE_BUILD_TYPE"), environ,
                                       self._session.state, chosen, wanted, self.files)
        return [replace(row, cells={header: confirmed(cell, answers.get((row.object, header)))
                                    for header, cell in row.cells.items()}) for row in rows], ""

    def places(self, unit: AuditedUnit | None = None, sources: tuple[str, ...] = (), header: str = "",
               detail: str = "") -> Places:
        """What the texts about `unit` are filled in with."""
        return Places(str(self._location.build_dir), str(self._location.cache.home),
                      unit.target if unit else self.survey.linked.target,
                      unit.language if unit else "CUDA", sources, header, detail,
                      self._session.command("rebuild_fmha"))

    def causes(self, rows: list[AuditedUnit]) -> list[Finding]:
        """Why cells are not tracked, one finding for all cells of one cause."""
        groups: dict[tuple[str, str, str], list[tuple[AuditedUnit, Cell]]] = {}
        for row in rows:
            for cell in row.cells.values():
                if cell.cause is not None:
                    detail = cell.detail or (read_launcher(self.survey, row.name) if cell.cause == "launcher" else "")
                    groups.setdefault((cell.cause, detail, row.language), []).append((row, cell))
        found = []
        for (kind, detail, _), cells in groups.items():
            sources = tuple(dict.fromkeys(row.source for row, _ in cells))
            headers = tuple(dict.fromkeys(cell.header for _, cell in cells))
            text, mend = told(kind, self.places(cells[0][0], sources, headers[0], detail))
            found.append(Finding(kind, text, mend, tuple(dict.fromkeys(row.name for row, _ in cells)), headers))
        return found

    def finding(self, kind: str, units: Iterable[str] = (), headers: Iterable[str] = (), detail: str = "",
                source: str = "", header: str = "", row: AuditedUnit | None = None) -> Finding:
        """One finding, its texts filled in."""
        text, mend = told(kind, self.places(row, (source,), header, detail))
        return Finding(kind, text, mend, tuple(units), tuple(headers))

    def others(self, rows: list[AuditedUnit]) -> list[Finding]:
        """Findings beside the cells."""
        found = []
        unfolded = [row for row in rows if not row.record.folded and row.record.due is None]
        if unfolded:
            found.append(self.finding("not-folded", [row.name for row in unfolded], row=unfolded[0]))
        found += self._around_the_provider()
        found += [self.finding("unresolved-include", [unit.name], detail=macro)
                  for unit in self.survey.units.values() for macro in unit.closure.unresolved]
        return found

    def _around_the_provider(self) -> list[Finding]:
        from tasks.closure.order import builds_first, copies_of

        checkout, location = self.survey.checkout, self._location
        found = []
        test = checkout.test
        linked = str(checkout.provider.path)
        if test is not None and not checkout.provider.static and not builds_first(
                location, str(test.path), test.target, linked, checkout.provider.target):
            found.append(self.finding("test-target", detail=test.target))
        for copy in copies_of(location, linked, checkout.provider.targets):
            if os.path.isfile(copy.destination) and not _same(copy.source, copy.destination):
                detail = f"{copy.target} copied the provider to {copy.destination}, which is another file now"
                found.append(self.finding("post-build-copy", detail=detail, source=copy.source,
                                          header=copy.destination))
        return found


def _same(one: str, other: str) -> bool:
    try:
        return filecmp.cmp(one, other, shallow=False)
    except OSError:
        return False


def read_launcher(survey: Survey, name: str) -> str:
    """The compiler cache in front of the unit's compiler."""
    unit = survey.units.get(name)
    return read_compile(unit.line.words).launcher if unit is not None else ""


def audit_checkout(session: Session) -> Audit:
    """Look at everything now. With ``compiler=1`` the unit's compilers are asked too."""
    survey = session.survey(again=True)
    auditor = _Auditor(session, survey)
    rows = auditor.rows()
    found: list[Finding] = []
    if session.settings.flag("compiler"):
        from tasks.audit_compiler import compare

        require_trust(survey.location)
        rows, found = compare(session, survey, auditor.files, rows, auditor.finding)
    rows, not_asked = auditor.confirm(rows)
    if not_asked:
        found.append(auditor.finding("not-asked", detail=not_asked))
    return Audit(str(survey.location.ort_root), str(survey.location.build_dir), survey.location.cache.generator,
                 auditor.headers, tuple(rows), tuple(auditor.causes(rows)), (*auditor.others(rows), *found))
