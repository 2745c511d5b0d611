"""The van Trees bound: the least mean distance of any reconstruction of a row from the row.

Let x have a density f on R^d, and let z be released with a density p(z | x). For *every* estimator
A, biased or not,

    E ||A(z) - x||^2  >=  d^2 / (E tr I(z | x) + tr I(f)),

with I(z | x) the Fisher information of the release and I(f) that of the prior, provided that f
is smooth and vanishes at infinity (Gill and Levit 1995, the trace form). An epsilon-Lipschitz
release has ||grad_x log p(z | x)|| <= epsilon, so tr I(z | x) <= epsilon^2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter
from reticent.published.density import KernelDensity


def reconstruction_bound(
    dimension: int, *, lipschitz_epsilon: float, prior_information: float
) -> float:
    """Return the least mean squared l2 error of any estimate of a row.

    **Guarantee.** The bound holds for rows drawn from a prior with Fisher information
    ``prior_information`` or less, and an additive release whose log-density has a gradient of norm
    at most ``lipschitz_epsilon`` in x. *Assumed:* that prior. Tables have categories and so no
    density. The bound speaks of rows drawn from a kernel density estimate of them: rows plus
    Gaussian noise of the bandwidth h. With the information d / h^2 of such an estimate the bound
    never exceeds d h^2. That is the error of someone who is told the row and only misses the noise.
    If rows are farther apart than h, the bound says next to nothing about the row itself. The grid
    form of the distribution has no Fisher information. Its errors are at least e^(-2 o) times the
    bound, with the offset o of ``KNormMechanism.metric_offset`` (about 1e-6, docs/power.md).
    *Differs from the paper:* the paper proves it for unbiased estimators and adds an unknown
    constant for the error of the estimated prior. Here the estimate itself is the prior, so nothing
    is left to be estimated.

    Args:
        dimension: d, number of coordinates of a row.
        lipschitz_epsilon: epsilon per unit of distance, which is epsilon over the radius.
        prior_information: tr I(f) or more, such as ``fisher_bound`` for a kernel
            density estimate.

    Raises:
        InvalidParameter: a number out of its range.

    Example:
        >>> reconstruction_bound(2, lipschitz_epsilon=1.0, prior_information=3.0)
        1.0
    """
    count(dimension, name="dimension")
    positive(lipschitz_epsilon, name="lipschitz_epsilon")
    if not (np.isfinite(prior_information) and prior_information >= 0):
        raise InvalidParameter(
            f"prior_information={prior_information!r}: expected a finite number of at least 0"
        )
    return dimension**2 / (lipschitz_epsilon**2 + prior_information)


def fisher_bound(density: KernelDensity) -> float:
    """Return d / h^2, an upper bound on tr I(f), the mean squared norm of the score of the estimate
    at draws from itself.

    *Why.* A draw is y = c + h u, with c one of the centers and u standard normal. The score is the
    posterior mean of a single kernel's score: s(y) = E[(c - y) / h^2 | y] = E[-u / h | y]. So E
    ||s(y)||^2 <= E ||u||^2 / h^2 = d / h^2 (Jensen). One center attains it, and centers much
    farther apart than h nearly do. It is the information of the estimate, and of the data's
    distribution only as far as the two are close.

    Example:
        >>> fisher_bound(KernelDensity(np.zeros((10, 2)), 0.5))
        8.0

    Reference: Stam (1959), inequality of Fisher information under convolution, of which this is
    the weaker half.
    """
    return density.dimension / density.bandwidth**2


def smoothed(rows: npt.ArrayLike, *, bandwidth: float, seed: int) -> Array:
    """Return ``rows`` (shape (n, d)) plus Gaussian noise of the bandwidth.

    These are draws from the prior that the bound speaks of.
    """
    points = np.asarray(rows, dtype=np.float64)
    return np.asarray(
        points
        + positive(bandwidth, name="bandwidth")
        * np.random.default_rng(seed).normal(size=points.shape)
    )
