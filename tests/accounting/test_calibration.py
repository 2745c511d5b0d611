from __future__ import annotations

import pytest

from reticent.accounting import (
    GaussianCost,
    PldAccountant,
    PoissonSampled,
    PrivacyEvent,
    RdpAccountant,
    epsilon_per_answer,
    noise_multiplier,
    smallest_epsilon,
)
from reticent.core import AddRemove
from reticent.core.errors import CalibrationFailed
from tests.events import make_event


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 17.787])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 1e-5])
@pytest.mark.parametrize("answers", [1, 10, 1000])
def test_calibrating_an_answer_and_recomputing_the_total_round_trips(
    epsilon: float, delta: float, answers: int
) -> None:
    each = epsilon_per_answer(epsilon=epsilon, delta=delta, answers=answers)
    total = smallest_epsilon(epsilon=each, answers=answers, delta=delta, answer_delta=0.0).epsilon
    assert epsilon - 1e-6 <= total <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize(
    ("epsilon", "answers"), [(1.0, 1000), (1.0, 10_000), (10.0, 5000), (636.0, 20_000), (0.1, 3)]
)
def test_without_delta_answers_share_the_total(epsilon: float, answers: int) -> None:
    """However many there are: that all of them lie the same way is improbable, and not
    impossible.
    """
    each = epsilon_per_answer(epsilon=epsilon, delta=0.0, answers=answers)
    assert answers * each <= epsilon
    assert each == pytest.approx(epsilon / answers, rel=1e-15)


@pytest.mark.parametrize(("epsilon", "answers"), [(0.5, 1), (3.0, 100)])
@pytest.mark.parametrize("rate", [1.0, 0.05])
def test_calibrating_noise_and_recomputing_the_total_round_trips(
    epsilon: float, answers: int, rate: float
) -> None:
    def event(multiplier: float) -> PrivacyEvent:
        step = GaussianCost(multiplier)
        return make_event(event=step if rate == 1 else PoissonSampled(rate, step))

    multiplier = noise_multiplier(
        event,
        epsilon=epsilon,
        delta=1e-5,
        answers=answers,
        accountant=lambda: RdpAccountant(AddRemove(), [4.0, 16.0, 40.0]),
    )
    total = (
        RdpAccountant(AddRemove(), [4.0, 16.0, 40.0])
        .compose(event(multiplier), answers)
        .epsilon(delta=1e-5)
    )
    assert epsilon - 1e-6 <= total <= epsilon


def test_calibrating_by_loss_distributions_needs_less_noise() -> None:
    def event(multiplier: float) -> PrivacyEvent:
        return make_event(event=GaussianCost(multiplier))

    kept = noise_multiplier(event, epsilon=1.0, delta=1e-5, answers=10)
    multiplier = noise_multiplier(
        event,
        epsilon=1.0,
        delta=1e-5,
        answers=10,
        accountant=lambda: PldAccountant(AddRemove(), interval=1e-3),
        tolerance=1e-6,
    )
    total = (
        PldAccountant(AddRemove(), interval=1e-3).compose(event(multiplier), 10).epsilon(delta=1e-5)
    )
    assert 1.0 - 1e-6 <= total <= 1.0
    assert multiplier < kept


def test_what_no_noise_can_reach_is_refused() -> None:
    with pytest.raises(CalibrationFailed, match="no noise multiplier"):
        noise_multiplier(
            lambda multiplier: make_event(event=GaussianCost(multiplier)),
            epsilon=1.0,
            delta=0.0,
            answers=1,
        )
