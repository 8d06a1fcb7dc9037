"""`doit rebuild_fmha`: find the units, force those that are not proved, build, judge links 1 and 2."""

from __future__ import annotations

import os
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.builder.aside import Aside
from tasks.errors import UserError
from tasks.guarded_build import BuildResult, force
from tasks.judging import deliver, examine, refuse_ignored
from tasks.session import Session

if TYPE_CHECKING:
    from tasks.report.progress import BuildProgress

__all__ = ["build_units", "find_units", "force_unit", "guarded_build", "rebuild_fmha"]


def find_units(session: Session) -> None:
    """`units`: settings, checkout and closures, or the error that says what is wrong with them."""
    from tasks.checkout.locate import require_trust

    session.settings  # noqa: B018 - told before anything is looked for
    require_trust(session.location)
    session.survey()


def _take(session: Session) -> None:
    """Take the build directory, where there is room to build; what was seen before another run's build counts no more.

    A refused build leaves nothing behind, not even a lock. Whoever waits asks for room when the wait is over: until
    then the other build has its temporary files there.
    """
    if session.lock.held:
        return
    waits = session.settings.flag("wait")
    if not waits:
        _require_room(session)
    session.lock.acquire(waits)
    back = Aside(session.state).restore()
    if back:
        session.say(f"   put back, since a build that moved them was killed: {', '.join(path.name for path in back)}")
    if back or session.somebody_built():
        session.forget_judgement()
    if waits:
        try:
            _require_room(session)
        except UserError:
            session.lock.release()
            raise


def _unproved(session: Session) -> list[str]:
    return session.judged().unproved


def _require_room(session: Session) -> None:
    """Refuse where a build would not find room; without effect where nothing is to be built."""
    if session.judged().proved:
        return
    from tasks.box.space import estimate, require_space
    from tasks.building import jobs_for, launchers_in

    survey, settings = session.survey(), session.settings
    objects = [survey.units[name].unit.object for name in _unproved(session)]
    expected = estimate(objects, [Path(step.output) for step in survey.steps], jobs_for(survey))
    require_space(survey.location.build_dir, survey.location.ort_root, session.environ, expected, settings.min_free_gb,
                  caches=bool(launchers_in(survey)))


def force_unit(session: Session, name: str) -> None:
    """`object:<unit>`: make the build recompile the unit, unless its object is proved after all."""
    if session.settings.flag("dry_run"):
        return
    _take(session)
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
    from tasks.building import build
    from tasks.report.estimate import remember

    if session.settings.flag("dry_run"):
        _show_plan(session, targets)
        raise UserError("dry run: nothing was touched or built.", session.command(session.task))
    _take(session)
    # As it is since the last build. What moves until this one's own snapshot is found after it.
    survey = session.survey()
    expected = _unproved(session)
    try:
        with _progress(session, expected) as progress:
            result = build(survey, session.store, session.lock, targets, session.environ, progress,
                           tuple(session.notes.forced), session.notes.former)
    except KeyboardInterrupt:
        session.forget_judgement()
        raise _interrupted(session, expected) from None
    finally:
        session.lock.release()
        session.forget_judgement()
    session.notes.result = result
    if result.after is not None:
        session.adopt(result.after)
    for line in result.launchers:
        session.say(f"   {line}")
    if result.status != 0:
        raise _build_error(session, result)
    if result.recompiled:
        with suppress(OSError):
            remember(session.state, result.recompiled, result.seconds)
    return result


def _progress(session: Session, names: list[str]) -> BuildProgress:
    from tasks.builder.watch import BuildWatch
    from tasks.report.estimate import about, past_builds
    from tasks.report.progress import BuildProgress

    units = {name: session.survey().units[name].facts for name in names}
    watch = BuildWatch({name: (facts.source, facts.object) for name, facts in units.items()})
    return BuildProgress(session.output, watch, about(past_builds(session.state), names))


def _interrupted(session: Session, expected: list[str]) -> UserError:
    """What the interrupted build has finished, and what the next run will do."""
    missing = _unproved(session)
    done = [name for name in expected if name not in missing]
    told = "interrupted; everything that the build started is ended."
    if done:
        told += f" Compiled and proved: {', '.join(done)}."
    pending = session.judged().pending
    if pending.made_first:
        told += f"\n  {pending.told()[0]}: the next run makes that first."
    if missing:
        told += f"\n  The next run compiles {', '.join(missing)}."
    elif not pending.made_first:
        told += "\n  The next run links the provider."
    return UserError(told, session.command(session.task))


