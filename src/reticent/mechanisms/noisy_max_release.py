"""A label released as the noisy maximum of its logits, with geometric noise in units of the
sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.mechanisms.label_mechanism import LabelMechanism
from reticent.noise import Sampler

_ROWS = 2048
_NEGLIGIBLE = 40.0
_LARGEST_QUOTIENT = 2**31


@dataclass(frozen=True, kw_only=True)
class NoisyMaxRelease(LabelMechanism):
    """The label whose logit plus noise is largest, where the noise is a whole number of
    sensitivities.

    **Guarantee.** If between any two neighbours every *difference of two logits* changes by at most
    ``sensitivity``, and each logit is computed to within ``evaluation_error``, one label is
    (epsilon, 0)-private under ``adjacency``.

    *Why.* Label r is answered when ``F_r + D G_r`` is at least (for an earlier label: more than)
    every other ``F_s + D G_s``. The G are independent with P(G = k) proportional to exp(-epsilon
    k), k >= 0. Fix the noise of the others. Then r wins exactly when G_r >= T, where T is the least
    whole number that lets r win. At a neighbour every F_s - F_r has moved by at most D, so T has
    moved by at most 1. P(G >= T + 1) is exp(-epsilon) P(G >= T) for T >= 0 and 1 for T < 0. So each
    label's chance changes by at most a factor e^epsilon, whatever the noise of the others.
    (One-sided noise with bounded *differences* costs epsilon, not 2 epsilon.)

    *Use.* With two classes this is stability release, the best there is. With more it spends no
    probability on labels that are far behind, unlike stability release.

    *Floating point.* Gaps to the top logit are rounded to a public grid, and the sensitivity up to
    whole steps. The comparison is exact.

    Attributes: those of ``LabelMechanism``.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> mechanism = NoisyMaxRelease(classes=3, sensitivity=1.0, epsilon=2.0, adjacency=near)
        >>> mechanism.probabilities([[1.5, 0.0, 0.0]]).round(3).tolist()
        [[0.968, 0.016, 0.016]]

    Utility:
        At epsilon 1, with ten classes of which one is a rival at a margin of g sensitivities, the
        top label wins with probability 0.73, 0.90, 0.99 and 0.998 at g = 0, 1.5, 3.5 and 5.5.
        With nine rivals at one margin it is 0.17, 0.44, 0.89 and 0.98.

    Runtime:
        O(classes) a label, 0.5 microseconds for 10 classes on one core (benchmarks/runtimes.py).

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, section 3.3 (report noisy max).
        - McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private
          selection", arXiv:2010.12603.
        - Ding et al. (2021), "The permute-and-flip mechanism is identical to report-noisy-max with
          exponential noise", arXiv:2105.07260 (permute-and-flip is report-noisy-max with
          exponential noise).
        - Geng and Viswanath (2014), "The optimal mechanism in differential privacy",
          arXiv:1212.1186 (the staircase distribution, which is that of whole-number noise on
          unrounded scores).

    See Also:
        reticent.mechanisms.StabilityRelease: better against many rivals at one margin.
    """

    name: ClassVar[str] = "noisy-max release"
    least_epsilon: ClassVar[float] = 0.01

    @property
    def _noise_scale(self) -> float:
        """1 / epsilon, rounded up."""
        return (1.0 + 2.0**-48) / self.epsilon

    @override
    def probabilities(self, logits: npt.ArrayLike) -> Array:
        steps = self._steps(logits)
        parts = [
            self._chances(steps[first : first + _ROWS]) for first in range(0, len(steps), _ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.classes))

    @override
    def release(self, logits: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        behind = self._steps(logits)
        noise = sampler.geometric(behind.shape, scale=self._noise_scale)
        # Compared as (whole sensitivities, rest), so that no product can leave int64. The first
        # label wins ties.
        whole, rest = np.divmod(behind, self.whole_sensitivity)
        total = whole + noise
        leading = total == total.max(axis=1, keepdims=True, initial=np.iinfo(np.int64).min)
        return np.asarray(np.where(leading, rest, -1).argmax(axis=1))

    def _steps(self, logits: npt.ArrayLike) -> Integers:
        """Return the steps relative to the top logit: 0 there, negative below."""
        return -self.gaps(logits)

    def _chances(self, steps: Integers) -> Array:
        """Return the sum over the winner's own noise g of P(g) times the product over the others of
        P(G_s <= g + lead).
        """
        gaps = steps[:, :, None] - steps[:, None, :]
        earlier = np.arange(self.classes)[:, None] < np.arange(self.classes)[None, :]
        # r beats s with noise g against G_s iff G_s <= g + lead: ties go to the earlier label.
        lead = np.where(
            earlier, gaps // self.whole_sensitivity, -((-gaps) // self.whole_sensitivity) - 1
        )
        lead = np.clip(lead, -_LARGEST_QUOTIENT, _LARGEST_QUOTIENT)
        rate = 1.0 / self._noise_scale
        itself = np.eye(self.classes, dtype=np.bool_)
        chances = np.zeros(steps.shape)
        for own in range(int(np.ceil(_NEGLIGIBLE / rate)) + 1):
            beaten = -np.expm1(-rate * np.maximum(lead + own + 1, 0))
            weight = -np.expm1(-rate) * np.exp(-rate * own)
            chances += weight * np.where(itself, 1.0, beaten).prod(axis=2)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))
