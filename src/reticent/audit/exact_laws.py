"""The exact delta(epsilon) of mechanisms whose law is stated, and brackets of their compositions.

Where the law is known, no sampling is needed to say what it protects. That is a statement about the
law. Whether code draws from it is what a sampled audit is for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from reticent.core.arrays import Array
from reticent.core.checks import count, positive, probability
from reticent.core.errors import InvalidInput

_GRID = 1e-4
"""Step of the grid that losses are rounded to before they are composed."""

_MOST_ATOMS = 2**22
_CELLS = 2**16
_FFT_ERROR = 1e-12
_GAUSSIAN_ENDS = 12.0


@dataclass(frozen=True, eq=False)
class LossLaw:
    """The privacy loss of a pair of neighbours, as pieces of known chance.

    Attributes:
        first: shape (n,), chances of the pieces under the first neighbour.
        second: shape (n,), chances under the second. In each piece the ratio of densities is one
            number, or is treated as one. Then ``delta`` is a lower bound, and ``slack`` says how
            far it may be too low.
        slack: amount that is added to get the upper end.
    """

    first: Array
    second: Array
    slack: float = 0.0

    def __post_init__(self) -> None:
        for name, chances in (("first", self.first), ("second", self.second)):
            if chances.ndim != 1 or (chances < 0).any() or abs(chances.sum() - 1.0) > 1e-9:
                raise InvalidInput(f"{name}: expected chances, shape (n,), that sum to 1")
        if self.first.shape != self.second.shape:
            raise InvalidInput("first, second: expected the same length")

    def delta(self, epsilon: float) -> float:
        """Return the least delta at ``epsilon`` for this pair, in either direction."""
        if not epsilon >= 0:
            raise InvalidInput(f"epsilon={epsilon}: expected at least 0")
        odds = math.exp(epsilon)
        forth = np.maximum(self.first - odds * self.second, 0.0).sum()
        back = np.maximum(self.second - odds * self.first, 0.0).sum()
        return float(max(forth, back))

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon at ``delta`` for this pair, or infinity."""
        probability(delta, name="delta")
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2.0 * high
            if high > 700.0:
                return math.inf
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def subsampled(self, rate: float) -> Self:
        """Return the pair where the first neighbour's record takes part with chance ``rate``."""
        probability(rate, name="rate")
        mixed = rate * self.first + (1.0 - rate) * self.second
        return type(self)(mixed, self.second, rate * self.slack)

    def composed(self, times: int) -> Self:
        """Return the pair after ``times`` independent runs.

        Exact pieces are merged by their loss, rounded to a grid of 1e-4. So delta at epsilon lies
        between those at epsilon + times * 1e-4 and epsilon - times * 1e-4 of the result.
        """
        count(times, name="times")
        if times == 1:
            return self
        both = (self.first > 0) & (self.second > 0)
        only = float(self.first[~both].sum()), float(self.second[~both].sum())
        losses = np.rint(np.log(self.first[both] / self.second[both]) / _GRID).astype(np.int64)
        least = int(losses.min())
        places = losses - least
        pieces = [
            np.bincount(places, weights=chances[both]) for chances in (self.first, self.second)
        ]
        if len(pieces[0]) * times > _MOST_ATOMS:
            raise InvalidInput(f"times={times}: expected losses that span less")
        powers = [_power(np.asarray(piece, dtype=np.float64), times) for piece in pieces]
        lost = [1.0 - (1.0 - one) ** times for one in only]
        scale = [
            (1.0 - one) / max(part.sum(), 1e-300) for one, part in zip(lost, powers, strict=True)
        ]
        first = np.concatenate([powers[0] * scale[0], [lost[0], 0.0]])
        second = np.concatenate([powers[1] * scale[1], [0.0, lost[1]]])
        return type(self)(first, second, self.slack * times + _FFT_ERROR)


def finite_law(first: npt.ArrayLike, second: npt.ArrayLike) -> LossLaw:
    """Return the exact law of two rows of a table of chances.

    Example:
        >>> law = finite_law([0.75, 0.25], [0.25, 0.75])
        >>> round(law.epsilon(0.0), 6), law.delta(1.2) == 0.0
        (1.098612, True)
    """
    return LossLaw(np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64))


def response_law(*, epsilon: float, labels: int) -> LossLaw:
    """Return the exact law of randomised response over ``labels`` labels for two of them."""
    positive(epsilon, name="epsilon")
    size = count(labels, name="labels", minimum=2)
    rows = np.full((2, size), 1.0 / (math.exp(epsilon) + size - 1))
    rows[0, 0] = rows[1, 1] = math.exp(epsilon) / (math.exp(epsilon) + size - 1)
    return LossLaw(rows[0], rows[1])


