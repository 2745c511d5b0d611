"""Gaussian answers, continuous and discrete, against exact distributions in many digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from reticent.accounting import GaussianAccountant, GaussianCost, RdpAccountant
from reticent.accounting.discrete_gaussian import log_tails, sampled_gaussian_rdp
from reticent.accounting.exact_gaussian import gaussian_delta
from reticent.core import AddRemove
from tests.events import make_event


def _exact(multiplier: float, epsilon: float) -> mp.mpf:
    m, e = mp.mpf(multiplier), mp.mpf(epsilon)

    def below(x: mp.mpf) -> mp.mpf:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    return below(1 / (2 * m) - e * m) - mp.exp(e) * below(-1 / (2 * m) - e * m)


@pytest.mark.parametrize("multiplier", [0.02, 0.5, 1.0, 20.0, 1e6])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.3, 5.0, 60.0])
def test_delta_is_not_below_the_exact_one(multiplier: float, epsilon: float) -> None:
    found = gaussian_delta(noise_multiplier=multiplier, epsilon=epsilon)
    with mp.workdps(400):
        exact = min(_exact(multiplier, epsilon), mp.mpf(1))
        assert found >= exact
        if exact > mp.mpf("1e-290"):
            assert found <= exact * (1 + mp.mpf("1e-6"))


@pytest.mark.parametrize("delta", ["1e-05", "1e-06"])
def test_the_golden_total_of_a_hundred_answers(golden: dict[str, Any], delta: str) -> None:
    row = golden["sampled_gaussian"][8]
    counted = GaussianAccountant(AddRemove()).compose(
        make_event(event=GaussianCost(row["noise_multiplier"])), row["answers"]
    )
    assert counted.epsilon(delta=float(delta)) == pytest.approx(row[delta]["exact"], rel=1e-9)


def test_unequal_answers_are_one_answer_of_their_summed_precision() -> None:
    several = GaussianAccountant(AddRemove())
    several.compose(make_event(event=GaussianCost(6.0)), 3).compose(
        make_event(event=GaussianCost(2.0))
    )
    one = GaussianAccountant(AddRemove()).compose(
        make_event(event=GaussianCost(1 / math.sqrt(3 / 36 + 1 / 4)))
    )
    assert several.epsilon(delta=1e-6) == pytest.approx(one.epsilon(delta=1e-6), rel=1e-12)
    loose = (
        RdpAccountant(AddRemove())
        .compose(make_event(event=GaussianCost(6.0)), 3)
        .compose(make_event(event=GaussianCost(2.0)))
    )
    assert several.epsilon(delta=1e-6) < loose.epsilon(delta=1e-6)


def test_edge_cases() -> None:
    assert GaussianAccountant(AddRemove()).epsilon(delta=1e-5) == 0.0
    counted = GaussianAccountant(AddRemove()).compose(make_event(event=GaussianCost(3.0)))
    assert math.isinf(counted.epsilon(delta=0.0))
    assert counted.epsilon(delta=0.9) == 0.0
    assert 0 < gaussian_delta(noise_multiplier=3.0, epsilon=1e6) < 1e-300
    assert gaussian_delta(noise_multiplier=1e-200, epsilon=1.0) == 1.0


def _distribution(sigma: float, reach: int) -> dict[int, mp.mpf]:
    weights = {
        v: mp.exp(-(mp.mpf(v) ** 2) / (2 * mp.mpf(sigma) ** 2)) for v in range(-reach, reach + 1)
    }
    total = mp.fsum(weights.values())
    return {v: weight / total for v, weight in weights.items()}


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.5])
def test_tails_against_many_digits(sigma: float) -> None:
    with mp.workdps(60):
        distribution = _distribution(sigma, 400)
        points = np.array([-30, -3, -1, 0, 1, 2, 30])
        above, below = log_tails(points, sigma=sigma)
        for index, m in enumerate(points.tolist()):
            assert above[index] == pytest.approx(
                float(mp.log(mp.fsum(p for v, p in distribution.items() if v >= m))),
                rel=1e-12,
                abs=1e-15,
            )
            assert below[index] == pytest.approx(
                float(mp.log(mp.fsum(p for v, p in distribution.items() if v < m))),
                rel=1e-12,
                abs=1e-15,
            )


@pytest.mark.parametrize(("sigma", "shift"), [(1.5, (1, -1)), (0.7, (1,)), (3.0, (2, -1, 1))])
def test_discrete_noise_has_the_same_closed_form(sigma: float, shift: tuple[int, ...]) -> None:
    """The sum over all integer vectors, in both directions; the sampled distribution on top is
    the closed form to rounding.
    """
    reach = math.ceil(14 * sigma) + 12
    values = np.arange(-reach, reach + 1)

    def log_distribution(center: int) -> np.ndarray:
        weights = -((values - center) ** 2) / (2 * sigma**2)
        return weights - np.logaddexp.reduce(weights)

    base, moved = np.zeros(()), np.zeros(())
    for part in shift:
        base, moved = (
            base[..., None] + log_distribution(0),
            moved[..., None] + log_distribution(part),
        )
    rate = 0.2
    mixed = np.logaddexp(np.log1p(-rate) + base, np.log(rate) + moved)
    for order in (2, 3, 5):
        closed = sampled_gaussian_rdp(
            [order],
            noise_multiplier=sigma / math.sqrt(sum(part**2 for part in shift)),
            sampling_probability=rate,
        )[0]
        remove = np.log(np.exp(order * mixed + (1 - order) * base).sum()) / (order - 1)
        add = np.log(np.exp(order * base + (1 - order) * mixed).sum()) / (order - 1)
        assert remove == pytest.approx(closed, rel=1e-9)
        assert add <= closed
