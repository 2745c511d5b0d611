"""A fixed number of sums over records, each plus discrete Gaussian noise, at one total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.accounting.events import Cost, ZeroConcentratedCost
from reticent.core.arrays import Integers
from reticent.core.checks import count, positive, probability
from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Replace
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

_TAIL = 36.0
"""Draws beyond this many sigma count as failures, of probability at most 2 exp(-648) each."""

_ROUND_UP = 1.0 + 2.0**-40
_LARGEST_SUM = 2**61
_LEAST_STEPS = 2.0**12
"""Least grid steps in a sigma. A coarser grid would cost more than a thousandth of epsilon for a
single number.
"""


@dataclass(frozen=True)
class SumBlock:
    """Some coordinates of a sum that share one noise scale.

    Attributes:
        width: number of coordinates, at least 1.
        bound: bound on the l2 norm of one record's contribution to them, in grid steps, above 0. It
            must hold for the whole numbers that are added, after every rounding.
        share: share of the squared precision of all blocks, in (0, 1]. The shares of a mechanism
            add up to 1.
    """

    width: int
    bound: float
    share: float = 1.0

    def __post_init__(self) -> None:
        count(self.width, name="width")
        positive(self.bound, name="bound")
        if positive(self.share, name="share") > 1:
            raise InvalidParameter(f"share={self.share!r}: expected a number in (0, 1]")


@dataclass(frozen=True, kw_only=True)
class NoisySums(Mechanism):
    """Sums of whole numbers over records, each coordinate plus discrete Gaussian noise.

    **Guarantee.** At most ``sums`` released sums together are (epsilon, delta)-private under
    ``adjacency`` if each record adds to any sum a vector of whole numbers with two properties. The
    vector depends on that record, on public things and on earlier released sums alone. Its part in
    block b has an l2 norm of at most ``blocks[b].bound``. Where a person is protected, "record"
    means all records of one person. All sums together also cost ``event``, in zCDP.

    *Why.* One record more or less moves block b of a sum by at most its bound C_b. One record in
    place of another moves it by at most 2 C_b. With continuous noise of deviation sigma_b, T
    adaptively chosen sums are one Gaussian mechanism of squared distance T sum_b (C_b / sigma_b)^2
    (Dong, Roth and Su 2022, Corollary 3.3), whose exact delta is known (Balle and Wang 2018,
    Theorem 8). Rounding that noise to whole numbers is post-processing, because the sums are whole
    numbers already. In each coordinate the discrete Gaussian and the rounded one have probabilities
    within a factor exp(+-eta) of each other, eta = 1300 / (8 sigma_b^2), up to 36 sigma. Beyond
    lies a mass of at most 2 exp(-648). Over all coordinates of all sums the factors multiply,
    whatever later sums depend on. Twice the sum of their exponents is taken off epsilon, and the
    tails off delta.

    *Floating point.* Sums and noise are integers. Sigma is enlarged by 1e-7 of itself.

    Attributes:
        blocks: blocks of one sum.
        sums: T, the number of sums that will ever be released.
        epsilon, delta: total of all sums together.
        adjacency: ``AddRemove`` or ``Replace``.

    Example:
        >>> mechanism = NoisySums(
        ...     blocks=(SumBlock(3, 2.0**20),),
        ...     sums=1,
        ...     epsilon=1.0,
        ...     delta=1e-5,
        ...     adjacency=AddRemove(1),
        ... )
        >>> round(mechanism.multipliers[0], 3)
        3.731

    Utility:
        Every coordinate errs with standard deviation ``multipliers[b]`` times the bound of its
        block, whatever the number of coordinates. For one block and delta = 1e-5 under
        ``AddRemove(1)`` that is 3.73 bounds at epsilon = 1 and 1.08 at 4, and sqrt(sums) times as
        much for several sums.

    Runtime:
        O(m) a sum of m coordinates, 0.16 microseconds a coordinate on one core
        (benchmarks/runtimes.py). The noise is found once, in 0.2 milliseconds.

    References:
        - Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy:
          analytical calibration and optimal denoising", arXiv:1805.06530, theorem 8.
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, theorem 4 (zCDP of the discrete noise itself).

    See Also:
        reticent.mechanisms.GaussianMechanism: one answer about real vectors.
        reticent.mechanisms.SumSession: the release of the sums, and their count.
        reticent.accounting.IndividualGaussianBudget: sums without a limit to their number, where
            each record has a limit.
    """

    blocks: tuple[SumBlock, ...]
    sums: int
    epsilon: float
    delta: float
    adjacency: AddRemove | Replace

    name: ClassVar[str] = "noisy sums"

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(self.blocks))
        count(self.sums, name="sums")
        if not 1e-4 <= positive(self.epsilon, name="epsilon") <= 500:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected 1e-4 to 500")
        if probability(self.delta, name="delta", allow_zero=False) < 1e-50:
            raise InvalidParameter(f"delta={self.delta!r}: expected at least 1e-50")
        if not isinstance(self.adjacency, AddRemove | Replace):
            raise InvalidParameter(
                f"adjacency: expected AddRemove or Replace, got {type(self.adjacency).__name__}"
            )
        shares = math.fsum(block.share for block in self.blocks)
        if not abs(shares - 1) < 1e-9:
            raise InvalidParameter(f"blocks: expected shares that add up to 1, got {shares!r}")
        if min(self.sigmas) < _LEAST_STEPS or max(self.sigmas) > 2.0**50:
            raise InvalidParameter(
                "bound: expected a grid on which noise is 2**12 to 2**50 steps wide, got "
                f"{min(self.sigmas):.3g} to {max(self.sigmas):.3g}"
            )

    @property
    def distances(self) -> tuple[float, ...]:
        """Largest l2 distance of two neighbours' sums, in grid steps, block by block."""
        factor = self.adjacency.records * (2 if isinstance(self.adjacency, Replace) else 1)
        return tuple(factor * block.bound * _ROUND_UP for block in self.blocks)

    @cached_property
    def multipliers(self) -> tuple[float, ...]:
        """Noise of one sum over the distance of two neighbours, block by block."""
        rough = self._multipliers(self.epsilon, self.delta)
        # eta falls with the noise, which only grows from here, so the rough noise bounds eta.
        eta = math.fsum(
            self.sums * block.width * (_TAIL**2 + 4.0) / (8.0 * (multiplier * distance) ** 2)
            for block, multiplier, distance in zip(self.blocks, rough, self.distances, strict=True)
        )
        coordinates = self.sums * sum(block.width for block in self.blocks)
        epsilon = self.epsilon - 2.0 * eta
        tails = 2.0 * coordinates * math.exp(-0.5 * _TAIL**2) * (1.0 + math.exp(self.epsilon))
        delta = (self.delta - tails) * math.exp(-eta)
        if epsilon <= 0 or delta <= 0:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r}, delta={self.delta!r}: below the resolution of the grid"
            )
        return self._multipliers(epsilon, delta)

    def _multipliers(self, epsilon: float, delta: float) -> tuple[float, ...]:
        alone = analytic_sigma(sensitivity=1.0, epsilon=epsilon, delta=delta)
        return tuple(
            alone * math.sqrt(self.sums / block.share) * _ROUND_UP for block in self.blocks
        )

    @cached_property
    def sigmas(self) -> tuple[float, ...]:
        """Parameter of the noise of every coordinate, in grid steps, block by block."""
        return tuple(
            multiplier * distance
            for multiplier, distance in zip(self.multipliers, self.distances, strict=True)
        )

    @property
    @override
    def cost(self) -> Cost:
        """Cost of all sums as one charge, in zCDP, which holds for the discrete noise itself."""
        rho = 0.5 * math.fsum(self.sums / multiplier**2 for multiplier in self.multipliers)
        return ZeroConcentratedCost(rho * _ROUND_UP)

    def noisy(
        self,
        totals: Sequence[npt.ArrayLike],
        *,
        sampler: Sampler,
        noise_scale: float = 1.0,
    ) -> tuple[Integers, ...]:
        """Return one sum with fresh noise. ``SumSession`` counts the sums.

        Args:
            totals: for each block whole numbers, ``width`` of them in any shape.
            sampler: source of randomness.
            noise_scale: factor of the noise. It may differ from 1 only with a seeded sampler, for
                experiments.

        Returns:
            For each block int64 of the same shape.

        Raises:
            InvalidInput: other shapes or types, numbers beyond 2^61, or another noise scale in a
                release. Values are never shown.
        """
        if len(totals) != len(self.blocks):
            raise InvalidInput(f"totals: expected {len(self.blocks)} blocks, got {len(totals)}")
        return tuple(
            self._drawn(_whole(total, block.width), sigma, sampler, noise_scale)
            for total, block, sigma in zip(totals, self.blocks, self.sigmas, strict=True)
        )

    def noisy_rows(
        self,
        totals: npt.ArrayLike,
        *,
        sampler: Sampler,
        block: int = 0,
        noise_scale: float = 1.0,
    ) -> Integers:
        """Return one block of several sums, each with noise of its own.

        Args:
            totals: the block of n sums, shape (n, width), whole numbers.
            block: number of the block.
            sampler, noise_scale: arguments of ``noisy``.

        Returns:
            int64 of the same shape.

        Raises:
            InvalidInput: input that ``noisy`` refuses.
        """
        array, width = np.asarray(totals), self.blocks[block].width
        if array.ndim != 2 or array.shape[1] != width:
            raise InvalidInput(f"totals: expected {width} columns, got shape={array.shape}")
        whole = _whole(array, array.size)
        return self._drawn(whole, self.sigmas[block], sampler, noise_scale)

    def _drawn(
        self, totals: Integers, sigma: float, sampler: Sampler, noise_scale: float
    ) -> Integers:
        if positive(noise_scale, name="noise_scale") != 1 and not sampler.seeded:
            raise InvalidInput(
                f"noise_scale={noise_scale!r}: expected 1 in a release; other noise is for "
                "experiments, with a seed"
            )
        return totals + sampler.discrete_gaussian(totals.shape, sigma=sigma * noise_scale)


