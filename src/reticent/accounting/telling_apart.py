"""Proved caps on how often anybody can tell inputs apart under a guarantee.

Every cap holds for an observer of the answer with any computing power and any knowledge, if the
input was drawn evenly from candidates that the observer knows. If the observer knows more about one
person, these caps do not apply, but the guarantee still bounds the change of the odds by an answer.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter

_UP = 1.0 + 2.0**-40
"""Margin that keeps the rounding of sums and quotients from putting a cap below the proved one."""

_MOST_HOPS = 2.0**62
"""More hops, which int64 does not hold, count as so many. At epsilon 1e-16 they hide nothing."""

_LARGEST = 700.0
"""Nearly the largest exponent of a double."""


def hops(distances: npt.ArrayLike, radius: float) -> Integers:
    """Return the number of steps of at most ``radius`` from one point to the other, same shape.

    The points between must belong to the space as well, so it is convex, or there is but one step.
    Distances are computed in doubles. A distance a last bit or two above a whole number of radii,
    such as a neighbour at the radius, counts as that number.

    Args:
        distances: at least 0, any shape, in the norm of the neighbourhood.
        radius: above 0, in the same units.

    Example:
        >>> hops([0.0, 0.2, 0.5, 0.51, 8.0], 0.5).tolist()
        [0, 1, 1, 2, 16]
    """
    apart = finite_array(distances, name="distances", allow_empty=True)
    if (apart < 0).any():
        raise InvalidInput("distances: expected numbers of at least 0")
    with np.errstate(over="ignore"):
        steps = np.ceil(apart / positive(radius, name="radius") * (1.0 - 2.0**-50))
    return np.asarray(np.where(apart > 0, np.clip(steps, 1.0, _MOST_HOPS), 0.0).astype(np.int64))


def beyond(
    *, epsilon: float, delta: float, hops: npt.ArrayLike, answers: int = 1
) -> tuple[Array, Array]:
    """Return epsilon and delta of ``answers`` answers between two points ``hops`` steps apart.

    (epsilon, delta) for every step is (h epsilon, delta (e^(h epsilon) - 1)/(e^epsilon - 1)) for h
    of them, and k answers add up.

    Args:
        epsilon: epsilon of one answer between neighbours, above 0.
        delta: delta of one answer between neighbours, in [0, 1).
        hops: whole numbers of at least 0, any shape.
        answers: number of answers about the same input, all of them seen.

    Returns:
        Two arrays of the shape of ``hops``. A delta of 1 says nothing.

    Example:
        >>> [value.tolist() for value in beyond(epsilon=1.0, delta=0.0, hops=[0, 1, 16])]
        [[0.0, 1.0, 16.0], [0.0, 0.0, 0.0]]

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, theorem 2.2 (group privacy).
    """
    positive(epsilon, name="epsilon")
    probability(delta, name="delta")
    count(answers, name="answers")
    steps = np.asarray(hops, dtype=np.float64)
    total = answers * epsilon * steps
    if delta == 0.0:
        return total, np.zeros_like(total)
    # only the factor e^(epsilon (h - 1)) of the quotient may be too large for a double
    growth = np.exp(np.minimum(epsilon * (steps - 1.0), _LARGEST))
    grown = delta * growth * np.expm1(-epsilon * steps) / math.expm1(-epsilon)
    return total, np.minimum(answers * grown, 1.0)


def which_of_two_cap(epsilon: npt.ArrayLike, delta: npt.ArrayLike, *, share: float = 1.0) -> Array:
    """Return the largest chance of naming the right one of two equally likely inputs:
    (e^epsilon + delta) / (e^epsilon + 1).

    *Proof.* Let C and W be the chances of a right and of a wrong name. By the guarantee P(says 1 |
    1) <= e^epsilon P(says 1 | 2) + delta, and the same with 1 and 2 exchanged. Half of their sum is
    C <= e^epsilon W + delta. With W = share - C that is C/share <= (e^epsilon + delta/share) /
    (e^epsilon + 1).

    Args:
        epsilon: epsilon between the two, at least 0, any shape.
        delta: delta between the two, in [0, 1], same shape.
        share: chance that a name is given at all, in (0, 1]. The cap is on those names.

    Example:
        >>> which_of_two_cap([0.0, 1.0, 5.0], 0.0).round(3).tolist()
        [0.5, 0.731, 0.993]
    """
    if not 0.0 < share <= 1.0:
        raise InvalidParameter(f"share={share!r}: expected a number in (0, 1]")
    odds = np.exp(-np.asarray(epsilon, dtype=np.float64))
    cap = (1.0 + np.asarray(delta, dtype=np.float64) / share * odds) / (1.0 + odds)
    return np.asarray(np.minimum(cap, 1.0))


def which_of_many_cap(epsilons: npt.ArrayLike, deltas: npt.ArrayLike) -> float:
    """Return the largest chance of naming the right one of N equally likely inputs.

    *Proof.* Let p_i be the chance to name i where it is i. For every j the chances of all names
    given at j add up to at most 1, and i is named with at least e^-E_ij (p_i - D_ij). So sum_i
    e^-E_ij p_i <= 1 + sum_i e^-E_ij D_ij for every j. Prices y_j >= 0 with sum_j y_j e^-E_ij >= 1
    for every i give sum_i p_i <= sum_j y_j (1 + sum_i e^-E_ij D_ij). A linear program proposes
    prices, which are then scaled until they satisfy that. Any such prices would do.

    Args:
        epsilons: epsilon between any two inputs, shape (N, N), 0 on the diagonal.
        deltas: delta between any two inputs, same shape, 0 on the diagonal.

    Example:
        >>> apart = np.ones((4, 4)) - np.eye(4)
        >>> round(which_of_many_cap(apart, 0 * apart), 4), round(float(1 / (1 + 3 / np.e)), 4)
        (0.4754, 0.4754)
    """
    apart = finite_array(epsilons, name="epsilons", ndim=2)
    slack = finite_array(deltas, name="deltas", ndim=2)
    size = len(apart)
    if apart.shape != (size, size) or slack.shape != apart.shape:
        raise InvalidInput(
            f"epsilons, deltas: expected two square arrays of one shape, got {apart.shape} and "
            f"{slack.shape}"
        )
    # imported here, because cards need only the other caps and start without a solver
    from scipy.optimize import linprog

    weight = np.exp(-apart)
    room = 1.0 + (weight * slack).sum(axis=0)
    found = linprog(room, A_ub=-weight, b_ub=-np.ones(size), bounds=(0.0, None), method="highs")
    prices = np.ones(size) if found.x is None else np.maximum(found.x, 0.0)
    least = float((weight @ prices).min())
    if least <= 0.0:
        return 1.0
    return min(1.0, float(room @ prices) / least / size * _UP)


def squared_error_floor(squared: npt.ArrayLike, epsilon: npt.ArrayLike, delta: float) -> Array:
    """Return the least mean squared error of any estimate of a point that is one of two, equally
    likely.

    *Proof.* The best estimate is the posterior mean, whose mean error is d^2 E[q (1 - q)], where q
    is the posterior probability of the first. Without a delta, q lies between 1 - c and c =
    1/(1 + e^-epsilon), so q (1 - q) >= c (1 - c). With a delta, q (1 - q) >= min(q, 1 - q)/2, whose
    mean is half the least chance of a wrong name.

    Args:
        squared: d^2, squared distance of the two, any shape.
        epsilon: epsilon between the two, same shape.
        delta: delta between the two.

    Example:
        >>> squared_error_floor(4.0, 0.0, 0.0).item()
        1.0
    """
    cap = which_of_two_cap(epsilon, delta)
    share = cap * (1.0 - cap) if delta == 0.0 else (1.0 - cap) / 2.0
    return np.asarray(np.asarray(squared, dtype=np.float64) * share)
