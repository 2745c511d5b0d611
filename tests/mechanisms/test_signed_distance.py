"""Signed distance: its sensitivity in whole numbers, its total against closed forms, its
distribution.
"""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.accounting import RdpAccountant, ZeroConcentratedCost
from reticent.core import AddRemove
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.mechanisms import SignedDistanceRelease
from reticent.noise import SecureSampler, SeededSampler

TOTAL = {"epsilon": 10.0, "delta": 1e-5}


def release(classes: int = 2, epsilon: float = 1.0, delta: float = 1e-3) -> SignedDistanceRelease:
    return SignedDistanceRelease(
        classes=classes, epsilon=epsilon, delta=delta, adjacency=AddRemove(1)
    )


class StillSampler(SeededSampler):
    """No noise: what is released is the largest coordinate of the point itself."""

    def discrete_gaussian(self, shape, *, sigma):
        self.sigma = sigma
        return np.zeros(shape, dtype=np.int64)


class RecordingSampler(StillSampler):
    """Keeps the point that noise is added to."""

    def discrete_gaussian(self, shape, *, sigma):
        self.noise = super().discrete_gaussian(shape, sigma=sigma)
        return self.noise


def points(mechanism: SignedDistanceRelease, most: int) -> dict[tuple[int, int], list[int]]:
    """The integer point of every label and level, as the release computes it."""
    found = {}
    for label, level in product(range(mechanism.classes), range(most + 1)):
        sampler = RecordingSampler(0)
        mechanism.release([label], [level], sampler=sampler)
        found[label, level] = sampler.noise[0].tolist()
    return found


@pytest.mark.parametrize("classes", [3, 4, 10, 97])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
def test_neighbours_are_no_farther_apart_than_the_noise_covers(
    classes: int, epsilon: float
) -> None:
    """In exact integers, with a whole number common to all coordinates taken off."""
    mechanism = release(classes, epsilon)
    sensitivity, sigma = mechanism._scales
    found = points(mechanism, 4)
    pairs = [((0, level), (0, level + 1)) for level in range(4)] + [((0, 0), (1, 0))]
    squares = []
    for one, other in pairs:
        difference = [a - b for a, b in zip(found[one], found[other], strict=True)]
        common, rest = divmod(sum(difference), classes)
        assert rest == 0
        squares.append(sum((value - common) ** 2 for value in difference))
    assert max(squares) <= int(sensitivity) ** 2 + 2 * int(sensitivity) + 1
    assert min(squares) > 0.9999 * sensitivity**2  # every pair uses up what is allowed
    with mpmath.workdps(60):
        multiplier = mpmath.mpf(sigma) / mpmath.sqrt(max(squares))
        assert multiplier >= mechanism.noise_multiplier
    assert sigma >= 2.0**40


def test_two_classes_are_one_number() -> None:
    mechanism = release()
    assert mechanism._scales[0] == 2 * mechanism._unit
    shown = RecordingSampler(0)
    mechanism.release([1, 0, 1], [0, 0, 1], sampler=shown)
    assert shown.noise.shape == (3,)
    assert mechanism.release([1, 0, 1], [0, 0, 7], sampler=StillSampler(0)).tolist() == [1, 0, 1]


@pytest.mark.parametrize("answers", [1, 7, 1000, 122_752, 2**40])
@pytest.mark.parametrize("classes", [2, 10])
def test_the_total_is_that_of_one_gaussian(answers: int, classes: int) -> None:
    mechanism = SignedDistanceRelease.for_answers(
        classes=classes, answers=answers, adjacency=AddRemove(1), **TOTAL
    )
    total = mechanism.total(answers=answers, delta=TOTAL["delta"])
    assert TOTAL["epsilon"] * (1 - 1e-5) < total <= TOTAL["epsilon"]
    with mpmath.workdps(40):
        sigma = mpmath.mpf(mechanism.noise_multiplier) / mpmath.sqrt(answers)
        first = mpmath.ncdf(1 / (2 * sigma) - total * sigma)
        second = mpmath.exp(total) * mpmath.ncdf(-1 / (2 * sigma) - total * sigma)
        assert first - second <= TOTAL["delta"]
    assert mechanism.guarantee.delta == TOTAL["delta"] / answers
    # One answer's statement leads back to the same noise.
    again = release(classes, mechanism.epsilon, mechanism.delta)
    assert again.noise_multiplier == mechanism.noise_multiplier


