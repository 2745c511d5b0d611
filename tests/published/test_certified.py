"""The published response: its distribution against scipy and simulation, its privacy where
distances are smooth, and where not.
"""

from __future__ import annotations

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.core import AddRemove, GuaranteeKind, Replace
from reticent.core.errors import IncompatibleGuarantees
from reticent.mechanisms import StabilityResponse
from reticent.noise import SecureSampler, SeededSampler
from reticent.published.certified import GlobalSensitivityResponse, SmoothCauchy

EPSILONS = [1e-3, 0.1, 1.0, 3.0, 8.0]


def response(epsilon: float, **fields: object) -> SmoothCauchy:
    return SmoothCauchy(epsilon=epsilon, adjacency=AddRemove(1), **fields)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_chance_of_a_wrong_label_is_that_of_cauchy_noise(epsilon: float) -> None:
    levels = np.array([0, 1, 5, 40])
    with mpmath.workdps(50):
        scales = [
            6 * mpmath.exp(-mpmath.mpf(epsilon) * int(level) / 6) / epsilon for level in levels
        ]
        beyond = [float(mpmath.atan(2 * scale) / mpmath.pi) for scale in scales]
    np.testing.assert_allclose(response(epsilon).flip_probabilities(levels), beyond, rtol=1e-8)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_every_ratio_between_neighbours_is_within_epsilon(epsilon: float) -> None:
    """In 50 digits, at the full epsilon: same label one level apart, and different labels at
    level 0.
    """
    with mpmath.workdps(50):
        limit = mpmath.exp(mpmath.mpf(epsilon))
        wrong = [
            mpmath.mpf(value) for value in response(epsilon).flip_probabilities(np.arange(400))
        ]
        assert (1 - wrong[0]) / wrong[0] <= limit
        for here, there in pairwise(wrong):
            assert here / there <= limit
            assert (1 - there) / (1 - here) <= limit
            assert there <= here


def test_a_sparse_set_is_credited_by_distance_or_by_place() -> None:
    levels = [0, 1, 4, 5, 19, 20, 99]
    assert response(1.0, certified_at=(1, 5, 20)).credited(levels).tolist() == [
        0,
        1,
        1,
        5,
        5,
        20,
        20,
    ]
    assert response(1.0, certified_at=(1, 5, 20), credit="index").credited(levels).tolist() == [
        0,
        1,
        1,
        2,
        2,
        3,
        3,
    ]
    assert response(1.0).credited(levels).tolist() == levels


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, GuaranteeKind.DIFFERENTIAL_PRIVACY),
        ({"certified_at": (1, 2, 3)}, GuaranteeKind.DIFFERENTIAL_PRIVACY),
        ({"certified_at": (1, 5, 20), "credit": "index"}, GuaranteeKind.DIFFERENTIAL_PRIVACY),
        ({"certified_at": (1, 5, 20)}, GuaranteeKind.NO_PRIVACY),
        ({"certified_at": (2,)}, GuaranteeKind.NO_PRIVACY),
    ],
)
def test_only_smooth_credit_carries_a_guarantee(
    fields: dict[str, object], kind: GuaranteeKind
) -> None:
    mechanism = response(1.0, **fields)
    assert mechanism.guarantee.kind is kind
    with pytest.raises(IncompatibleGuarantees):
        _ = mechanism.event


def test_answers_follow_the_distribution() -> None:
    """Binomial test, false-alarm rate 1e-6; half and twice the scale are rejected."""
    runs, level = 40_000, 10
    for sampler in (SeededSampler(3), SecureSampler()):
        wrong = int(
            (
                response(1.0).release(np.ones(runs, int), np.full(runs, level), sampler=sampler)
                == 0
            ).sum()
        )
        chance = float(stats.cauchy(scale=6 * np.exp(-level / 6)).sf(0.5))
        assert stats.binomtest(wrong, runs, chance).pvalue > 1e-6
        for factor in (0.5, 2.0):
            other = float(stats.cauchy(scale=factor * 6 * np.exp(-level / 6)).sf(0.5))
            assert stats.binomtest(wrong, runs, other).pvalue < 1e-6


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 2.0, 20.0])
def test_the_baseline_is_that_of_thresholded_laplace_noise(epsilon: float) -> None:
    mechanism = GlobalSensitivityResponse(epsilon=epsilon, adjacency=Replace(1))
    [wrong] = mechanism.flip_probabilities([7])
    np.testing.assert_allclose(wrong, stats.laplace(scale=1 / epsilon).sf(0.5), rtol=1e-9)
    assert (1 - wrong) / wrong <= np.exp(epsilon)
    assert (
        wrong
        >= StabilityResponse(classes=2, epsilon=epsilon, adjacency=Replace(1)).wrong_probabilities[
            0
        ]
    )
    assert mechanism.guarantee.adjacency == Replace(1)


def test_answers_of_the_baseline_follow_their_distribution() -> None:
    """Binomial test, false-alarm rate 1e-6; two thirds of epsilon is rejected."""
    mechanism = GlobalSensitivityResponse(epsilon=1.5, adjacency=Replace(1))
    wrong = int(
        mechanism.release(
            np.zeros(50_000, int), np.zeros(50_000, int), sampler=SeededSampler(1)
        ).sum()
    )
    assert stats.binomtest(wrong, 50_000, 0.5 * np.exp(-0.75)).pvalue > 1e-6
    assert stats.binomtest(wrong, 50_000, 0.5 * np.exp(-0.5)).pvalue < 1e-6
