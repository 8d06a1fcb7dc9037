"""A seed of the campaign for every test run; the whole is `python -m tests.campaign`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.campaign import scenarios  # noqa: F401 - fills SCENARIOS
from tests.campaign.cells import Cell
from tests.campaign.columns import COLUMNS, Claim, PlainBuild, Project
from tests.campaign.runner import Outcome, run_cell
from tests.campaign.scenario import SCENARIOS
from tests.campaign.table import as_document, is_clean

SEED = ("a header is edited and bears a time of 2001", "nothing is edited", "an edit is built by hand",
        "the provider is put back to the one before the edit",
        "a header that a command of the build generates changes")


def _outcomes(folder: Path, cell: Cell, columns: Sequence = COLUMNS) -> list[Outcome]:
    return run_cell(cell, [one for one in SCENARIOS if one.name in SEED], folder, columns)


@pytest.fixture(scope="module")
def gap_on(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    return _outcomes(tmp_path_factory.mktemp("campaign") / "cell", Cell("Ninja"))


def test_this_project_has_no_false_green_and_no_false_alarm(gap_on: list[Outcome]) -> None:
    assert is_clean(gap_on, Project.name), as_document(gap_on, 0)["findings"]
    assert as_document(gap_on, 0)["columns"][Project.name]["recompiled_needlessly"] == 0


def test_the_oracle_finds_the_plain_build_lying_where_depfiles_leave_the_headers_out(gap_on: list[Outcome]) -> None:
    by_name = {outcome.scenario: outcome for outcome in gap_on if outcome.column == PlainBuild.name}
    assert by_name[SEED[0]].count("false_green") == 1
    assert by_name["nothing is edited"].count("false_green") == 0
    assert not is_clean(gap_on, PlainBuild.name)


def test_the_ritual_is_found_recompiling_what_is_in_place(gap_on: list[Outcome]) -> None:
    ritual = next(outcome for outcome in gap_on
                  if outcome.column == "manual ritual" and outcome.scenario == "nothing is edited")
    assert ritual.counts == {"false_green": 0, "false_alarm": 1, "unproven_by_design": 0, "recompiled_needlessly": 5}


def test_a_build_by_hand_is_counted_apart(gap_on: list[Outcome]) -> None:
    ours = next(outcome for outcome in gap_on
                if outcome.column == Project.name and outcome.scenario == "an edit is built by hand")
    assert ours.counts == {"false_green": 0, "false_alarm": 0, "unproven_by_design": 1, "recompiled_needlessly": 0}


class _Liar(PlainBuild):
    """Says of everything what is not so."""

    name = "liar"

    def update(self, place, target: str = "") -> Claim:  # type: ignore[no-untyped-def]
        claim = super().update(place, target)
        return claim if not hasattr(self, "began") else Claim("unproven")

    def look(self, place) -> Claim:  # type: ignore[override]
        del place
        self.began = True
        return Claim("stale")


def test_an_alarm_while_everything_is_in_place_is_found(tmp_path: Path) -> None:
    liar = next(outcome for outcome in _outcomes(tmp_path / "cell", Cell("Ninja"), [_Liar()])
                if outcome.scenario == "nothing is edited")
    assert liar.count("false_alarm") == 2