def test_the_distance_to_rounded_noise_is_charged_for_every_answer_and_coordinate() -> None:
    """Visible where answers are many: 1.3e-22 for each draw and side."""
    answers, delta = 2**40, 1e-5
    extra = []
    for classes in (2, 1000):
        mechanism = SignedDistanceRelease.for_answers(
            classes=classes, epsilon=1.0, delta=delta, answers=answers, adjacency=AddRemove(1)
        )
        total = mechanism.total(answers=answers, delta=delta)
        with mpmath.workdps(40):
            sigma = mpmath.mpf(mechanism.noise_multiplier) / mpmath.sqrt(answers)
            plain = mpmath.findroot(
                lambda epsilon, sigma=sigma: (
                    mpmath.ncdf(1 / (2 * sigma) - epsilon * sigma)
                    - mpmath.exp(epsilon) * mpmath.ncdf(-1 / (2 * sigma) - epsilon * sigma)
                    - delta
                ),
                total,
            )
            extra.append(float(total - plain))
    # 36 sigma of tail, 2^40 steps in a sigma: (36^2 / 8) 4^-40 for each of two sides.
    least = 2 * 1000 * answers * (36.0**2 / 8) * 4.0**-40
    assert least <= extra[1] < 1.2 * least
    assert 0 <= extra[0] < least / 100


def test_the_event_is_the_discrete_noise_s_own() -> None:
    mechanism = SignedDistanceRelease.for_answers(
        classes=3, answers=100, adjacency=AddRemove(1), **TOTAL
    )
    cost = mechanism.event.cost
    assert isinstance(cost, ZeroConcentratedCost)
    assert cost.rho <= 0.5 / mechanism.noise_multiplier**2
    assert cost.rho == pytest.approx(0.5 / mechanism.noise_multiplier**2, rel=1e-12)
    booked = RdpAccountant(AddRemove(1)).compose(mechanism.event, 100).epsilon(delta=1e-5)
    assert 10.0 < booked < 11.0  # a ledger's Renyi total is a little above the exact one


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_answers_follow_the_distribution(classes: int) -> None:
    mechanism, runs = release(classes), 60_000
    for level in (0, 3):
        answers = mechanism.release(
            np.full(runs, 1), np.full(runs, level), sampler=SeededSampler(level)
        )
        right = float(mechanism.right_probabilities([level])[0])
        expected = np.full(classes, (1 - right) / (classes - 1))
        expected[1] = right
        counts = np.bincount(answers, minlength=classes)
        assert stats.chisquare(counts, runs * expected).pvalue > 1e-6
        less = float(release(classes, 0.6).right_probabilities([level])[0])
        other = np.full(classes, (1 - less) / (classes - 1))
        other[1] = less
        assert stats.chisquare(counts, runs * other).pvalue < 1e-6


def test_probabilities_against_quadrature_in_high_precision() -> None:
    mechanism = release(5)
    for level in (0, 2, 9):
        with mpmath.workdps(20):
            reach = (level + math.sqrt(4 / 10)) * math.sqrt(5 / 4) / mechanism.noise_multiplier
            truth = mpmath.quad(
                lambda z, t=reach: mpmath.npdf(z) * mpmath.ncdf(z + t) ** 4, [-12, -3, 0, 3, 12]
            )
        assert float(mechanism.right_probabilities([level])[0]) == pytest.approx(
            float(truth), abs=1e-8
        )


def test_levels_beyond_the_noise_count_as_one() -> None:
    mechanism = release()
    far = mechanism.right_probabilities([mechanism.max_level])[0]
    assert far == 1.0
    answers = mechanism.release(np.array([0, 1]), np.array([2**60, 2**60]), sampler=SecureSampler())
    assert answers.tolist() == [0, 1]


def test_refusals() -> None:
    for fields in (
        {"classes": 1},
        {"epsilon": 0.0},
        {"epsilon": 101.0},
        {"delta": 0.0},
        {"delta": 1e-60},
    ):
        with pytest.raises(InvalidParameter):
            release(**fields)
    with pytest.raises(InvalidParameter, match="at most 2"):
        release().total(answers=2**40 + 1, delta=1e-5)
    with pytest.raises(InvalidParameter, match="2\\*\\*30 levels"):
        SignedDistanceRelease.for_answers(
            classes=2, epsilon=1e-4, delta=1e-9, answers=2**40, adjacency=AddRemove(1)
        )
    with pytest.raises(InvalidInput):
        release().release([2], [0], sampler=SecureSampler())
    assert release().total(answers=10**9, delta=1e-5) == math.inf
    empty = np.zeros(0, dtype=int)
    assert release().release(empty, empty, sampler=SecureSampler()).shape == (0,)