def exponential_law(first: npt.ArrayLike, second: npt.ArrayLike, *, factor: float) -> LossLaw:
    """Return the exact law of the exponential mechanism for two rows of scores.

    Its chances are proportional to exp(factor * score).

    References:
        McSherry and Talwar (2007), "Mechanism design via differential privacy",
        doi:10.1109/FOCS.2007.66, definition 2.
    """
    rows = [factor * np.asarray(scores, dtype=np.float64) for scores in (first, second)]
    chances = [np.exp(row - row.max()) for row in rows]
    return LossLaw(*(row / row.sum() for row in chances))


def laplace_law(*, shift: float, scale: float) -> LossLaw:
    """Return the law of Laplace noise for answers ``shift`` apart.

    The ends are exact, and the middle is in 65,536 pieces.

    Example:
        >>> law = laplace_law(shift=1.0, scale=0.5)
        >>> round(law.epsilon(0.0), 3), round(law.delta(1.0), 4) == round(1 - math.exp(-0.5), 4)
        (2.0, True)
    """
    ratio = positive(shift, name="shift") / positive(scale, name="scale")
    cuts = np.concatenate([[-np.inf], np.linspace(0.0, ratio, _CELLS + 1), [np.inf]])
    return _between(cuts, ratio, _laplace_below, ratio / _CELLS)


def gaussian_law(*, mu: float) -> LossLaw:
    """Return the law of Gaussian noise, ``mu`` the shift over sigma, in 65,536 pieces.

    References:
        Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
        analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
    """
    positive(mu, name="mu")
    inner = np.linspace(-_GAUSSIAN_ENDS, mu + _GAUSSIAN_ENDS, _CELLS + 1)
    cuts = np.concatenate([[-np.inf], inner, [np.inf]])
    return _between(cuts, mu, ndtr, mu * (inner[1] - inner[0]))


def staircase_law(*, epsilon: float, gamma: float) -> LossLaw:
    """Return the law of the staircase mechanism for answers one sensitivity apart.

    It is exact but for a tail of 1e-16.

    Args:
        epsilon: the claim, above 0.
        gamma: the share of a step with the higher density, in (0, 1).

    References:
        Geng and Viswanath (2014), "The optimal mechanism in differential privacy",
        arXiv:1212.1186, definition 1.
    """
    fall = math.exp(-positive(epsilon, name="epsilon"))
    probability(gamma, name="gamma", allow_zero=False)
    steps = math.ceil(37.0 / epsilon) + 2
    high = (1.0 - fall) / (2.0 * (gamma + fall * (1.0 - gamma)))
    cuts = np.unique(
        np.concatenate(
            [
                shift + sign * (step + np.arange(steps))
                for shift in (0.0, 1.0)
                for sign in (1.0, -1.0)
                for step in (0.0, gamma)
            ]
        )
    )
    middles, widths = (cuts[1:] + cuts[:-1]) / 2, np.diff(cuts)

    def chances(center: float) -> Array:
        away = np.abs(middles - center)
        whole = np.floor(away)
        density = high * fall ** (whole + (away - whole >= gamma))
        found = density * widths
        return np.asarray(found / found.sum())

    return LossLaw(chances(0.0), chances(1.0), 1e-15)


def _between(cuts: Array, shift: float, below: Callable[[Array], Array], step: float) -> LossLaw:
    """Return a law by cuts, and the chance of noise below a number.

    Within a piece the loss moves by ``step``.
    """
    pieces = [_masses(cuts - center, below) for center in (0.0, shift)]
    first, second = (piece / piece.sum() for piece in pieces)
    return LossLaw(first, second, slack=math.expm1(step))


def _masses(cuts: Array, below: Callable[[Array], Array]) -> Array:
    """Return chances between cuts of symmetric noise.

    Above 0 they are those of the mirrored piece, since a difference of numbers close to 1 would
    lose what e^epsilon then magnifies.
    """
    ends, mirrored = below(cuts), below(-cuts)
    found = np.where(cuts[:-1] > 0, mirrored[:-1] - mirrored[1:], ends[1:] - ends[:-1])
    return np.asarray(np.maximum(found, 0.0))


def _laplace_below(x: Array) -> Array:
    tail = 0.5 * np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, tail, 1.0 - tail))


def _power(piece: Array, times: int) -> Array:
    from scipy.signal import fftconvolve  # loads scipy.stats

    found, base = np.ones(1), piece
    while times:
        if times % 2:
            found = np.maximum(fftconvolve(found, base), 0.0)
        times //= 2
        if times:
            base = np.maximum(fftconvolve(base, base), 0.0)
    return np.asarray(found)
