"""Links 4 to 7 of one run: what proves each, unless a refusal breaks it. Pure.

4 provider -> process, 5 process -> tests, 6 tests -> kernel, 7 kernel -> GPU.
"""

from __future__ import annotations

from tasks.gtest.device import code_for, is_named
from tasks.gtest.facts import RunFacts
from tasks.gtest.refusals import Problem
from tasks.gtest.request import LINK_NAMES, LinkFinding, Verdict

__all__ = ["judge_links", "unjudged_links"]

_AGAIN = "doit test_mea"
_Proof = tuple[Verdict, tuple[str, ...], str | None]


def unjudged_links(broken: int, cause: str, mend: str) -> tuple[LinkFinding, ...]:
    """All four links of a run that never came about; `cause` is told at the link that it broke."""
    return tuple(LinkFinding(number, name, "unproven", (cause if number == broken else "not run",), mend)
                 for number, name in LINK_NAMES.items())


def judge_links(run: RunFacts, problems: tuple[Problem, ...]) -> tuple[LinkFinding, ...]:
    """Links 4 to 7: broken by the first problem of theirs that is worst, else proved by what was seen."""
    proofs = {4: _mapped, 5: _ran, 6: _dispatched, 7: _matching_code}
    findings = []
    for number, proof in proofs.items():
        own = sorted((problem for problem in problems if problem.link == number),
                     key=lambda problem: problem.verdict != "stale")
        verdict, evidence, remedy = proof(run)
        if own:
            verdict, remedy = own[0].verdict, own[0].mend
            evidence = (*(f"{problem.word}: {problem.cause}" for problem in own), *evidence)
        findings.append(LinkFinding(number, LINK_NAMES[number], verdict, evidence, remedy))
    return tuple(findings)


def _mapped(run: RunFacts) -> _Proof:
    seen = [f"mapped: {path}" for path in (run.mapped.ours, *run.mapped.others) if path is not None]
    if run.mapped.ours is None:
        return "unproven", (*seen, f"{run.wanted.name} was not seen mapped"), _AGAIN
    return "fresh", tuple(seen), None


def _counts(run: RunFacts) -> str:
    kinds = ("passed", "failed", "skipped", "missing", "unfinished", "not-run")
    counts = [(sum(test.result == kind for test in run.tests), kind) for kind in kinds]
    return ", ".join(f"{count} {kind}" for count, kind in counts if count)


def _ran(run: RunFacts) -> _Proof:
    evidence = [f"{len(run.selection.selected)} tests selected of {len(run.listed)}: {_counts(run)}"]
    skipped = [test for test in run.tests if test.result == "skipped"]
    # Where there is nothing but skipped tests, the refusal says why.
    reasons = dict.fromkeys(test.skip_reason for test in skipped if len(skipped) < len(run.tests))
    evidence += [f"skipped: {reason or 'no reason given'}" for reason in list(reasons)[:3]]
    if run.environment.scrubbed:
        evidence.append(f"not passed on: {', '.join(run.environment.scrubbed)}")
    return "fresh", tuple(evidence), None


def _dispatched(run: RunFacts) -> _Proof:
    paths = [test.path or "no dispatch line" for test in run.tests if test.ran]
    evidence = tuple(f"{paths.count(path)} by {path}" for path in dict.fromkeys(paths))
    complete = run.report is not None and run.ended.stopped is None and bool(paths)
    if complete:
        return "fresh", evidence, None
    return "unproven", ("the run is incomplete" if paths else "no test ran to its end", *evidence), _AGAIN


def _matching_code(run: RunFacts) -> _Proof:
    device, code = run.device, run.request.code
    if not any("mea" in (test.path or "").split("+") for test in run.tests if test.ran):
        return "unproven", ("no memory-efficient kernel ran",), _AGAIN
    if device is None:
        return "unproven", ("which GPU the tests ran on could not be told",), "nvidia-smi"
    gpu = f"{device.name} (sm_{device.capability}, {device.uuid})"
    if code is None:
        return "unproven", (gpu, "the provider's device code was not read"), "doit verify"
    unit = next((unit for lowest, unit in code.dispatch if lowest <= device.capability), None)
    found = code_for(code.archs.get(unit, ()), device.capability) if unit else None
    if unit is None or unit not in code.archs:
        return "unproven", (gpu, f"no unit with device code is known for sm_{device.capability}"), "doit verify"
    if found is None:
        return "stale", (gpu, f"{unit} holds {', '.join(code.archs[unit]) or 'no device code'}: nothing for "
                              f"sm_{device.capability}"), f"build for sm_{device.capability} too"
    how = "PTX, compiled by the driver" if found.startswith("compute_") else "cubin"
    evidence = [f"{gpu} ran {unit}: {found} ({how})"]
    never = [other for _, other in code.dispatch if other != unit and other in code.archs]
    if never:
        evidence.append(f"untested: {', '.join(never)} (this GPU never dispatches to them)")
    if rest := [arch for arch in code.archs[unit] if arch != found]:
        evidence.append(f"untested: {', '.join(rest)} of {unit}")
    lacking = [arch for arch in run.request.require_archs if not is_named(arch, device.capability)]
    if lacking:
        evidence.append(f"required and not run: {', '.join(lacking)}")
        return "unproven", tuple(evidence), f"run doit test_mea on such a GPU, or take {lacking[0]} off require_archs"
    return "fresh", tuple(evidence), None
