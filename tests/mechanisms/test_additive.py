"""The additive mechanisms: what the noise covers, in exact arithmetic, and the shape of what
comes out.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from reticent.core import Neighborhood, Norm
from reticent.core.errors import InvalidInput
from reticent.mechanisms import (
    AdditiveMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    analytic_sigma,
    gaussian_delta,
)
from reticent.noise import SecureSampler, SeededSampler, l2_epsilon_margin

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
ALARM = 1e-6


def mechanism_of(kind: str, **changes) -> AdditiveMechanism:
    settings = {"sensitivity": 1.0, "epsilon": 1.0, "dimension": 3, "adjacency": NEAR, **changes}
    if kind == "laplace":
        return LaplaceMechanism(**settings)
    if kind == "gaussian":
        return GaussianMechanism(delta=1e-5, **settings)
    return KNormMechanism(output_norm=Norm(kind), **settings)


KINDS = ["laplace", "linf", "l2", "gaussian"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("epsilon", "sensitivity"),
    [(1e-5, 1.0), (0.3, 1e-200), (1.0, 7e5), (17.0, 3e-4), (400.0, 1.0), (0.3, 3e-4)],
)
def test_sensitivity_in_steps_covers_rounding(
    kind: str, epsilon: float, sensitivity: float
) -> None:
    mechanism = mechanism_of(
        kind, epsilon=epsilon, sensitivity=sensitivity, evaluation_error=1e-9 * sensitivity
    )
    ones = {"laplace": Fraction(3), "linf": Fraction(1)}.get(
        kind, Fraction(17320508075688773, 10**16)
    )
    needed = (Fraction(sensitivity) + 2 * ones * Fraction(1e-9 * sensitivity)) / Fraction(
        mechanism.grid.step
    ) + ones
    assert Fraction(mechanism.steps_sensitivity) >= needed
    assert Fraction(mechanism.steps_sensitivity) <= needed * (1 + Fraction(1, 2**30)) + 1
    if kind != "gaussian":
        charge = Fraction(l2_epsilon_margin(3)) if kind == "l2" else 0
        assert Fraction(mechanism.steps_sensitivity) <= Fraction(mechanism.steps_scale) * (
            Fraction(epsilon) - charge
        )
        # Rounding to the grid costs next to nothing.
        assert mechanism.scale == pytest.approx(
            sensitivity / epsilon, rel=1e-5 if epsilon > 1e-4 else 1e-2
        )


def test_the_sensitivity_in_l2_is_whole() -> None:
    assert mechanism_of("l2").steps_sensitivity.is_integer()


@pytest.mark.parametrize("norm", [Norm.LINF, Norm.L2])
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("error", [0.0, 3e-7])
def test_loss_at_any_distance_is_within_the_offset_of_proportional(
    norm: Norm, dimension: int, error: float
) -> None:
    """Distances from 0 to twice the sensitivity, values on both sides of the grid's cells,
    errors in the worst direction.
    """
    mechanism = KNormMechanism(
        sensitivity=0.3,
        epsilon=2.0,
        dimension=dimension,
        adjacency=NEAR,
        output_norm=norm,
        evaluation_error=error,
    )
    random, step = np.random.default_rng(0), mechanism.grid.step
    loss, reached = [], 0.0
    for distance in [
        0.0,
        *(10.0 ** random.uniform(-9, 0, 300) * 0.6),
        *(random.integers(1, 50, 300) * step),
    ]:
        way = random.normal(size=dimension)
        corner = (random.integers(-(10**6), 10**6, dimension) + 0.5) * step
        first = corner - np.sign(way) * error  # just below a boundary, computed still lower
        second = (
            corner + distance * way / float(norm.of(way)) + np.sign(way) * (error + 1e-9 * step)
        )
        moved = (
            mechanism.grid.round(second[None])
            - mechanism.grid.round(first[None] - np.sign(way) * 1e-9 * step)
        )[0]
        squared = sum(int(part) ** 2 for part in moved)
        # The loss at the worst point is the norm of the shift, rounded up for l2 (rational: the
        # root of an integer).
        length = (
            math.isqrt(max(squared - 1, 0)) + (squared > 0)
            if norm is Norm.L2
            else int(np.abs(moved).max())
        )
        loss.append(
            length / mechanism.steps_scale - mechanism.epsilon * distance / mechanism.sensitivity
        )
        reached = max(reached, loss[-1])
    assert reached <= mechanism.metric_offset
    assert reached > 0.5 * mechanism.metric_offset  # and the offset is not idle


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("laplace", lambda u: (np.abs(u).sum(axis=1), stats.gamma(3))),
        ("linf", lambda u: (np.abs(u).max(axis=1), stats.gamma(3))),
        ("l2", lambda u: (np.linalg.norm(u, axis=1), stats.gamma(3))),
        ("gaussian", lambda u: (np.linalg.norm(u, axis=1), stats.chi(3))),
    ],
)
def test_released_noise_has_the_stated_distribution_and_scale(kind, shape) -> None:
    mechanism = mechanism_of(kind, epsilon=2.5, sensitivity=0.3)
    value = np.array([1.0, -2.0, 1e-3])
    released = mechanism.release(np.tile(value, (3000, 1)), sampler=SecureSampler())
    for factor, fits in ((1.0, True), (2 / 3, False), (3 / 2, False)):
        radius, target = shape((released - value) / (factor * mechanism.scale))
        assert bool(stats.kstest(radius, target.cdf).pvalue > ALARM) is fits


@pytest.mark.parametrize("kind", KINDS)
def test_released_values_lie_on_the_public_grid(kind: str) -> None:
    mechanism = mechanism_of(kind)
    released = mechanism.release(
        np.random.default_rng(0).normal(size=(50, 3)), sampler=SecureSampler()
    )
    assert (released / mechanism.grid.step == np.rint(released / mechanism.grid.step)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_far_values_are_clipped_and_empty_batches_come_back_empty(kind: str) -> None:
    mechanism = mechanism_of(kind)
    far = mechanism.release([[1e300, -1e300, 0.0]], sampler=SecureSampler())
    assert far[0, 0] == pytest.approx(mechanism.grid.limit, rel=1e-6)
    assert far[0, 1] == pytest.approx(-mechanism.grid.limit, rel=1e-6)
    assert mechanism.release(np.zeros((0, 3)), sampler=SecureSampler()).shape == (0, 3)


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-40, 1e-10, 1e-5, 0.05, 0.9])
def test_analytic_sigma_meets_delta_in_high_precision(epsilon: float, delta: float) -> None:
    with mpmath.workdps(60):

        def exact(sigma: float) -> mpmath.mpf:
            s, e = mpmath.mpf(sigma), mpmath.mpf(epsilon)
            return mpmath.ncdf(1 / (2 * s) - e * s) - mpmath.exp(e) * mpmath.ncdf(
                -1 / (2 * s) - e * s
            )

        sigma = analytic_sigma(sensitivity=1.0, epsilon=epsilon, delta=delta)
        assert exact(sigma) <= delta
        assert exact(sigma * (1 - 3e-7)) > delta
        assert gaussian_delta(sensitivity=1.0, sigma=sigma, epsilon=epsilon) == pytest.approx(
            float(exact(sigma)), rel=1e-8
        )


@pytest.mark.parametrize("kind", KINDS)
def test_log_likelihoods_are_those_of_what_is_drawn(kind: str) -> None:
    """The mean of P(z | b) / P(z | a) over answers z about a is 1, whatever b is; with half of the
    noise in place of all of it it is not.
    """
    mechanism = mechanism_of(kind, epsilon=0.8, dimension=2)
    values = np.array([[0.0, 0.0], [0.3, -0.6], [1.0, 0.2]])
    drawn = mechanism.release(np.repeat(values[:1], 40_000, axis=0), sampler=SeededSampler(1))
    known = mechanism.log_likelihood(drawn, values)
    assert known.shape == (40_000, 3)

    def off(weights: np.ndarray) -> np.ndarray:
        ratio = np.exp(weights[:, 1:] - weights[:, :1])
        return np.abs(ratio.mean(axis=0) - 1.0) / (ratio.std(axis=0) / 200.0)

    assert (off(known) < 5.0).all()
    sharper = mechanism_of(kind, epsilon=0.8, dimension=2, sensitivity=0.5)
    assert (off(sharper.log_likelihood(drawn, values)) > 5.0).any()


def test_log_likelihoods_have_their_closed_form() -> None:
    released, values = np.array([[3.0, -4.0]]), np.array([[0.0, 0.0], [3.0, -3.0]])
    for kind, lengths in (("laplace", [7.0, 1.0]), ("linf", [4.0, 1.0]), ("l2", [5.0, 1.0])):
        mechanism = mechanism_of(kind, dimension=2)
        found = mechanism.log_likelihood(released, values)[0]
        np.testing.assert_allclose(found, -np.array(lengths) / mechanism.scale, rtol=1e-6)
    gaussian = mechanism_of("gaussian", dimension=2)
    np.testing.assert_allclose(
        gaussian.log_likelihood(released, values)[0],
        -np.array([25.0, 1.0]) / (2 * gaussian.scale**2),
        rtol=1e-6,
    )
    with pytest.raises(InvalidInput, match="released"):
        gaussian.log_likelihood([[np.nan, 0.0]], values)