class SumSession:
    """A session that releases at most as many sums as its mechanism has.

    **Guarantee.** The guarantee of ``mechanism``, over all threads.

    Args:
        mechanism: the sums that are released.
        sampler: source of randomness.
        noise_scale: factor of the noise, as in ``NoisySums.noisy``.

    Utility:
        That of ``mechanism``.

    Runtime:
        That of ``mechanism``, and a lock for each sum.

    References:
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).
        - The reason why later sums may depend on earlier ones: docs/votes.md, section 3.

    See Also:
        reticent.mechanisms.NoisySums: the mechanism, and its noise.
    """

    def __init__(self, mechanism: NoisySums, *, sampler: Sampler, noise_scale: float = 1.0) -> None:
        self.mechanism, self.sampler, self.noise_scale = mechanism, sampler, noise_scale
        self.released = 0
        self._turn = Lock()

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Standard deviation of the noise that is drawn, ``noise_scale`` included, by block."""
        return tuple(self.noise_scale * sigma for sigma in self.mechanism.sigmas)

    def release(self, totals: Sequence[npt.ArrayLike]) -> tuple[Integers, ...]:
        """Return one noisy sum, as ``NoisySums.noisy``.

        Raises:
            BudgetExceeded: all sums were released. Nothing is drawn.
        """
        with self._turn:
            if self.released >= self.mechanism.sums:
                raise BudgetExceeded(
                    f"sums: all {self.mechanism.sums} of this mechanism were released"
                )
            self.released += 1
        return self.mechanism.noisy(totals, sampler=self.sampler, noise_scale=self.noise_scale)


def _whole(total: npt.ArrayLike, width: int) -> Integers:
    array = np.asarray(total)
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and bool((array == np.rint(array)).all())
    )
    if not whole or array.size != width:
        raise InvalidInput(
            f"totals: expected {width} whole numbers, got dtype={array.dtype} shape={array.shape}"
        )
    if bool((np.abs(array) > _LARGEST_SUM).any()):
        raise InvalidInput(f"totals: expected whole numbers of at most {_LARGEST_SUM}")
    return array.astype(np.int64)
