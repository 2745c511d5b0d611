"""Propose-Test-Release with the best possible test.

A network's local Lipschitz constant sets the noise that one point needs, but is itself private. So
a bound P is *proposed* in public, a noisy *test* decides whether the point is far enough from any
place where P fails, and only then is the output *released*, with noise for P.

**The test sees a level**: the number of times that the neighbourhood radius R fits between the
point and the border of the region where P holds. Two facts about levels carry the whole proof:

1. Neighbours' levels differ by at most 1 (the region's border does not move, the point moves by at
   most R).
2. If two neighbours' outputs differ by more than P R, both have level 0, since the segment between
   them lies in both balls of radius R, so P fails within R of both.

**The claim.** With a test that passes level l with probability p_l and a mechanism that is
(epsilon_2, delta_2)-private for sensitivity P R, the release is (epsilon_1 + epsilon_2, delta_1 +
delta_2)-private.

**The proof.** Let x, x' be neighbours. *Their outputs differ by more than P R.* Then both have
level 0 and answer "withheld" but for a probability p_0 = delta_1, so their distributions are within
delta_1 of each other. *They differ by at most P R.* Then the passing bit is (epsilon_1,
delta_1)-private because levels l, l' differ by at most 1 and

    p_l <= e^epsilon_1 p_l' + delta_1,      1 - p_l <= e^epsilon_1 (1 - p_l') + delta_1,

the noisy output is (epsilon_2, delta_2)-private, and basic composition adds them up. Either case
happens to a given pair, never both, so delta_1 is paid once.

**The best test.** Take every p_{l+1} as large as those inequalities allow, from p_0 = delta_1:

    p_{l+1} = min( e^epsilon_1 p_l + delta_1,  1 - e^-epsilon_1 (1 - p_l - delta_1),  1 ).

Both bounds grow with p_l, so by induction no other test passes any level more often. It reaches 1
after finitely many levels, beyond which nothing has to be certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Booleans
from reticent.core.checks import as_array, finite_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Guarantee, Neighborhood
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

_MARGIN = 2.0**-44
"""Margin taken off epsilon and (relatively) off delta in the recursion, more than its double
arithmetic can add to them.
"""

_LEAST_NORMAL = 2.0**-1022
"""Below this, doubles lose digits and quotients are rounded up."""

_MOST_LEVELS = 100_000


class InnerMechanism(Protocol):
    """A mechanism to use once the test has passed, for vectors, or for labels on logits."""

    @property
    def sensitivity(self) -> float:
        """Largest distance of two neighbours' values, in the mechanism's own measure."""

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one release."""

    def release(self, values: Array, /, *, sampler: Sampler) -> npt.NDArray[Any]:
        """Return vectors (n, m) or labels (n,) for values (n, m), and check the input."""


