"""What can be released about an input: each method is worth what it is on its own."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Replace
from reticent.planning.input_methods import METHODS, LabelResponse, Majority
from reticent.planning.inputs import plan_inputs
from reticent.systems import PowerEncoder
from tests.planning.fakes import INPUT_GIVEN as GIVEN
from tests.planning.fakes import INPUT_LABELS as LABELS
from tests.planning.fakes import INPUT_ROWS as ROWS


def test_randomised_response_is_worth_what_its_formula_says() -> None:
    """A booster that is right in 95 of 100 cases, and keeps its side with e / (1 + e)."""
    kept = np.e / (1 + np.e)
    found = plan_inputs(
        ROWS, LABELS, epsilon=1.0, scoring="accuracy", methods=[LabelResponse()], **GIVEN
    )
    expected = 0.93 * kept + 0.07 * (1 - kept)
    assert found.rows[0].utility.value == pytest.approx(expected, abs=0.06)
    at = {point.at: point.utility for point in found.curve}
    assert list(at) == [0.3, 1.0, 3.0]
    assert at[0.3] < at[1.0] < at[3.0]


def test_codes_beat_the_majority_and_the_winner_is_an_estimator() -> None:
    rows, labels = ROWS[:450], LABELS[:450]
    found = plan_inputs(rows, labels, epsilon=2.0, epsilons=[2.0], methods=METHODS[:4], **GIVEN)
    assert found.guarantee.adjacency == Replace(1)
    response = ("randomised response", "randomised response at prevalence")
    assert {row.method for row in found.rows} == {"majority", *response, "code"}
    assert len(found.curve) == 4
    assert found.rows[-1].method == "majority"
    winner = found.estimator
    assert isinstance(winner, PowerEncoder)
    fitted = winner.fit(rows, labels)
    assert fitted.guarantee == found.guarantee
    codes = next(row for row in found.rows if row.method == "code")
    assert codes.utility.value > 0.15
    assert not any("majority" in note for note in found.notes)


def test_a_radius_brings_in_what_reads_free_columns() -> None:
    pytest.importorskip("torch")  # the encoder's, without which it is left out
    radius = {"age": 1.0, "dose": np.inf, "ward": 0.0}
    clear = [method for method in METHODS if method.name in ("clear + noise", "clear + code")]
    kept = plan_inputs(
        ROWS[:180],
        LABELS[:180],
        epsilon=1.0,
        epsilons=[1.0],
        radius=radius,
        methods=[Majority(), *clear],
        **GIVEN,
    )
    assert {row.method for row in kept.rows} == {"majority", "clear + noise", "clear + code"}
    assert kept.estimator.radius == radius
    anything = plan_inputs(ROWS, LABELS, epsilon=1.0, methods=[Majority(), *clear], **GIVEN)
    assert [name for name, _ in anything.left_out] == ["clear + noise", "clear + code"]
