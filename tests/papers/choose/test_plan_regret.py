"""What following a plan costs: who sees which rows and which draws, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from papers.choose import plan_regret
from papers.choose.plan_regret import (
    Rows,
    Source,
    case_of,
    hindsight,
    oracle_regrets,
    prior_from,
    regrets_of,
    rows_of,
    surveyed,
)
from reticent.planning.candidates import Candidate
from tests.planning.fakes import PUBLIC, Known


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> list[Candidate]:
    """Two methods of known accuracy in place of the real ones, and a small data set."""
    methods: list[Candidate] = [
        Known("public rows alone", 0.8, requirements=PUBLIC),
        Known("noisy", 0.9),
    ]
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 2
    rows = np.column_stack([labels, np.arange(4000), rng.normal(size=4000)]).astype(np.float64)
    monkeypatch.setattr(plan_regret, "candidates", lambda: methods)
    monkeypatch.setattr(
        plan_regret, "DATA", {"made": lambda: Source(rows, labels, lambda rows: rows)}
    )
    return methods


def case(data: str = "one", split: int = 0, **draws: list[float]) -> dict[str, Any]:
    """A stored case with the same four draws at every total."""
    truth = {name: [list(own)] * 2 for name, own in draws.items()}
    return {"data": data, "size": "few", "split": split, "truth": {"accuracy": truth}}


@pytest.mark.parametrize(("size", "public"), [("enough", 2000), ("few", 100)])
def test_public_private_and_scored_rows_are_apart(known: Any, size: str, public: int) -> None:
    rows = rows_of("made", size=size, split=1)
    parts = [set(part[:, 1]) for part in (rows.public, rows.private, rows.scored)]
    assert len(rows.public) == public
    assert sum(map(len, parts)) == len(set.union(*parts))
    other = rows_of("made", size=size, split=2)
    assert set(other.public[:, 1]) != parts[0]


def test_a_survey_knows_the_number_of_private_records_and_nothing_else_of_them(known: Any) -> None:
    rows = rows_of("made", size="few", split=0)
    first = surveyed(rows, seed=3)
    hidden = Rows(
        rows.public,
        rows.public_labels,
        np.full_like(rows.private, np.nan),
        rows.private_labels[::-1],
        np.full_like(rows.scored, np.nan),
        1 - rows.scored_labels,
    )
    second = surveyed(hidden, seed=3)
    assert np.array_equal(first.measured, second.measured)
    for candidate in known:
        seen = {row for stand_ins, _, _ in candidate.seen for row in stand_ins.private_rows[:, 1]}
        assert seen <= set(rows.public[:, 1])


def test_a_plan_and_the_truth_have_different_noise(known: Any, tmp_path: Path) -> None:
    case_of("made", size="few", split=0, cache=tmp_path)
    tried, fitted = known[1].seen[:-1], known[1].seen[-1]
    assert fitted[1] == 1.0
    assert all(scale < 1.0 for _, scale, _ in tried)
    assert not {seed for _, _, seeds in tried for seed in seeds} & set(fitted[2])
    # what is kept is not computed again
    found = len(known[1].seen)
    assert case_of("made", size="few", split=0, cache=tmp_path)["data"] == "made"
    assert len(known[1].seen) == found


def test_hindsight_is_scored_on_other_draws_than_it_is_chosen_on() -> None:
    best, worth = hindsight(case(lucky=[1.0, 1.0, 0.0, 0.0], even=[0.5] * 4), 0)
    assert best == "lucky"
    assert worth == {"lucky": 0.0, "even": 0.5}


def test_the_oracle_knows_the_other_splits_alone() -> None:
    splits = [
        case(split=0, a=[0.9] * 4, b=[0.5] * 4, c=[0.8] * 4),
        case(split=1, a=[0.5] * 4, b=[0.9] * 4, c=[0.8] * 4),
        case(split=2, a=[0.8] * 4, b=[0.8] * 4, c=[0.8] * 4),
    ]
    first, _, second, _, third, _ = (row["regret"] for row in oracle_regrets(splits))
    assert first == pytest.approx(40.0)  # b is best on the two others
    assert second == pytest.approx(40.0)
    assert third == 0.0
    assert oracle_regrets(splits[:1]) == []


def test_regrets_leave_the_data_set_itself_out_of_the_prior(
    known: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case_of("made", size="few", split=0, cache=tmp_path)
    prior = prior_from([found])
    assert {one.data for one in prior.cases} == {"made"}
    asked: list[str] = []
    without = type(prior).without
    monkeypatch.setattr(
        type(prior), "without", lambda self, data: asked.append(data) or without(self, data)
    )
    (low, high) = regrets_of(found, prior)
    assert asked == ["made", "made"]
    assert low["taken"] == high["taken"] == "noisy"
    assert low["best"] == "noisy"
    assert low["regret"] == 0.0
    assert low["public"] == pytest.approx(80, abs=4)
