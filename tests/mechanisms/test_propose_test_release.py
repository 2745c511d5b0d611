"""The optimal test: private in exact arithmetic, optimal against a linear program, released as
stated.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidParameter
from reticent.mechanisms import (
    KNormMechanism,
    LaplaceMechanism,
    NoisyMaxRelease,
    ProposeTestRelease,
    optimal_test,
)
from reticent.noise import SecureSampler, SeededSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
INNER = LaplaceMechanism(sensitivity=1.0, epsilon=1.0, dimension=2, adjacency=NEAR)
SETTINGS = [
    *[(e, d) for e in (0.05, 0.5, 1.0, 2.0, 5.0) for d in (1e-9, 1e-5, 1e-2, 0.2, 0.7)],
    (30.0, 1e-12),
    (600.0, 1e-5),
    (600.0, 1e-30),  # epsilon has no digits left for a margin of 2^-44
    (30.0, 1e-300),  # the last probability to withhold is below 1e-308
    (1e4, 1e-300),
    (1e-3, 1e-4),
]


def ptr(**changes) -> ProposeTestRelease:
    settings = {
        "radius": 0.5,
        "proposal": 2.0,
        "epsilon_test": 1.0,
        "delta_test": 0.05,
        "inner": INNER,
        **changes,
    }
    return ProposeTestRelease(**settings)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_the_test_is_private_in_exact_arithmetic(epsilon: float, delta: float) -> None:
    passing, withholding = optimal_test(epsilon=epsilon, delta=delta)
    with mpmath.workdps(400):
        growth, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
        # The coin shows the smaller side exactly; the other is its complement.
        p = [
            mpmath.mpf(a) if a <= b else 1 - mpmath.mpf(b)
            for a, b in zip(passing, withholding, strict=True)
        ]
        assert p[0] <= d
        assert p[-1] == 1
        for here, there in itertools.pairwise(p):
            assert here < there <= growth * here + d
            assert 1 - here <= growth * (1 - there) + d


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.5, 0.01), (1.0, 0.05), (2.0, 1e-3), (4.0, 1e-2), (0.3, 0.2)]
)
def test_no_test_passes_any_level_more_often(epsilon: float, delta: float) -> None:
    passing, _ = optimal_test(epsilon=epsilon, delta=delta)
    levels = len(passing)
    rows, bounds = [], []
    for i in range(levels):
        for j in (i - 1, i + 1):
            if 0 <= j < levels:
                one = np.zeros(levels)
                one[i], one[j] = 1.0, -np.exp(epsilon)
                rows.append(one)  # p_i <= e^eps p_j + delta
                bounds.append(delta)
                rows.append(-one)  # 1 - p_i <= e^eps (1 - p_j) + delta
                bounds.append(delta + np.exp(epsilon) - 1.0)
    limits = [(0.0, delta)] + [(0.0, 1.0)] * (levels - 1)
    for level in range(levels):
        target = np.zeros(levels)
        target[level] = -1.0
        best = optimize.linprog(
            target, A_ub=np.array(rows), b_ub=bounds, bounds=limits, method="highs"
        )
        assert passing[level] == pytest.approx(-best.fun, rel=1e-6)


def test_the_test_is_the_recursion_in_high_precision() -> None:
    with mpmath.workdps(50):
        growth, delta = mpmath.exp(mpmath.mpf(0.7)), mpmath.mpf(0.003)
        p = [delta]
        while p[-1] < 1:
            p.append(min(growth * p[-1] + delta, 1 - (1 - p[-1] - delta) / growth, mpmath.mpf(1)))
        assert ptr(epsilon_test=0.7, delta_test=0.003).pass_probabilities == pytest.approx(
            [float(v) for v in p], rel=1e-10
        )


def test_a_pass_happens_as_often_as_stated() -> None:
    mechanism = ptr()
    for level, p in enumerate(mechanism.pass_probabilities):
        _, withheld = mechanism.release(
            np.zeros((20_000, 2)), np.full(20_000, level), sampler=SeededSampler(level)
        )
        assert stats.binomtest(int((~withheld).sum()), 20_000, min(p, 1.0)).pvalue > 1e-6


def test_withheld_rows_carry_nothing_and_others_the_noisy_value() -> None:
    mechanism = ptr()
    values = np.full((4000, 2), 1e6)
    released, withheld = mechanism.release(values, np.tile([0, 99], 2000), sampler=SecureSampler())
    assert not withheld[1::2].any()
    assert withheld[::2].mean() > 0.9
    assert (np.isnan(released).all(axis=1) == withheld).all()
    noise = released[~withheld] - 1e6
    assert stats.kstest(noise.ravel(), stats.laplace(scale=INNER.scale).cdf).pvalue > 1e-6


def test_label_mechanisms_are_withheld_as_minus_one() -> None:
    inner = NoisyMaxRelease(classes=3, sensitivity=1.0, epsilon=1.0, adjacency=NEAR)
    labels, withheld = ptr(inner=inner).release(
        np.zeros((500, 3)), np.zeros(500, dtype=int), sampler=SecureSampler()
    )
    assert ((labels == -1) == withheld).all()
    assert withheld.any()


def test_guarantee_and_event_add_up() -> None:
    mechanism = ptr(epsilon_test=0.25, delta_test=1e-3)
    assert mechanism.guarantee.epsilon == 1.25
    assert mechanism.guarantee.delta == 1e-3
    assert mechanism.guarantee.adjacency == NEAR
    assert mechanism.event.cost is None
    assert mechanism.max_level == len(mechanism.pass_probabilities) - 1


def test_an_inner_mechanism_that_covers_less_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="sensitivity"):
        ptr(proposal=2.1)
    with pytest.raises(InvalidParameter, match="radius"):
        ptr(radius=0.25, inner=INNER)
    far = {"radius": 2.0, "proposal": 0.6}  # 0.6 a unit of distance are 1.2 over the radius
    with pytest.raises(InvalidParameter, match="sensitivity"):
        ptr(**far)
    assert ptr(**{**far, "proposal": 0.5}).inner is INNER
    exact = KNormMechanism(
        sensitivity=0.3 * 0.1,
        epsilon=1.0,
        dimension=2,
        adjacency=Neighborhood(Norm.LINF, 0.1, "e"),
        output_norm="linf",
    )
    assert ptr(radius=0.1, proposal=0.3, inner=exact).inner.sensitivity == float(
        Fraction(0.3 * 0.1)
    )


def test_a_test_of_too_many_levels_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="levels"):
        optimal_test(epsilon=1e-7, delta=1e-12)
