"""Privacy events taken apart into elementary costs, each checked against its adjacency before anybody counts it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dp_accounting import dp_event

from reticent.accounting.events import PrivacyEvent
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent
from reticent.accounting.screening import ScreeningDpEvent
from reticent.core.checks import count, positive
from reticent.core.errors import IncompatibleGuarantees, InvalidParameter
from reticent.core.guarantees import AddRemove, Adjacency, GuaranteeKind, Neighborhood, Replace


@dataclass(frozen=True)
class StatedCost:
    """Only (epsilon, delta) of an answer is known; it is counted as randomised response, the worst of its kind."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class SampledCost:
    """A mechanism on a Poisson sample of the records."""

    sampling_probability: float
    of: GaussianCost | LaplaceCost | ScreeningDpEvent | NoisyArgmaxDpEvent


@dataclass(frozen=True)
class GaussianCost:
    """Gaussian noise; the multiplier is sigma over the l2 sensitivity *under the event's own adjacency*."""

    noise_multiplier: float


@dataclass(frozen=True)
class LaplaceCost:
    """Laplace noise; the multiplier is scale over the l1 sensitivity under the event's own adjacency."""

    noise_multiplier: float


@dataclass(frozen=True)
class DiscreteLaplaceCost:
    """Integer noise with probabilities proportional to exp(-parameter |v|), for an integer sensitivity."""

    parameter: float
    sensitivity: int


@dataclass(frozen=True)
class RandomizedResponseCost:
    """With probability ``noise_parameter`` a uniform one of ``num_buckets`` answers, otherwise the true one."""

    noise_parameter: float
    num_buckets: int


@dataclass(frozen=True)
class ZeroConcentratedCost:
    """rho-zCDP, shifted by xi."""

    rho: float
    xi: float


Cost = (
    StatedCost
    | SampledCost
    | GaussianCost
    | LaplaceCost
    | DiscreteLaplaceCost
    | RandomizedResponseCost
    | ZeroConcentratedCost
    | ScreeningDpEvent
    | NoisyArgmaxDpEvent
)
"""An elementary cost; what an accountant has a formula for."""


def elementary_costs(event: PrivacyEvent) -> list[tuple[Cost, int]]:
    """The elementary costs of one answer of ``event``, with their multiplicities.

    dp-accounting reads a noise multiplier against a bound on each *record*, which doubles the sensitivity under replacement
    in one of its two accountants and not in the other. Here it is always read against the sensitivity under the event's own
    adjacency: unsampled noise is then the same pair of distributions whatever the adjacency, and only sampling has to know what
    a record is.

    Raises:
        IncompatibleGuarantees: the event promises no differential privacy, or its parts do not make sense under its adjacency.
    """
    guarantee = event.guarantee
    if guarantee.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY:
        raise IncompatibleGuarantees(
            f"{event.mechanism}: expected differential privacy, got kind={guarantee.kind.value!r}; "
            "other kinds of guarantee are not composed by accountants"
        )
    if isinstance(event.dp_event, dp_event.UnsupportedDpEvent):
        return [(StatedCost(guarantee.epsilon, guarantee.delta), 1)]
    costs: list[tuple[Cost, int]] = []
    _collect(event.dp_event, 1, guarantee.adjacency, event.mechanism, costs)
    return costs


def _collect(part: Any, times: int, adjacency: Adjacency, mechanism: str, costs: list[tuple[Cost, int]]) -> None:
    if isinstance(part, dp_event.NoOpDpEvent):
        return
    if isinstance(part, dp_event.SelfComposedDpEvent):
        _collect(part.event, times * count(part.count, name="count"), adjacency, mechanism, costs)
    elif isinstance(part, dp_event.ComposedDpEvent):
        for inner in part.events:
            _collect(inner, times, adjacency, mechanism, costs)
    elif isinstance(part, dp_event.PoissonSampledDpEvent):
        costs.append((_sampled(part, adjacency, mechanism), times))
    elif isinstance(part, ScreeningDpEvent | NoisyArgmaxDpEvent):
        _need_one_record(adjacency, mechanism, "a vote of neighbours")
        costs.append((part, times))
    elif isinstance(part, dp_event.RandomizedResponseDpEvent):
        if not isinstance(adjacency, Neighborhood | Replace):
            raise _refused(mechanism, "randomised response", adjacency, "Replace or Neighborhood")
        costs.append((RandomizedResponseCost(part.noise_parameter, part.num_buckets), times))
    else:
        costs.append((_unsampled(part, mechanism), times))


def _unsampled(part: Any, mechanism: str) -> Cost:
    if isinstance(part, dp_event.GaussianDpEvent):
        return GaussianCost(positive(part.noise_multiplier, name="noise_multiplier"))
    if isinstance(part, dp_event.LaplaceDpEvent):
        return LaplaceCost(positive(part.noise_multiplier, name="noise_multiplier"))
    if isinstance(part, dp_event.DiscreteLaplaceDpEvent):
        parameter = positive(part.noise_parameter, name="noise_parameter")
        return DiscreteLaplaceCost(parameter, count(part.sensitivity, name="sensitivity"))
    if isinstance(part, dp_event.ZCDpEvent):
        if part.xi < 0:
            raise InvalidParameter(f"xi={part.xi!r}: expected a number of at least 0")
        return ZeroConcentratedCost(positive(part.rho, name="rho"), float(part.xi))
    raise IncompatibleGuarantees(
        f"{mechanism}: no accountant for {type(part).__name__}; expected Gaussian, Laplace, discrete Laplace, "
        "randomised response, zCDP, screening or noisy argmax steps, Poisson samples and compositions of them, or an "
        "UnsupportedDpEvent at the top to count (epsilon, delta)"
    )


def _sampled(part: Any, adjacency: Adjacency, mechanism: str) -> Cost:
    _need_one_record(adjacency, mechanism, "Poisson sampling")
    rate = positive(part.sampling_probability, name="sampling_probability")
    if rate > 1:
        raise InvalidParameter(f"sampling_probability={rate!r}: expected a number in (0, 1]")
    if isinstance(part.event, ScreeningDpEvent | NoisyArgmaxDpEvent):
        return part.event if rate == 1 else SampledCost(rate, part.event)
    inner: list[tuple[Cost, int]] = []
    _collect(part.event, 1, adjacency, mechanism, inner)
    if len(inner) == 1 and inner[0][1] == 1 and isinstance(inner[0][0], LaplaceCost):
        return inner[0][0] if rate == 1 else SampledCost(rate, inner[0][0])
    precision = 0.0
    for cost, times in inner:
        if not isinstance(cost, GaussianCost):
            raise IncompatibleGuarantees(
                f"{mechanism}: cannot sample a composition with {type(cost).__name__}; "
                "expected Gaussian steps, one Laplace step, one screening or one noisy argmax"
            )
        precision += times / cost.noise_multiplier**2
    # Several Gaussian steps on one sample are one Gaussian step on it: mean shifts add in squares. They are *not* several
    # independently sampled steps.
    together = GaussianCost(1.0 / math.sqrt(precision))
    return together if rate == 1 else SampledCost(rate, together)


def _need_one_record(adjacency: Adjacency, mechanism: str, what: str) -> None:
    if not isinstance(adjacency, AddRemove) or adjacency.records != 1:
        raise _refused(mechanism, what, adjacency, "AddRemove(records=1)")


def _refused(mechanism: str, what: str, adjacency: Adjacency, expected: str) -> IncompatibleGuarantees:
    return IncompatibleGuarantees(f"{mechanism}: {what} is accounted for under {expected}, got {adjacency.describe()}")
