"""A sequential test of noise whose law is stated: its scale, and the sums that it leaves behind.

A claim "Gaussian noise of sigma 3" says more than an epsilon, and tens of draws can refute it. The
test needs no neighbours and no exact answer: repeated answers to one data set differ by noise.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import one_of, positive, probability
from reticent.core.errors import InvalidInput

_SHARES = (0.9, 0.75, 0.6, 0.5, 0.35, 0.2, 0.1)
"""Alternatives: the scale is this share of what is stated."""

_NEAR, _MOST_TRIED = 4, 256
"""Grid points on either side that are tried, besides what the sum rounds by: the logarithm and the
product round by less. And the most.
"""

_LEAST = 2.0**-30
"""Residuals below this share of the scale are set to it, so that none wins everything."""


class ScaleTest:
    """A test that repeated answers to one data set have at least the noise that is stated.

    Guarantee:
        If each answer is a fixed number plus fresh noise of the stated law, with the stated scale
        or a larger one, ``refuted`` ever becomes true with probability at most ``alpha``.

    *Why.* Gaussian: the k-th answer less the mean of those before it, times sqrt((k - 1) / k), is
    normal with the noise's sigma, and independent of the earlier ones. Laplace: the difference of
    two answers has density (1 + |x| / b) exp(-|x| / b) / (4 b). For a smaller scale a the ratio of
    densities falls in |x|, so under any scale of at least b its mean is at most 1, and the product
    of ratios is a supermartingale. So is their average over alternatives.

    Args:
        law: "gaussian" or "laplace".
        scale: the stated standard deviation, or the stated scale of Laplace noise, above 0.
        alpha: the chance of refuting a statement that holds, in (0, 1).

    Example:
        >>> test = ScaleTest("gaussian", scale=2.0, alpha=0.01)
        >>> test.update(np.random.default_rng(0).normal(size=200))
        True
        >>> test.refuted_after < 50
        True

    References:
        Ramdas, Grünwald, Vovk and Shafer (2023), "Game-theoretic statistics and safe anytime-valid
        inference", arXiv:2210.01948, mixtures of likelihood ratios.

    See Also:
        reticent.audit.SequentialTest: the test of an epsilon, by two neighbours.
    """

    def __init__(self, law: str, *, scale: float, alpha: float) -> None:
        self.law = one_of(law, ("gaussian", "laplace"), name="law")
        self.scale = positive(scale, name="scale")
        self.alpha = probability(alpha, name="alpha", allow_zero=False)
        self._logs = np.zeros(len(_SHARES))
        self._mean = 0.0
        self._kept: float | None = None
        self.draws = 0
        self.refuted_after: int | None = None

    @property
    def refuted(self) -> bool:
        """Whether the wealth has ever reached 1 / alpha."""
        return self.refuted_after is not None

    def update(self, answers: npt.ArrayLike) -> bool:
        """Test further answers to the same data set, shape (n,), and return ``refuted``.

        Raises:
            InvalidInput: another shape, or numbers that are not finite.
        """
        values = np.asarray(answers, dtype=np.float64)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInput(f"answers: expected finite numbers, shape (n,), got {values.shape}")
        for value in values.tolist():
            self._one(value)
        return self.refuted

    def _one(self, value: float) -> None:
        self.draws += 1
        residual = None
        if self.law == "gaussian":
            if self.draws > 1:
                residual = (value - self._mean) * math.sqrt((self.draws - 1) / self.draws)
            self._mean += (value - self._mean) / self.draws
        elif self._kept is None:
            self._kept = value
        else:
            residual, self._kept = value - self._kept, None
        if residual is None:
            return
        size = max(abs(residual) / self.scale, _LEAST)
        self._logs += self._ratio(size)
        wealth = float(np.logaddexp.reduce(self._logs)) - math.log(len(_SHARES))
        if self.refuted_after is None and wealth >= -math.log(self.alpha):
            self.refuted_after = self.draws

    def _ratio(self, size: float) -> Array:
        """Return the log density at each smaller scale less that at the stated one."""
        shares = np.array(_SHARES)
        if self.law == "gaussian":
            return np.asarray(-np.log(shares) - 0.5 * size**2 * (1.0 / shares**2 - 1.0))
        return np.asarray(
            np.log1p(size / shares)
            - math.log1p(size)
            - np.log(shares)
            - size * (1.0 / shares - 1.0)
        )


def reachable_laplace(
    answers: npt.ArrayLike, *, exact: float, scale: float
) -> npt.NDArray[np.bool_]:
    """Return which doubles a textbook sampler can give.

    It gives ``exact`` plus Laplace noise that is a logarithm of a uniform number on a grid of
    2^-53. The sampler is numpy's: u on the grid, and scale * log(2 u) below a half, else -scale *
    log(2 - 2 u). An answer that one neighbour can give, and the other can never, shows infinite
    epsilon, whatever the scale.

    Args:
        answers: shape (n,), finite.
        exact: the answer without noise.
        scale: scale of the noise, above 0.

    Example:
        >>> random = np.random.default_rng(0)
        >>> drawn = 1.0 + random.laplace(scale=2.0, size=100)
        >>> bool(reachable_laplace(drawn, exact=1.0, scale=2.0).all())
        True
        >>> bool(reachable_laplace(drawn, exact=0.0, scale=2.0).all())
        False

    References:
        Mironov (2012), "On significance of the least significant bits for differential privacy",
        doi:10.1145/2382196.2382264, section 4.
    """
    values = np.asarray(answers, dtype=np.float64)
    noise = (values - exact) / positive(scale, name="scale")
    # numpy computes (2 - u) - u, whose first difference is rounded, so the grid is that of u.
    guess = np.rint(np.ldexp(np.exp(-np.abs(noise)), 53))
    found = np.zeros(len(values), dtype=bool)
    rounding = float(np.spacing(np.abs(values).max(initial=0.0) + abs(exact))) / scale
    near = _NEAR + math.ceil(math.ldexp(rounding, 53))
    if near > _MOST_TRIED:
        return np.ones(len(values), dtype=bool)  # too coarse to say anything
    for step in range(-near, near + 1):
        inside = np.ldexp(np.clip(guess + step, 1.0, 2.0**53), -53)
        # The library's own logarithm: numpy's differs from it in the last bit on some processors.
        logs = np.array([math.log(u) for u in inside.tolist()])
        for sign in (1.0, -1.0):
            found |= exact + sign * scale * logs == values
    return found
