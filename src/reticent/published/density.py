"""Kernel density estimates of rows: log density and score, in blocks that fit in memory.

The paper prints its Gaussian kernel as exp(-||u||^2) / (2 pi)^(d/2), which does not integrate to
1. This is K(u) = exp(-||u||^2 / 2) / (2 pi)^(d/2), whose squared integral is the paper's own
mu_K = 1 / (2^d pi^(d/2)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import finite_array, positive
from reticent.core.errors import InvalidInput, UnknownName

Floating = npt.NDArray[np.floating]

BANDWIDTH_RULES = ("scott", "silverman")

_NEGLIGIBLE = -50.0
_BLOCK = 2**23  # kernel values at a time: 64 MiB of float64


def bandwidth(rows: npt.ArrayLike, *, rule: str) -> float:
    """Return a bandwidth for ``rows``, one number for all coordinates, in their units.

    "scott" is s n^(-1/(d + 4)), "silverman" s (4 / (n (d + 2)))^(1/(d + 4)), with s the root mean
    variance of a coordinate.

    Args:
        rows: shape (n, d), at least two different rows.
        rule: one of ``BANDWIDTH_RULES``.

    Raises:
        UnknownName: there is no such rule.
        InvalidInput: all rows are equal.

    Reference: Scott, Multivariate Density Estimation, section 6.3; Silverman, section 4.3.2.
    """
    if rule not in BANDWIDTH_RULES:
        raise UnknownName(f"rule={rule!r}: expected one of {', '.join(BANDWIDTH_RULES)}")
    points = finite_array(rows, name="rows", ndim=2)
    count, dimension = points.shape
    spread = float(np.sqrt(points.var(axis=0).mean()))
    if spread == 0:
        raise InvalidInput("rows: all are equal, so no bandwidth follows from them; give one")
    factor = 1.0 if rule == "scott" else 4.0 / (dimension + 2)
    return spread * float((factor / count) ** (1.0 / (dimension + 4)))


@dataclass(frozen=True, eq=False)
class KernelDensity:
    """A Gaussian kernel density estimate with one bandwidth.

    Attributes:
        centers: shape (n, d), float64 or float32. The type is that of the arithmetic, and float32
            is twice as fast.
        bandwidth: h, above 0.

    Example:
        >>> density = KernelDensity(np.array([[0.0, 0.0]]), 0.5)
        >>> density.score([[1.0, 0.0]]).tolist()
        [[-4.0, 0.0]]

    Edge cases: far from all centers the score points to the nearest one and grows linearly.
    Densities are logarithms and do not underflow. Constant columns contribute nothing to the score
    at rows that share the constant.
    """

    centers: Floating
    bandwidth: float

    def __post_init__(self) -> None:
        positive(self.bandwidth, name="bandwidth")
        given = np.asarray(self.centers)
        kept = given.dtype if given.dtype == np.float32 else np.float64
        object.__setattr__(
            self, "centers", finite_array(given, name="centers", ndim=2).astype(kept)
        )

    @property
    def dimension(self) -> int:
        """The number of coordinates d."""
        return int(self.centers.shape[1])

    def evaluate(self, rows: npt.ArrayLike) -> tuple[Array, Array]:
        """Return the log density, shape (n,), and its gradient, shape (n, d), at ``rows``.

        Args:
            rows: shape (n, d).

        Raises:
            InvalidInput: shapes are wrong.
        """
        points = finite_array(rows, name="rows", ndim=2, columns=self.dimension)
        middle = self.centers.mean(
            axis=0, dtype=np.float64
        )  # differences are what counts: keep the numbers small
        kind = self.centers.dtype
        centers = ((self.centers - middle) / self.bandwidth).astype(kind)
        halves = 0.5 * np.square(centers).sum(axis=1)
        log_density, score = np.empty(len(points)), np.empty(points.shape)
        at_once = max(1, _BLOCK // len(centers))
        for start in range(0, len(points), at_once):
            block = ((points[start : start + at_once] - middle) / self.bandwidth).astype(kind)
            exponents = block @ centers.T
            exponents -= halves
            peak = exponents.max(axis=1, keepdims=True)
            exponents -= peak
            # Kernels below e^-50 of the largest do not change a double. As denormal numbers they
            # would cost most of the time.
            np.maximum(exponents, _NEGLIGIBLE, out=exponents)
            np.exp(exponents, out=exponents)
            total = exponents.sum(axis=1, dtype=np.float64)
            mean = (exponents @ centers) / total[:, None]
            stop = start + len(block)
            log_density[start:stop] = (
                np.log(total) + peak[:, 0] - 0.5 * np.square(block, dtype=np.float64).sum(axis=1)
            )
            score[start:stop] = (mean - block) / self.bandwidth
        norm = (
            0.5 * self.dimension * math.log(2.0 * math.pi)
            + self.dimension * math.log(self.bandwidth)
            + math.log(len(centers))
        )
        return log_density - norm, score

    def log_density(self, rows: npt.ArrayLike) -> Array:
        """Return the logarithm of the estimate at ``rows`` (shape (n, d)), shape (n,)."""
        return self.evaluate(rows)[0]

    def score(self, rows: npt.ArrayLike) -> Array:
        """Return the gradient of the logarithm of the estimate at ``rows`` (shape (n, d)), shape
        (n, d).
        """
        return self.evaluate(rows)[1]

    @property
    def log_variance_constant(self) -> float:
        """The logarithm of mu_K / (n h^d), which times the density is the variance of the
        estimate.
        """
        count, dimension = self.centers.shape
        squared = -dimension * math.log(2.0) - 0.5 * dimension * math.log(math.pi)
        constant: float = squared - math.log(count) - dimension * math.log(self.bandwidth)
        return constant


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
