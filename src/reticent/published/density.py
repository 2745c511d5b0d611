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
from reticent.core.errors import InvalidInput

Floating = npt.NDArray[np.floating]

_NEGLIGIBLE = -50.0
_BLOCK = 2**23  # kernel values at a time: 64 MiB of float64


def bandwidth(rows: npt.ArrayLike) -> float:
    """Return Scott's bandwidth s n^(-1/(d + 4)), one number for all coordinates, in their units,
    with s the root mean variance of a coordinate.

    Args:
        rows: shape (n, d), at least two different rows.

    Raises:
        InvalidInput: all rows are equal.

    Reference: Scott, Multivariate Density Estimation, section 6.3.
    """
    points = finite_array(rows, name="rows", ndim=2)
    spread = float(np.sqrt(points.var(axis=0).mean()))
    if spread == 0:
        raise InvalidInput("rows: all are equal, so no bandwidth follows from them; give one")
    return spread * float((1.0 / len(points)) ** (1.0 / (points.shape[1] + 4)))


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
        """Return the log density, shape (n,), and its gradient, shape (n, d), at ``rows`` of shape
        (n, d).

        Raises:
            InvalidInput: shapes are wrong.
        """
        points = finite_array(rows, name="rows", ndim=2, columns=self.dimension)
        # Differences are what counts: keep the numbers small.
        middle = self.centers.mean(axis=0, dtype=np.float64)
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

    def score(self, rows: npt.ArrayLike) -> Array:
        """Return the gradient of ``evaluate`` alone, shape (n, d)."""
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
