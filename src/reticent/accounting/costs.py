"""The split of privacy events into elementary costs, each checked against its adjacency before it
is counted.
"""

from __future__ import annotations

import math

from reticent.accounting.events import (
    Composed,
    Cost,
    GaussianCost,
    PoissonSampled,
    PrivacyEvent,
    StatedCost,
    ZeroConcentratedCost,
)
from reticent.accounting.noisy_argmax import NoisyArgmaxDpEvent
from reticent.accounting.screening import ScreeningDpEvent
from reticent.core.errors import IncompatibleGuarantees
from reticent.core.guarantees import AddRemove, Adjacency, GuaranteeKind

_ROUND_UP = 1.0 + 1e-14

_LARGEST_EXPONENT = 700.0
"""A larger exponent overflows exp."""


def elementary_costs(event: PrivacyEvent) -> list[Cost]:
    """Return the elementary costs of one answer of ``event``.

    An elementary cost is one that an accountant has a formula for: a cost without parts,
    ``PoissonSampled`` of one, or ``PoissonSampled`` of several that see one sample.

    Raises:
        IncompatibleGuarantees: the event promises no differential privacy, or its parts do not
            make sense under its adjacency.
    """
    guarantee = event.guarantee
    if guarantee.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY:
        raise IncompatibleGuarantees(
            f"{event.mechanism}: expected differential privacy, got kind={guarantee.kind.value!r}; "
            "other kinds of guarantee are not composed by accountants"
        )
    if event.cost is None:
        return [StatedCost(guarantee.epsilon, guarantee.delta)]
    return _parts(event.cost, guarantee.adjacency, event.mechanism)


def _parts(cost: Cost, adjacency: Adjacency, mechanism: str) -> list[Cost]:
    if isinstance(cost, Composed):
        return [found for part in cost.parts for found in _parts(part, adjacency, mechanism)]
    if isinstance(cost, PoissonSampled):
        _need_one_record(adjacency, mechanism, "Poisson sampling")
        inner = _parts(cost.of, adjacency, mechanism)
        return (
            inner
            if cost.sampling_probability == 1 or not inner
            else [_sampled(inner, cost.sampling_probability, mechanism)]
        )
    if isinstance(cost, ScreeningDpEvent | NoisyArgmaxDpEvent):
        _need_one_record(adjacency, mechanism, "a vote of neighbours")
    elif not isinstance(cost, GaussianCost | ZeroConcentratedCost | StatedCost):
        raise IncompatibleGuarantees(
            f"{mechanism}: no accountant for {type(cost).__name__}; expected a cost of "
            "reticent.accounting.events, or None to "
            "count (epsilon, delta)"
        )
    return [cost]


def _sampled(inner: list[Cost], rate: float, mechanism: str) -> Cost:
    """Return the cost of ``inner`` on one Poisson sample."""
    gaussians = [cost for cost in inner if isinstance(cost, GaussianCost)]
    if len(gaussians) == len(inner):
        # Several Gaussian steps on one sample are one Gaussian step on it: mean shifts add in
        # squares. They are *not* several independently sampled steps.
        precision = math.fsum(1 / cost.noise_multiplier**2 for cost in gaussians)
        return PoissonSampled(rate, GaussianCost(1.0 / math.sqrt(precision)))
    if len(inner) == 1:
        only = inner[0]
        if isinstance(only, StatedCost):
            return _sampled_statement(only, rate)
        if isinstance(only, ScreeningDpEvent | NoisyArgmaxDpEvent):
            return PoissonSampled(rate, only)
    for cost in inner:
        if isinstance(cost, PoissonSampled) or (isinstance(cost, StatedCost) and cost.delta > 0):
            raise IncompatibleGuarantees(
                f"{mechanism}: cannot sample a composition with {type(cost).__name__}; "
                "expected parts with a Rényi divergence"
            )
    return PoissonSampled(rate, Composed(tuple(inner)))


def _sampled_statement(cost: StatedCost, rate: float) -> StatedCost:
    """Return (log(1 + rate (e^epsilon - 1)), rate delta): Balle, Barthe and Gaboardi 2018, Theorem
    8.
    """
    epsilon = cost.epsilon
    if epsilon < _LARGEST_EXPONENT:
        epsilon = min(epsilon, math.log1p(rate * math.expm1(epsilon)) * _ROUND_UP)
    return StatedCost(epsilon, min(cost.delta, rate * cost.delta * _ROUND_UP))


def _need_one_record(adjacency: Adjacency, mechanism: str, what: str) -> None:
    if not isinstance(adjacency, AddRemove) or adjacency.records != 1:
        raise IncompatibleGuarantees(
            f"{mechanism}: {what} is accounted for under AddRemove(records=1), got "
            f"{adjacency.describe()}"
        )
