"""Propose-Test-Release with the papers' test, which adds Laplace noise to the stability radius and
compares it with a threshold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans
from reticent.core.checks import finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Guarantee
from reticent.mechanisms.additive import AdditiveMechanism
from reticent.mechanisms.mechanism import Mechanism
from reticent.mechanisms.propose_test_release import covers, total_guarantee
from reticent.noise import Grid, Sampler


@dataclass(frozen=True, kw_only=True)
class LaplaceTestRelease(Mechanism):
    """A noisy vector, or "withheld", by a Laplace test of the stability radius.

    The test passes if s + Laplace(R / epsilon_test) > (R / epsilon_test) ln(1 / (2 delta_test)),
    with s = max(0, psi - R).

    **Guarantee.** One answer, withheld or not, is (epsilon_test + inner.epsilon,
    delta_test + inner.delta)-private under ``inner.adjacency``, *if* psi changes by at most
    ``radius + tolerance`` between neighbours and never exceeds the true radius within which the
    Lipschitz bound ``proposal`` holds.

    *Why.* The proof is that of ``ProposeTestRelease``. Where the outputs of two neighbours differ
    by more than P R, psi < R and s = 0 at both, and the noise alone passes the threshold with
    probability at most delta_test. Elsewhere the noisy s is (epsilon_test, 0)-private, the noisy
    vector is the inner mechanism's, and the two compose.

    *Floating point.* s is rounded to a public grid (one step is added to its sensitivity), the
    noise is an exact integer distribution, and the threshold is the least integer whose exact tail
    is at most delta_test.

    *Against the optimal test.* This test withholds more. At level 5, epsilon_test 1, delta_test
    0.05 it passes 0.97 of the time, the optimal one always. It is here for comparison with the
    papers.

    **Differs from the paper.** R is subtracted from psi (the paper halves psi, which is not
    1-Lipschitz where it drops to 0), the threshold spends all of delta, and the noise of the
    released vector covers P R, not P.

    Attributes:
        radius: R, largest distance of two neighbours, above 0.
        tolerance: largest change of the *computed* psi beyond the distance, at least 0.
        proposal: P, the proposed Lipschitz constant, public.
        epsilon_test: epsilon of the passing bit, above 0.
        delta_test: in (0, 1/2).
        inner: the additive mechanism, whose sensitivity is at least ``proposal * radius``.

    Utility:
        Half of the answers pass where s = (R / epsilon_test) ln(1 / (2 delta_test)), and none is
        certain to. For epsilon_test = 1 and delta_test = 0.05 that is 2.3 radii beyond R. An answer
        that passes errs as the inner mechanism.

    Runtime:
        The inner mechanism's and one test, 1.1 microseconds a row of 8 with K-norm noise on one
        core (benchmarks/runtimes.py). The caller finds psi, which costs far more.

    References:
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466 (introduces propose-test-release).
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), algorithm 1 (the test on a stability radius).
        - Vadhan (2017), "The complexity of differential privacy", doi:10.1007/978-3-319-57048-8_7,
          section 3.2.

    See Also:
        reticent.mechanisms.ProposeTestRelease: the optimal test, which withholds less at the same
            cost.
        reticent.published.PublishedPosthoc: the algorithm as printed.
        reticent.lipschitz.stability_radius: computes psi.
    """

    radius: float
    tolerance: float
    proposal: float
    epsilon_test: float
    delta_test: float
    inner: AdditiveMechanism

    name: ClassVar[str] = "propose-test-release, Laplace test"

    def __post_init__(self) -> None:
        covers(self.inner, radius=self.radius, proposal=self.proposal)
        positive(self.epsilon_test, name="epsilon_test")
        if not (np.isfinite(self.tolerance) and self.tolerance >= 0):
            raise InvalidParameter(
                f"tolerance={self.tolerance!r}: expected a finite number of at least 0"
            )
        if probability(self.delta_test, name="delta_test", allow_zero=False) >= 0.5:
            raise InvalidParameter(f"delta_test={self.delta_test!r}: expected a number in (0, 1/2)")

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one answer, withheld or not."""
        return total_guarantee(
            self.inner, epsilon_test=self.epsilon_test, delta_test=self.delta_test
        )

    @cached_property
    def _grid(self) -> Grid:
        return Grid.finer_than((self.radius + self.tolerance) / max(1.0, self.epsilon_test))

    @cached_property
    def _steps_scale(self) -> float:
        steps = (self.radius + self.tolerance) / self._grid.step + 1.0
        return steps / self.epsilon_test * (1.0 + 2.0**-40)

    @cached_property
    def _steps_threshold(self) -> int:
        """Least T with P(noise > T) = q^(T + 1) / (1 + q) at most delta_test, for q =
        exp(-1/scale), rounded up.
        """
        ratio = -math.log(self.delta_test) - math.log1p(math.exp(-1.0 / self._steps_scale))
        return max(0, math.ceil(ratio * self._steps_scale * (1.0 + 2.0**-40) + 2.0**-20) - 1)

    @property
    def threshold(self) -> float:
        """Threshold that the noisy max(0, psi - R) must exceed, in units of the radius' metric."""
        return self._steps_threshold * self._grid.step

    def release(
        self, values: npt.ArrayLike, radii: npt.ArrayLike, *, sampler: Sampler
    ) -> tuple[Array, Booleans]:
        """Return noisy values where the test passes. Each row is a separate answer.

        Args:
            values: shape (n, m), finite, never released as they are.
            radii: shape (n,), the stability radii psi, at least 0, finite (capped by the caller).
            sampler: source of randomness.

        Returns:
            The values, shape (n, m), with NaN in withheld rows, and whether each row was withheld,
            shape (n,).

        Raises:
            InvalidInput: wrong shapes, or numbers that are not finite. Values are never shown.
        """
        array = finite_array(
            values, name="values", ndim=2, columns=self.inner.dimension, allow_empty=True
        )
        psi = finite_array(radii, name="radii", ndim=1, allow_empty=True)
        if len(psi) != len(array):
            raise InvalidInput(f"radii: expected one per row, got {len(psi)} for {len(array)} rows")
        # Rounded first and subtracted as integers, because a difference of doubles could move by
        # more than half a step.
        set_aside = math.ceil(math.ldexp(self.radius, -self._grid.exponent))
        slack = np.maximum(self._grid.round(psi) - set_aside, 0)
        noisy = slack + sampler.discrete_laplace(len(psi), scale=self._steps_scale)
        withheld = noisy <= self._steps_threshold
        released = self.inner.release(array, sampler=sampler)
        return np.where(withheld[:, None], np.nan, released), withheld