@dataclass(frozen=True, kw_only=True)
class ProposeTestRelease(Mechanism):
    """A noisy vector or label, or "withheld", at a noise scale set by the proposed local Lipschitz
    bound.

    **Guarantee.** One answer, withheld or not, is (epsilon_test + inner.epsilon,
    delta_test + inner.delta)-private under the inner mechanism's adjacency, *if* the levels given
    to ``release`` have properties 1 and 2 above for neighbours within ``radius`` and the Lipschitz
    bound ``proposal``. An exact stability radius has them, and so has one computed from a bound
    that is monotone under inclusion. A merely valid upper bound has not.

    *Floating point.* Passing is decided by an exact coin on computed probabilities, whose rounding
    is charged inside ``epsilon_test`` and ``delta_test``. The inner mechanism states its own. Noise
    is drawn for every row, withheld or not.

    **Differs from the paper.** The noise covers P R (the paper's P has no R). The test is the
    optimal one. It sees whole levels of the stability radius, from which nothing is subtracted,
    where the paper halves the radius.

    Attributes:
        radius: R, largest distance of two neighbours, above 0.
        proposal: P, the proposed Lipschitz constant, in the inner mechanism's output measure over
            the adjacency's metric. Public.
        epsilon_test: epsilon of the passing bit, at least 1e-9.
        delta_test: delta of the passing bit, in (0, 1). At 0 no test would ever pass.
        inner: any additive or label mechanism whose sensitivity is at least ``proposal *
            radius``.

    Utility:
        At epsilon_test = 1 and delta_test = 0.05 an answer passes with probability 0.05, 0.19,
        0.56, 0.85, 0.96 and 1 at levels 0 to 5. At delta_test = 1e-5 it passes more often than not
        from level 11 on, and always from 22 on. An answer that passes errs as the inner mechanism,
        whose noise covers P R and not the global sensitivity.

    Runtime:
        The inner mechanism's and one coin, 1 microsecond a row of 8 with K-norm noise on one core
        (benchmarks/runtimes.py). The caller finds the levels (``reticent.lipschitz``).

    References:
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466 (introduces propose-test-release).
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS), on propose-test-release for networks by local Lipschitz constants.
        - Vadhan (2017), "The complexity of differential privacy", doi:10.1007/978-3-319-57048-8_7,
          section 3.2.
        - The optimal test: this module and docs/mechanisms.md.

    See Also:
        reticent.published.PublishedPosthoc: the algorithm as printed.
        reticent.lipschitz.LevelTest: the computation of levels.
    """

    radius: float
    proposal: float
    epsilon_test: float
    delta_test: float
    inner: InnerMechanism

    name: ClassVar[str] = "propose-test-release"

    def __post_init__(self) -> None:
        if not all(
            hasattr(self.inner, part)
            for part in ("sensitivity", "epsilon", "adjacency", "guarantee", "release")
        ):
            raise InvalidParameter(
                "inner: expected a mechanism for vectors or labels, got "
                f"{type(self.inner).__name__}"
            )
        covers(self.inner, radius=self.radius, proposal=self.proposal)
        if positive(self.epsilon_test, name="epsilon_test") < 1e-9:
            raise InvalidParameter(f"epsilon_test={self.epsilon_test!r}: expected at least 1e-9")
        probability(self.delta_test, name="delta_test", allow_zero=False)
        _ = self._test  # which refuses too many levels, before anything is charged

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of one answer, withheld or not."""
        cost, delta = self.inner.guarantee, self.delta_test
        return Guarantee(self.epsilon_test + cost.epsilon, delta + cost.delta, cost.adjacency)

    @cached_property
    def _test(self) -> tuple[Array, Array]:
        return optimal_test(epsilon=self.epsilon_test, delta=self.delta_test)

    @property
    def pass_probabilities(self) -> Array:
        """p_0 .. p_max_level, increasing, the last one 1."""
        return self._test[0]

    @property
    def max_level(self) -> int:
        """First level that always passes. Higher ones need not be told apart."""
        return len(self.pass_probabilities) - 1

    def release(
        self, values: npt.ArrayLike, levels: npt.ArrayLike, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], Booleans]:
        """Return noisy values (or labels) where the test passes. Each row is a separate answer.

        Args:
            values: shape (n, m), finite, never released as they are.
            levels: shape (n,), integers of at least 0. Those above ``max_level`` count as
                ``max_level``.
            sampler: source of randomness.

        Returns:
            The values, shape (n, m), with NaN in withheld rows, or labels, shape (n,), with -1
            there, and whether each row was withheld, shape (n,).

        Raises:
            InvalidInput: wrong shapes, values that are not finite, or levels that are not
                integers of at least 0.
        """
        array = finite_array(values, name="values", ndim=2, allow_empty=True)
        level = as_array(levels, name="levels")
        if level.shape != (len(array),) or level.dtype.kind not in "iu" or (level < 0).any():
            raise InvalidInput(
                f"levels: expected {len(array)} integers of at least 0, got shape={level.shape}"
            )
        level = np.minimum(level, self.max_level).astype(np.int64)
        passing, withholding = self._test
        # The coin shows the rarer side, which a double resolves best.
        rare = sampler.bernoulli(np.minimum(passing, withholding)[level])
        withheld = np.where(passing[level] <= withholding[level], ~rare, rare)
        released = self.inner.release(array, sampler=sampler)
        released[withheld] = -1 if released.ndim == 1 else np.nan
        return released, withheld


def optimal_test(*, epsilon: float, delta: float) -> tuple[Array, Array]:
    """Return the probabilities of passing and of withholding at each level, of the best (epsilon,
    delta) test.

    Args:
        epsilon: at least 1e-9.
        delta: in (0, 1).

    Returns:
        p and 1 - p, each of shape (max_level + 1,). The smaller of the two is right to a relative
        2^-50.

    Raises:
        InvalidParameter: the test would need more than 100,000 levels.

    Example:
        >>> passing, withholding = optimal_test(epsilon=1.0, delta=0.05)
        >>> passing.round(4).tolist()
        [0.05, 0.1859, 0.5554, 0.8548, 0.965, 1.0]

    Utility:
        No test whose bit is (epsilon, delta)-private for levels that differ by 1 passes any level
        more often. It reaches 1 at level 5, 8, 22 and 171 for (1, 0.05), (1, 0.01), (1, 1e-5) and
        (0.1, 1e-5).

    Runtime:
        O(ln(1 / delta) / epsilon) operations, once: 15 microseconds at (1, 1e-5), 0.7 ms at (0.01,
        1e-6) (benchmarks/runtimes.py).

    References:
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466 (the test with Laplace noise that this one replaces).
        - The recursion and its optimality: this module and docs/mechanisms.md.

    See Also:
        reticent.mechanisms.ProposeTestRelease: the test before noisy answers.
    """
    # A smaller epsilon or delta is always sound. 500 keeps exp in range, and the margin larger than
    # a rounding of epsilon.
    growth, floor = math.exp(min(epsilon - _MARGIN, 500.0)), delta * (1.0 - _MARGIN)
    passing, withholding = [floor], [1.0 - floor]
    while withholding[-1] > 0.0:
        if len(passing) > _MOST_LEVELS:
            raise InvalidParameter(
                f"epsilon={epsilon!r}, delta={delta!r}: the test needs over 100,000 levels; "
                "raise either"
            )
        climb = growth * passing[-1] + floor
        rest = max(0.0, (withholding[-1] - floor) / growth)
        if withholding[-1] > floor and rest < _LEAST_NORMAL:
            rest = math.nextafter(rest, 1.0)
        # Whichever inequality binds. The recursion runs on the side that is computed without
        # cancellation.
        passing.append(min(climb, 1.0 - rest))
        withholding.append(rest if climb >= 1.0 - rest else 1.0 - climb)
    return np.array(passing), np.array(withholding)


def covers(inner: InnerMechanism, *, radius: float, proposal: float) -> None:
    """Raise InvalidParameter unless ``inner`` hides a difference of ``proposal * radius`` from
    neighbours within ``radius``.

    Raises:
        InvalidParameter: its sensitivity is smaller, by more than the rounding of that product,
            or its adjacency wider.
    """
    needed = positive(proposal, name="proposal") * positive(radius, name="radius")
    if inner.sensitivity < needed * (1.0 - 2.0**-45):
        raise InvalidParameter(
            f"inner.sensitivity={inner.sensitivity!r}: expected at least proposal * radius = "
            f"{needed!r}; build the mechanism "
            "with it"
        )
    adjacency = inner.guarantee.adjacency
    if isinstance(adjacency, Neighborhood) and adjacency.radius > radius * (1.0 + 2.0**-45):
        raise InvalidParameter(
            f"inner.adjacency.radius={adjacency.radius!r}: expected at most radius={radius!r}, "
            "which levels are measured in"
        )
