"""K-norm distributions against their exact probabilities on tiny grids, and against Gamma radii
on wide ones.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import InvalidParameter, UnsupportedNorm
from reticent.core.norms import Norm
from reticent.noise import (
    AuditSampler,
    SecureSampler,
    SeededSampler,
    k_norm,
    l2_epsilon_margin,
)
from reticent.noise.k_norm import _uniform_in_ball, _within

ALARM = 1e-6


def exact_distribution(
    dimension: int, scale: float, norm: Norm, reach: int
) -> tuple[np.ndarray, np.ndarray]:
    """All integer vectors up to ``reach``, and their probabilities by enumeration."""
    points = np.array(list(itertools.product(range(-reach, reach + 1), repeat=dimension)))
    squares = (points**2).sum(axis=1)
    length = np.ceil(np.sqrt(squares) - 1e-12) if norm is Norm.L2 else np.abs(points).max(axis=1)
    weights = np.exp(-length / scale)
    return points, weights / weights.sum()


TINY = [
    *[(Norm.LINF, m, scale) for m, scale in ((1, 0.4), (1, 2.0), (2, 0.5), (2, 1.5), (3, 1.0))],
    *[(Norm.L2, m, scale) for m, scale in ((1, 2.0), (2, 2.0), (3, 1.5))],
]


@pytest.mark.parametrize(("norm", "dimension", "scale"), TINY)
def test_every_probability_on_a_tiny_grid(norm: Norm, dimension: int, scale: float) -> None:
    runs, reach = 60_000, int(40 * scale) + 5 if dimension < 3 else 24
    draws = k_norm(runs, dimension, scale=scale, norm=norm, sampler=AuditSampler(11))
    draws = draws[np.abs(draws).max(axis=1) <= reach]  # beyond lie fewer than one in 10^5
    base = 2 * reach + 1
    code = ((draws + reach) * base ** np.arange(dimension)[::-1]).sum(axis=1)
    counts = np.bincount(code, minlength=base**dimension)
    for factor, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        _, distribution = exact_distribution(dimension, factor * scale, norm, reach)
        expected = runs * distribution
        large = expected >= 10
        table = (
            np.append(counts[large], runs - counts[large].sum()),
            np.append(expected[large], runs - expected[large].sum()),
        )
        assert bool(stats.chisquare(*table).pvalue > ALARM) is fits


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
@pytest.mark.parametrize("dimension", [1, 2, 5, 16])
def test_radii_on_a_wide_grid(norm: Norm, dimension: int) -> None:
    # For a norm in m dimensions the continuous distribution has radius Gamma(m, scale) on *every*
    # norm.
    scale = 2.0**20 * 1.3
    draws = k_norm(4_000, dimension, scale=scale, norm=norm, sampler=AuditSampler(12))
    radii = norm.of(draws) / scale
    assert stats.kstest(radii, stats.gamma(dimension).cdf).pvalue > ALARM
    for factor in (2 / 3, 3 / 2):
        assert stats.kstest(radii, stats.gamma(dimension, scale=factor).cdf).pvalue < ALARM


def test_directions_are_uniform() -> None:
    draws = k_norm(20_000, 3, scale=2.0**22, norm=Norm.L2, sampler=AuditSampler(13)).astype(
        np.float64
    )
    # Archimedes: one coordinate of a uniform direction in three dimensions is uniform on [-1, 1].
    directions = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    for axis in range(3):
        assert stats.kstest(directions[:, axis], stats.uniform(-1, 2).cdf).pvalue > ALARM
    cube = k_norm(20_000, 3, scale=2.0**22, norm=Norm.LINF, sampler=AuditSampler(14)).astype(
        np.float64
    )
    largest = np.abs(cube).argmax(axis=1)
    assert stats.chisquare(np.bincount(largest)).pvalue > ALARM


def test_secure_source_draws_the_same_distribution() -> None:
    scale = 2.0**20
    for norm in (Norm.LINF, Norm.L2):
        radii = norm.of(k_norm(1_000, 4, scale=scale, norm=norm, sampler=SecureSampler())) / scale
        assert stats.kstest(radii, stats.gamma(4).cdf).pvalue > ALARM


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_points_of_a_ball_are_uniform(dimension: int) -> None:
    points = _uniform_in_ball(np.full(20_000, 2**58), dimension, SeededSampler(15)) / 2.0**58
    radius = np.linalg.norm(points, axis=1)
    assert radius.max() <= 1 + 1e-12
    assert stats.kstest(radius**dimension, stats.uniform.cdf).pvalue > ALARM
    last = points[:, -1]
    marginal = stats.beta((dimension + 1) / 2, (dimension + 1) / 2, loc=-1, scale=2)
    assert stats.kstest(last, marginal.cdf).pvalue > ALARM
    assert stats.kstest(points[:, 0], marginal.cdf).pvalue > ALARM


def test_small_balls_hold_every_point_equally_often() -> None:
    # At radius 60 the factor 1 + e of the proof is far from 1 only within a few steps of the poles.
    points = _uniform_in_ball(np.full(400_000, 60), 2, SeededSampler(16))
    inner = np.abs(points).max(axis=1) <= 30
    counts = np.bincount((points[inner, 0] + 30) * 61 + points[inner, 1] + 30, minlength=61 * 61)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_membership_is_exact_beyond_doubles() -> None:
    r = 2**40
    vectors = np.array([[r, 0], [r, 1], [r - 1, 2**20]])
    assert _within(vectors, np.array([r, r, r])).tolist() == [True, False, True]
    assert _within(np.array([[3, 4], [3, 5]]), np.array([5, 5])).tolist() == [True, False]


class Far(AuditSampler):
    """The first geometric variables are as large as a sampler returns."""

    far = True

    def geometric(self, shape, *, scale: float) -> np.ndarray:
        drawn = super().geometric(shape, scale=scale)
        if self.far:
            drawn[0, 0], self.far = 2**62, False
        return drawn


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
def test_a_radius_beyond_int64_is_drawn_again(norm: Norm) -> None:
    draws = k_norm(50, 4, scale=2.0**40, norm=norm, sampler=Far(17))
    assert (np.abs(draws) < 2**50).all()
    assert (draws[0] != 0).any()


def test_scales_whose_radii_would_leave_int64_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="2\\*\\*52"):
        k_norm(1, 8, scale=2.0**50, norm=Norm.LINF, sampler=SecureSampler())
    assert k_norm(1, 3, scale=2.0**50, norm=Norm.LINF, sampler=SecureSampler()).shape == (1, 3)


def test_empty_zero_radius_and_refusals() -> None:
    sampler = SecureSampler()
    assert k_norm(0, 3, scale=1.0, norm=Norm.L2, sampler=sampler).shape == (0, 3)
    assert (k_norm(50, 3, scale=1e-3, norm=Norm.LINF, sampler=sampler) == 0).all()
    with pytest.raises(UnsupportedNorm):
        k_norm(1, 2, scale=1.0, norm=Norm.L1, sampler=sampler)
    with pytest.raises(UnsupportedNorm):
        k_norm(1, 65, scale=1.0, norm=Norm.L2, sampler=sampler)
    for norm, scale in (
        (Norm.LINF, 0.0),
        (Norm.LINF, 2.0**51),
        (Norm.L2, 0.5),
        (Norm.L2, float("nan")),
    ):
        with pytest.raises(InvalidParameter):
            k_norm(1, 2, scale=scale, norm=norm, sampler=sampler)
    assert l2_epsilon_margin(64) < 1e-6
