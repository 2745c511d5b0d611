"""The cost of one answer, as an immutable value that travels with the mechanism that causes it.

::

    Cost
    ├── GaussianCost              Gaussian noise
    ├── ZeroConcentratedCost      only zCDP is known
    ├── StatedCost                only (epsilon, delta) is known
    ├── ScreeningDpEvent          a screening bit (reticent.accounting.screening)
    ├── NoisyArgmaxDpEvent        a noisy label (reticent.accounting.noisy_argmax)
    ├── PoissonSampled            a cost on a Poisson sample of the records
    └── Composed                  several costs together

A noise multiplier is noise over sensitivity *under the event's own adjacency*. Unsampled noise is
then the same pair of distributions whatever the adjacency, and only sampling has to know what a
record is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from reticent.core.checks import positive, probability, real
from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Guarantee


class Cost:
    """A cost that an accountant adds up (the module's text has the tree). Subclasses are frozen
    dataclasses, equal where their fields are.
    """


@dataclass(frozen=True)
class PrivacyEvent:
    """The cost of one answer of a mechanism.

    Attributes:
        mechanism: name of the mechanism that causes the cost.
        guarantee: the (epsilon, delta, adjacency) of one answer.
        cost: the same cost in finer terms, for a tighter total of many answers, or None where
            ``guarantee`` is all that is known.
    """

    mechanism: str
    guarantee: Guarantee
    cost: Cost | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.cost, Cost | None):
            raise InvalidParameter(
                "cost: expected one of reticent.accounting.events or None, got "
                f"{type(self.cost).__name__}"
            )


@dataclass(frozen=True)
class GaussianCost(Cost):
    """Gaussian noise.

    Attributes:
        noise_multiplier: sigma over the l2 sensitivity, above 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        positive(self.noise_multiplier, name="noise_multiplier")


@dataclass(frozen=True)
class ZeroConcentratedCost(Cost):
    """Rényi divergence at most xi + rho a at every order a.

    Attributes:
        rho: above 0.
        xi: at least 0.

    References:
        - Bun and Steinke (2016), "Concentrated differential privacy: simplifications, extensions,
          and lower bounds", arXiv:1605.02065, definition 1.1 (zCDP is xi = 0).

    See Also:
        reticent.accounting.GaussianCost: continuous Gaussian noise.
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        positive(self.rho, name="rho")
        xi = real(self.xi, name="xi")
        if not (math.isfinite(xi) and xi >= 0):
            raise InvalidParameter(f"xi={self.xi!r}: expected a finite number of at least 0")


@dataclass(frozen=True)
class StatedCost(Cost):
    """A cost of which only (epsilon, delta) is known.

    With probability delta the answer is taken to give everything away. Otherwise it is two-way
    randomised response, of which every (epsilon, 0)-private mechanism is a post-processing.

    Attributes:
        epsilon: above 0.
        delta: in [0, 1).

    References:
        - Kairouz, Oh and Viswanath (2015), "The composition theorem for differential privacy",
          arXiv:1311.0776, theorem 3.3.

    See Also:
        reticent.accounting.optimal_epsilon: composes such answers exactly.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon")
        probability(self.delta, name="delta")


@dataclass(frozen=True)
class PoissonSampled(Cost):
    """``of`` on a Poisson sample: every record takes part with ``sampling_probability``,
    independently.

    Several parts in ``of`` see *one* sample, which is not the same as several samples.

    Attributes:
        sampling_probability: in (0, 1], where 1 means no sampling.
        of: the cost of what is computed on the sample.
    """

    sampling_probability: float
    of: Cost

    def __post_init__(self) -> None:
        if positive(self.sampling_probability, name="sampling_probability") > 1:
            raise InvalidParameter(
                f"sampling_probability={self.sampling_probability!r}: expected a number in (0, 1]"
            )
        _check_cost(self.of)


@dataclass(frozen=True)
class Composed(Cost):
    """Several costs together. Each mechanism may see the answers of those before it.

    Attributes:
        parts: the costs.
    """

    parts: tuple[Cost, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            _check_cost(part)


def _check_cost(part: object) -> None:
    if not isinstance(part, Cost):
        raise InvalidParameter(
            f"part of a cost: expected one of reticent.accounting.events, got {type(part).__name__}"
        )
