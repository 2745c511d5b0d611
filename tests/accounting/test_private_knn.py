from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent.accounting import PrivateKnnSteps, private_knn_rdp, private_knn_total
from reticent.accounting.private_knn import (
    epsilon_of_noisy_votes,
    label_rdp,
    screening_bit_rdp,
)
from reticent.core.errors import InvalidParameter

MNIST = PrivateKnnSteps(
    queries=1000,
    answers=735,
    neighbours=300,
    sampling_probability=0.15,
    sigma_votes=25.0,
    threshold=180.0,
    sigma_screening=75.0,
)
WIDE = replace(
    MNIST,
    queries=8192,
    answers=2000,
    sampling_probability=0.25,
    threshold=210.0,
    sigma_screening=85.0,
)
SVHN = replace(
    MNIST,
    queries=3000,
    answers=2939,
    sampling_probability=0.05,
    sigma_votes=5.0,
    threshold=210.0,
    sigma_screening=85.0,
)


@pytest.mark.parametrize(("name", "steps"), [("MNIST", MNIST), ("SVHN", SVHN)])
def test_published_settings_cost_what_the_golden_values_say(
    golden: dict[str, Any], name: str, steps: PrivateKnnSteps
) -> None:
    row = golden["private_knn"][name]
    total = private_knn_total(steps, delta=row["delta"])
    bounds = dict(total.considered)
    assert bounds["Rényi, noisy votes"] == pytest.approx(row["rdp"], rel=1e-8)
    assert total.epsilon == min(bounds.values())
    assert total.bound == "Rényi, bits and labels"
    assert total.epsilon < 0.87 * row["pld"]


@pytest.mark.parametrize(("index", "steps"), [(0, MNIST), (1, WIDE)])
def test_shared_subsample_golden_values(
    golden: dict[str, Any], index: int, steps: PrivateKnnSteps
) -> None:
    row = list(golden["shared_subsample"].values())[index]
    shared = replace(steps, shared_subsample=True)
    assert epsilon_of_noisy_votes(steps, delta=1e-5) == pytest.approx(row["fresh"], rel=1e-8)
    assert epsilon_of_noisy_votes(shared, delta=1e-5) == pytest.approx(row["joint"], rel=1e-8)
    # The golden rate is that of continuous noise, whose threshold sits half a vote off that of
    # discrete noise.
    assert shared.vote_rate == pytest.approx(row["posterior_rate"]["rate"], rel=1e-3)
    fresh, together = (private_knn_total(each, delta=1e-5).epsilon for each in (steps, shared))
    assert fresh < together < row["posterior_rate"]["gaussian_bits"]


def test_the_total_is_the_sum_of_its_steps() -> None:
    orders = [2, 16, 40]
    bit, label, total = (
        screening_bit_rdp(MNIST, orders),
        label_rdp(MNIST, orders),
        private_knn_rdp(MNIST, orders),
    )
    assert total.divergences == pytest.approx(
        1000 * bit.divergences + 735 * label.divergences, rel=1e-12
    )
    assert bit.slack == 0.0
    assert label.slack > 0
    assert total.slack == pytest.approx(735 * label.slack, rel=1e-12)
    unscreened = replace(MNIST, queries=735, threshold=None, sigma_screening=None)
    assert private_knn_rdp(unscreened, orders).divergences == pytest.approx(
        735 * label.divergences, rel=1e-12
    )


def test_a_vector_of_attributes_costs_its_votes(golden: dict[str, Any]) -> None:
    row = golden["private_knn"]["CelebA"]
    ((rate, multiplier, count),) = row["steps"]
    steps = PrivateKnnSteps(
        queries=count,
        answers=count,
        neighbours=800,
        sampling_probability=rate,
        sigma_votes=100.0,
        threshold=None,
        sigma_screening=None,
        vote_sensitivity=100.0 / multiplier,
        one_label=False,
    )
    total = private_knn_total(steps, delta=row["delta"])
    assert total.epsilon == pytest.approx(row["rdp"], rel=1e-8)


def test_an_adaptive_adversary_stays_below_the_bound() -> None:
    """Every choice of counts after every outcome of three bits, exactly, against the bound at
    the same delta.
    """
    steps = PrivateKnnSteps(
        queries=3,
        answers=1,
        neighbours=3,
        sampling_probability=0.5,
        sigma_votes=1e4,
        threshold=2.0,
        sigma_screening=1.0,
    )
    values = np.arange(-40, 41)
    distribution = np.exp(-(values**2) / 2.0)
    distribution /= distribution.sum()
    passes = [distribution[values + t >= 2].sum() for t in range(4)]
    choices = []
    for t, other in [
        pair for pair in itertools.product(range(4), repeat=2) if abs(pair[0] - pair[1]) == 1
    ]:
        base, mixed = passes[t], 0.5 * passes[t] + 0.5 * passes[other]
        choices += [((base, 1 - base), (mixed, 1 - mixed)), ((mixed, 1 - mixed), (base, 1 - base))]
    for epsilon in (0.3, 0.6):
        worst = 0.0
        # The best continuation is separable: the adversary maximises P - e^epsilon Q from each
        # state on.
        for direction in (0, 1):
            legal = choices[direction::2]

            def value(
                p: float, q: float, left: int, legal: list[Any] = legal, epsilon: float = epsilon
            ) -> float:
                if left == 0:
                    return max(p - math.exp(epsilon) * q, 0.0)
                return max(
                    sum(value(p * a, q * b, left - 1) for a, b in zip(*pair, strict=True))
                    for pair in legal
                )

            worst = max(worst, value(1.0, 1.0, 3))
        total = private_knn_total(steps, delta=worst)
        assert dict(total.considered)["Rényi, bits and labels"] >= epsilon


@pytest.mark.parametrize(
    "wrong", [{"answers": 1001}, {"sigma_screening": None}, {"vote_sensitivity": 2.0}]
)
def test_steps_that_contradict_each_other_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        replace(MNIST, **wrong)
