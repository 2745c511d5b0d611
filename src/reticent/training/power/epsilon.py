"""The per-sample number that the Power Mechanism paper calls epsilon, with its confidence terms.

It bounds how fast the *population density* of z changes around one sample. It says nothing about
what an observer of z learns of x: given x, z is certain. See docs/power.md.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from reticent.core.arrays import Array
from reticent.core.checks import finite_array, probability
from reticent.core.errors import InvalidInput
from reticent.training.power.density import KernelDensity
from reticent.training.power.published import PowerNetwork, log_det_gradients


def smoothness(
    log_density: npt.ArrayLike,
    score: npt.ArrayLike,
    log_det_gradient: npt.ArrayLike,
    *,
    log_variance_constant: float,
    alpha: float,
) -> Array:
    """Per-sample epsilon of the paper's section 4.6, shape (n,); at least 0, infinite where it is
    not defined.

    With K = mu_K / (n h^d), fhat the density, s = grad fhat / fhat its score, g the gradient of the
    log-determinants, and z the normal quantile at 1 - alpha / 2, it is

        max(||s / (1 - z r) - g||, ||s / (1 + z r) - g||) + d z r / 2,     r = sqrt(K / fhat),

    because grad fhat / (fhat -+ z sqrt(K fhat)) = s / (1 -+ z r).

    Args:
        log_density: shape (n,), logarithm of fhat.
        score: shape (n, d).
        log_det_gradient: shape (n, d).
        log_variance_constant: logarithm of K.
        alpha: one minus the confidence of the density's interval, in (0, 1).

    Edge cases: where the interval reaches down to density 0 (z r >= 1) no bound exists, and the
    answer is infinity; so it is where the log-determinant has no gradient.

    Raises:
        InvalidInput: shapes that do not fit.
    """
    probability(alpha, name="alpha", allow_zero=False)
    logs = finite_array(log_density, name="log_density", ndim=1)
    scores = finite_array(score, name="score", ndim=2)
    gradients = np.asarray(log_det_gradient, dtype=np.float64)
    if scores.shape != gradients.shape or len(logs) != len(scores):
        raise InvalidInput(
            f"score: expected shape ({len(logs)}, d) as for the gradients, got {scores.shape}, "
            f"{gradients.shape}"
        )
    quantile = float(ndtri(1.0 - 0.5 * alpha))
    ratio = np.exp(np.minimum(0.5 * (log_variance_constant - logs), 300.0))
    reach = quantile * ratio
    defined = (reach < 1.0) & np.isfinite(gradients).all(axis=1)
    epsilon = np.full(len(logs), np.inf)
    inner, wide, slope = scores[defined], reach[defined, None], gradients[defined]
    lower = np.linalg.norm(inner / (1.0 - wide) - slope, axis=1)
    upper = np.linalg.norm(inner / (1.0 + wide) - slope, axis=1)
    epsilon[defined] = np.maximum(lower, upper) + 0.5 * scores.shape[1] * reach[defined]
    return epsilon


def per_sample_epsilon(
    network: PowerNetwork, density: KernelDensity, rows: npt.ArrayLike, *, alpha: float
) -> Array:
    """``smoothness`` of every row under a trained network and a density estimate, shape (n,).

    Where ``rows`` are the centers of the estimate themselves, each row's own kernel takes part,
    as published. In high dimensions that kernel outweighs all others, and its gradient at its
    own center is 0: the number then measures the log-determinant alone.
    """
    log_density, score = density.evaluate(rows)
    gradients = log_det_gradients(network, rows)
    return smoothness(
        log_density,
        score,
        gradients,
        log_variance_constant=density.log_variance_constant,
        alpha=alpha,
    )
