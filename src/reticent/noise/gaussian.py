"""Exact discrete Gaussian variables for whole arrays: discrete Laplace proposals, thinned by exact
coins.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Integers
from reticent.noise.digits import BLOCK, EXPONENTIAL_ERROR, enclosed_coins, exponential
from reticent.noise.expansions import Exponential, Thresholds, Words
from reticent.noise.geometric import geometric_digits

_ACCEPTED = 0.76
"""Share of proposals that are kept for large sigma: sqrt(pi / (2 e)). For small sigma it is 0.55 or
more.
"""

_ERROR = EXPONENTIAL_ERROR + 2.0**-38
"""Error of the acceptance probability: the exponential's own, and the effect of the exponent's
rounding (``discrete_gaussian``).
"""


def discrete_gaussian(count: int, sigma: float, words: Words) -> Integers:
    """Return ``count`` independent integers v with probability proportional to exp(-v^2 / (2
    sigma^2)).

    A discrete Laplace proposal v of scale sigma is kept with probability exp(-g), g = (|v|/sigma -
    1)^2 / 2, because -|v|/sigma - g = -v^2 / (2 sigma^2) - 1/2. The first ``count`` that are kept
    are the answer.

    With |v| <= 64 sigma the computed g is within 2^-38 of the true one. |v| as a double and the
    quotient are right to a relative 2^-53 each and the subtraction rounds once, 2^-45 in all. The
    square, of a number up to 63, is right to within 2 * 63 * 2^-45 + 2^-90 + 2^-41. Half of that is
    below 2^-38. Beyond 64 sigma exp(-g), computed or true, is below 2^-57.

    Args:
        count: number of draws.
        sigma: a float64 above 0, at most 2^50, taken at its exact value.
        words: source of random words.
    """
    digits = geometric_digits(sigma)
    exact = Fraction(sigma)
    drawn = np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        wanted = min(count - done, BLOCK)
        proposals = digits.laplace(min(BLOCK, int(wanted / _ACCEPTED) + 8), words)
        kept = proposals[_accepted(proposals, sigma, exact, words)][:wanted]
        drawn[done : done + len(kept)] = kept
        done += len(kept)
    return drawn


def _accepted(
    proposals: Integers, sigma: float, exact: Fraction, words: Words
) -> npt.NDArray[np.bool_]:
    exponent = np.abs(proposals.astype(np.float64))
    with np.errstate(over="ignore"):  # a tiny sigma makes huge exponents, which is what is meant
        exponent /= sigma
        exponent -= 1.0
        np.square(exponent, out=exponent)
    exponent *= 0.5

    def threshold(place: int) -> Thresholds:
        gap = (abs(int(proposals[place])) / exact - 1) ** 2 / 2
        return Exponential(gap.numerator, gap.denominator)

    return enclosed_coins(exponential(exponent), _ERROR, threshold, words)