def _build_error(session: Session, result: BuildResult) -> UserError:
    from tasks.box.space import full_places
    from tasks.builder.diagnosis import first_error

    assert result.log is not None
    error, cause = first_error(result.log)
    ended = f"exit status {result.status}" if result.status >= 0 else f"signal {-result.status}"
    told = f": {error.replace(f'{session.location.ort_root}/', '')}" if error else "."
    lines = [f"The build failed ({ended}){told}"]
    if cause is not None:
        lines.append(cause.told)
        if cause.about_space:
            full = full_places(session.location.build_dir, session.location.ort_root, session.environ)
            lines += [f"  full now: {place}" for place in full]
    return UserError("\n  ".join(lines), f"whole output: {result.log}")


def build_units(session: Session) -> None:
    """`build`: the user's build command for the provider (and the executable that it is linked into)."""
    guarded_build(session, list(session.survey().linked.targets))


def _show_plan(session: Session, targets: list[str]) -> None:
    from tasks.builder.command import shown
    from tasks.building import commands_for

    for line in session.judged().pending.told():
        session.say(f"   {line}")
    for judgement in session.judged().units.values():
        if judgement.verdict != "fresh":
            session.say(f"   {judgement.name}: would be recompiled ({judgement.reason})")
    if not session.judged().linked:
        session.say(f"   {Path(session.survey().provider).name}: would be linked")
    for words in commands_for(session.survey(), targets):
        session.say(f"   $ {shown(words)}")


def _explain(result: BuildResult) -> str | None:
    """Why a unit that was to be recompiled is not proved, in one line."""
    from tasks.builder.diagnosis import first_error

    if result.broken:
        return f"{', '.join(result.broken)}: the build succeeded, but left an object that is cut short, or is none."
    if result.restored:
        return (f"{', '.join(result.restored)}: the build did not compile, but put an old object there"
                " (a compiler launcher's cache, or a script).")
    if result.unclear:
        return (f"{', '.join(result.unclear)}: the object has the bytes of the one before, and it cannot be told"
                " whether sccache compiled it or restored the old one.\n  `sccache --show-stats` has to answer for the"
                " server that the build uses, and to count no hit meanwhile.")
    if result.not_rewritten:
        told = f"{', '.join(result.not_rewritten)}: the build succeeded, but did not rewrite the object."
        error = first_error(result.log)[0] if result.log else None
        return told + (f"\n  {error}" if error else "")
    if result.not_made:
        return f"{', '.join(Path(path).name for path in result.not_made)}: outdated, and this build does not make it."
    if result.rewritten:
        name = Path(result.rewritten[0]).name
        return (f"{name} was written during this build and the one before, so nothing is known to be compiled from it"
                f" as it is.\n  If the build writes {name} itself: only where it changes (copy_if_different), or as"
                " the OUTPUT of a command with DEPENDS.")
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
    if report.broken is not None:
        why = _explain(result) if result is not None else None
        told = "; ".join(session.judged().pending.told()) or "not every object is proved"
        mend = report.broken.remedy
        # Where the same command would come to the same.
        if result is not None and result.not_rewritten and result.log is not None:
            mend = f"whole output: {result.log}"
        elif result is not None and result.not_made:
            mend = f"{session.command('rebuild_fmha')} {shlex.quote(_command_with(session, result.not_made))}"
        raise UserError(why or f"{report.verdict}: {told}.", mend)


def _command_with(session: Session, headers: list[str]) -> str:
    """The `build_command` that makes these generated headers too: ninja takes a file for a target, make does not."""
    survey = session.survey()
    build_dir, targets = survey.location.build_dir, []
    for path in headers:
        rule = survey.checkout.graph.rule(path)
        is_make = survey.location.cache.generator == "Unix Makefiles"
        targets.append(rule.target if is_make and rule is not None else os.path.relpath(path, build_dir))
    return f"build_command=cmake --build {{build_dir}} --target {shlex.join(targets)} {{targets}}"


def _device_lines(session: Session, result: BuildResult) -> list[str]:
    from tasks.unit_code import read_unit_code, told

    units, observer = session.survey().units, session.judged().observer
    return told((name, read_unit_code(units[name], session.state, observer.digest(units[name].facts.object)))
                for name in sorted(result.recompiled) if name in units)


def _told(result: BuildResult) -> str:
    names = ", ".join(sorted(result.recompiled)) or "nothing"
    return f"recompiled: {names} ({result.seconds:.1f} s)"

