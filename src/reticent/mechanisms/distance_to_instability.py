"""An exact answer without noise, released only where it is far from changing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Booleans
from reticent.core.checks import as_array, positive, probability
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency
from reticent.mechanisms.propose_test_release import LevelTested
from reticent.noise import Sampler


@dataclass(frozen=True, kw_only=True)
class DistanceToInstability(LevelTested):
    """An exact answer of any kind, or "withheld", by a test of its stable distance.

    **Guarantee.** One answer, withheld or not, is (epsilon, delta)-private under ``adjacency`` if
    answers and their stable distances have these two properties: neighbours' distances differ by at
    most 1, and neighbours with different answers both have distance 0.

    *Why.* If the answers are equal, the output is a function of the passing bit, which is (epsilon,
    delta)-private by the recursion of ``propose_test_release.optimal_test``. If they differ, both
    pass with probability delta only.

    *Floating point.* Passing is decided by an exact coin on probabilities whose rounding is charged
    inside epsilon and delta.

    *Differs from the literature.* Dwork and Lei 2009 add noise and compare: k + Laplace(1 /
    epsilon) above ln(1 / 2 delta) / epsilon. The optimal test on whole distances passes at least as
    often at every distance, and surely from ``max_level`` on.

    Attributes:
        epsilon: at least 1e-9.
        delta: in (0, 1). At 0 nothing would ever pass.
        adjacency: the relation of neighbours.

    Example:
        >>> from reticent.core import AddRemove
        >>> test = DistanceToInstability(epsilon=1.0, delta=0.05, adjacency=AddRemove(1))
        >>> test.pass_probabilities.round(2).tolist()
        [0.05, 0.19, 0.56, 0.85, 0.96, 1.0]

    Utility:
        The output is the exact answer or nothing. At epsilon = 1 and delta = 1e-5 an answer is
        released more often than not from distance 11 on, and always from 22 on. At epsilon = 0.1
        these distances are 85 and 171. In general half of the answers pass near distance
        ln((e^epsilon - 1) / 2 delta) / epsilon, and all from about twice that on.

    Runtime:
        O(1) an answer, 0.03 microseconds on one core. The table has O(ln(1 / delta) / epsilon)
        levels and is made once, in 0.1 to 1 ms (benchmarks/runtimes.py).

    References:
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466 (introduces propose-test-release).
        - Thakurta and Smith (2013), "Differentially private feature selection via stability
          arguments, and the robustness of the lasso", Conference on Learning Theory (COLT), PMLR
          30:819-850 (release of a stable answer by its distance to instability).
        - Vadhan (2017), "The complexity of differential privacy", doi:10.1007/978-3-319-57048-8_7,
          section 3.3 (releasing stable values).

    See Also:
        reticent.mechanisms.StabilityResponse: never withholds, no delta, sometimes another label.
        reticent.mechanisms.ProposeTestRelease: the same test before noisy answers.
        reticent.mechanisms.optimal_test: the probabilities.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency

    name: ClassVar[str] = "distance to instability"

    def __post_init__(self) -> None:
        if positive(self.epsilon, name="epsilon") < 1e-9:
            raise InvalidParameter(f"epsilon={self.epsilon!r}: expected at least 1e-9")
        probability(self.delta, name="delta", allow_zero=False)

    @property
    @override
    def _test_cost(self) -> tuple[float, float]:
        return self.epsilon, self.delta

    def release(
        self, answers: npt.ArrayLike, levels: npt.ArrayLike, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], Booleans]:
        """Return the answers where the test passes. Each row is a separate answer.

        Args:
            answers: shape (n, ...), integers (labels) or floats.
            levels: shape (n,), stable distances, integers of at least 0.
            sampler: source of randomness.

        Returns:
            The answers, with -1 (integers) or NaN (floats) in withheld rows, and whether each row
            was withheld, shape (n,).

        Raises:
            InvalidInput: wrong shapes or types. Values are never shown.
        """
        given, level = as_array(answers, name="answers").copy(), as_array(levels, name="levels")
        if given.ndim < 1 or level.shape != given.shape[:1]:
            raise InvalidInput(
                f"levels: expected one per answer, got shape={level.shape} for answers of "
                f"shape={given.shape}"
            )
        if given.size and (
            level.dtype.kind not in "iu" or (level < 0).any() or given.dtype.kind not in "iuf"
        ):
            raise InvalidInput(
                "levels: expected integers of at least 0 and answers that are numbers, got "
                f"dtype={level.dtype}"
            )
        withheld = self._withheld(level, sampler)
        given[withheld] = np.nan if given.dtype.kind == "f" else -1
        return given, withheld
