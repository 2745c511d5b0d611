"""The choice of a rung across folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reticent.systems.posthoc.calibration import CalibrationData, Choice
from reticent.systems.posthoc.cross_fitting import cross_fitted, few
from reticent.systems.posthoc.plans import rule_plan

TRAIN, HELD = 44, 11


def test_a_rung_that_one_split_flatters_loses_and_no_row_scores_what_learnt_from_it() -> None:
    rows = np.arange(float(TRAIN + HELD)).reshape(-1, 1)
    labels = np.arange(TRAIN + HELD) % 3
    data = CalibrationData(rows[:TRAIN], rows[TRAIN:], labels[:TRAIN], labels[TRAIN:])
    # Each is right on so many of the split's held-out rows, and of all others.
    worths = {"lucky": (1.0, 0.5), "steady": (0.9, 0.9)}
    seen: dict[str, list[float]] = {name: [] for name in worths}

    def plan(name: str, utility: float) -> Any:
        return replace(rule_plan("code", 1.0, name), utility=utility)

    def score(candidate: Any, cut: CalibrationData, _: str) -> Any:
        name, learnt = candidate
        held = set(cut.held[:, 0])
        if len(learnt) < len(rows):
            assert not held & learnt
            seen[name] += held
        return choice(candidate, plan(name, worths[name][1]))

    def choice(candidate: Any, chosen: Any, near: Any = ()) -> Any:
        made: Any = Choice
        return made(candidate, chosen, tuple(plan for _, plan in near) or (chosen,), near, None)

    def fit(candidate: Any, cut: CalibrationData) -> Any:
        return candidate[0], set(cut.train[:, 0])

    near: Any = tuple(((name, set()), plan(name, worths[name][0])) for name in worths)
    split = choice(near[0][0], near[0][1], near)
    assert few(split, data)
    chosen: Any = cross_fitted(split, data, fit, score)
    assert chosen.candidate[0] == chosen.plan.rung == "steady"
    assert chosen.candidate[1] == set(rows[:, 0])  # fitted anew on all rows
    assert [entry.rung for entry in chosen.considered] == ["steady", "lucky"]
    np.testing.assert_allclose(
        [entry.utility for entry in chosen.considered], [0.9, (HELD + TRAIN / 2) / (HELD + TRAIN)]
    )
    for rest in seen.values():  # with the split's own, every row scores once
        assert sorted(rest) == [*rows[:TRAIN, 0]]
