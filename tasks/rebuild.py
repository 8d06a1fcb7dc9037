"""`doit rebuild_fmha`: find the units, force those that are not proved, build, judge links 1 and 2."""

from __future__ import annotations

import time
from pathlib import Path

from tasks.errors import UserError
from tasks.guarded_build import BuildResult, build, force
from tasks.judging import deliver, examine, refuse_ignored
from tasks.session import Session

__all__ = ["build_units", "find_units", "force_unit", "guarded_build", "rebuild_fmha"]


def find_units(session: Session) -> None:
    """`units`: settings, checkout and closures, or the error that says what is wrong with them."""
    from tasks.checkout.locate import require_trust

    session.settings  # noqa: B018 - told before anything is looked for
    require_trust(session.location)
    session.survey()


def _lock(session: Session) -> None:
    """Take the build directory; what was seen before a wait counts no more."""
    if not session.lock.held:
        session.lock.acquire(session.settings.flag("wait"))
        session.forget_judgement()


def force_unit(session: Session, name: str) -> None:
    """`object:<unit>`: make the build recompile the unit, unless its object is proved after all."""
    if session.settings.flag("dry_run"):
        session.notes.forced[name] = "would be recompiled"
        return
    _lock(session)
    unit, judgement = session.survey().units.get(name), session.judged().units.get(name)
    if unit is None or judgement is None or judgement.verdict == "fresh":
        return
    if unit.line.language == "CUDA":
        digest = session.judged().observer.digest(unit.facts.object)
        if digest is not None:
            session.notes.former[name] = digest
    session.notes.forced[name] = force(unit, session.store, session.settings.force)
    session.say(f"   {name}: {session.notes.forced[name]} ({judgement.reason})")


def guarded_build(session: Session, targets: list[str]) -> BuildResult:
    """Run the user's build with receipts, and tell how it ended. Raises :class:`UserError` where it failed."""
    from tasks.report.progress import BuildProgress

    _lock(session)
    survey = session.survey(again=True)
    with BuildProgress(session.output) as progress:
        try:
            result = build(survey, session.store, session.lock, targets, session.environ, session.say,
                           progress.line, tuple(session.notes.forced), session.notes.former)
        finally:
            session.lock.release()
            session.forget_judgement()
    session.notes.result = result
    if result.status != 0:
        raise _build_error(result)
    return result


def _build_error(result: BuildResult) -> UserError:
    from tasks.builder.diagnosis import first_error

    assert result.log is not None
    error, cause = first_error(result.log)
    ended = f"exit status {result.status}" if result.status >= 0 else f"signal {-result.status}"
    told = f"The build failed ({ended})" + (f": {error}" if error else ".")
    return UserError(told + (f"\n  {cause}" if cause else ""), f"whole output: {result.log}")


def build_units(session: Session) -> None:
    """`build`: the user's build command for the provider (and the executable that it is linked into)."""
    survey = session.survey()
    targets = list(dict.fromkeys((survey.checkout.provider_target, survey.checkout.provider.target)))
    if session.settings.flag("dry_run"):
        _show_plan(session, targets)
        raise UserError("dry run: nothing was built.", session.command("rebuild_fmha"))
    guarded_build(session, targets)


def _show_plan(session: Session, targets: list[str]) -> None:
    from tasks.builder.command import assemble, default_jobs, shown

    settings, location = session.settings, session.location
    config = location.cache.get("CMAKE_BUILD_TYPE") or location.build_dir.name
    for judgement in session.judged().units.values():
        if judgement.verdict != "fresh":
            session.say(f"   {judgement.name}: would be recompiled ({judgement.reason})")
    for words in assemble(location.ort_root, location.build_dir, config, targets, settings.jobs or default_jobs(),
                          settings.build_command):
        session.say(f"   $ {shown(words)}")


def _explain(result: BuildResult) -> str | None:
    """Why a unit that was to be recompiled is not proved, in one line."""
    from tasks.builder.diagnosis import first_error

    if result.not_rewritten:
        told = f"{', '.join(result.not_rewritten)}: the build succeeded, but did not rewrite the object."
        error = first_error(result.log)[0] if result.log else None
        return told + (f"\n  {error}" if error else "")
    if result.restored:
        return (f"{', '.join(result.restored)}: the build did not compile, but put an old object there"
                " (a compiler launcher's cache, or a script).")
    if result.moved:
        name, paths = next(iter(result.moved.items()))
        return f"{Path(paths[0]).name} was edited while {name} was being compiled; what the object holds is unknown."
    return None


def rebuild_fmha(session: Session, json: bool = False) -> None:
    """`rebuild_fmha`: links 1 and 2, after the build."""
    started = time.time()
    refuse_ignored(session)
    report = examine(session, "rebuild_fmha", started)
    deliver(session, report, json)
    result = session.notes.result
    if result is not None and report.verdict == "fresh":
        session.say("\n".join((_told(result), *_device_lines(session, result))))
    if report.verdict != "fresh":
        why = _explain(result) if result is not None else None
        raise UserError(why or f"{report.verdict}: not every object is proved.", session.command("rebuild_fmha"))


def _device_lines(session: Session, result: BuildResult) -> list[str]:
    from tasks.unit_code import read_unit_code, told

    units, observer = session.survey().units, session.judged().observer
    return told((name, read_unit_code(units[name], session.state, observer.digest(units[name].facts.object)))
                for name in sorted(result.recompiled) if name in units)


def _told(result: BuildResult) -> str:
    names = ", ".join(sorted(result.recompiled)) or "nothing"
    return f"recompiled: {names} ({result.seconds:.1f} s)"

