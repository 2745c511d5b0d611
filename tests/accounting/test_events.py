from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from reticent.accounting import (
    Composed,
    Cost,
    DiscreteLaplaceCost,
    GaussianCost,
    LaplaceCost,
    NoisyArgmaxDpEvent,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponseCost,
    ScreeningDpEvent,
    SelfComposed,
    StatedCost,
    ZeroConcentratedCost,
)
from reticent.core import AddRemove, Guarantee
from reticent.core.errors import InvalidParameter

GOOD: list[tuple[type[Cost], tuple[Any, ...]]] = [
    (GaussianCost, (2.0,)),
    (LaplaceCost, (2.0,)),
    (DiscreteLaplaceCost, (0.5, 3)),
    (RandomizedResponseCost, (0.5, 4)),
    (ZeroConcentratedCost, (0.1, 0.0)),
    (StatedCost, (1.0, 1e-6)),
    (PoissonSampled, (0.1, GaussianCost(2.0))),
    (Composed, ((GaussianCost(2.0), LaplaceCost(1.0)),)),
    (SelfComposed, (GaussianCost(2.0), 5)),
    (ScreeningDpEvent, (0, 10, 5, 2.0)),
    (NoisyArgmaxDpEvent, (2.0,)),
]


@pytest.mark.parametrize(("kind", "values"), GOOD, ids=[kind.__name__ for kind, _ in GOOD])
def test_costs_are_values(kind: type[Cost], values: tuple[Any, ...]) -> None:
    one = kind(*values)
    assert isinstance(one, Cost)
    assert one == kind(*values)
    assert hash(one) == hash(kind(*values))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.__setattr__(dataclasses.fields(one)[0].name, 1.0)  # type: ignore[arg-type]


BAD: list[tuple[type[Cost], tuple[Any, ...], str]] = [
    (GaussianCost, (0.0,), "noise_multiplier"),
    (GaussianCost, (math.nan,), "noise_multiplier"),
    (LaplaceCost, (-1.0,), "noise_multiplier"),
    (DiscreteLaplaceCost, (0.0, 1), "parameter"),
    (DiscreteLaplaceCost, (0.5, 1.5), "sensitivity"),
    (RandomizedResponseCost, (0.0, 2), "noise_parameter"),
    (RandomizedResponseCost, (1.1, 2), "noise_parameter"),
    (RandomizedResponseCost, (0.5, 1), "num_buckets"),
    (ZeroConcentratedCost, (0.0,), "rho"),
    (ZeroConcentratedCost, (0.1, -1.0), "xi"),
    (ZeroConcentratedCost, (0.1, math.inf), "xi"),
    (StatedCost, (0.0, 0.0), "epsilon"),
    (StatedCost, (1.0, 1.0), "delta"),
    (PoissonSampled, (0.0, GaussianCost(1.0)), "sampling_probability"),
    (PoissonSampled, (1.5, GaussianCost(1.0)), "sampling_probability"),
    (PoissonSampled, (0.5, 1.0), "part of a cost"),
    (Composed, ((GaussianCost(1.0), None),), "part of a cost"),
    (SelfComposed, (GaussianCost(1.0), 0), "times"),
    (SelfComposed, (GaussianCost(1.0), 2.5), "times"),
]


@pytest.mark.parametrize(("kind", "values", "named"), BAD)
def test_what_is_out_of_range_is_refused_when_it_is_stated(
    kind: type[Cost], values: tuple[Any, ...], named: str
) -> None:
    with pytest.raises(InvalidParameter, match=named):
        kind(*values)


def test_an_event_needs_no_more_than_its_guarantee() -> None:
    guarantee = Guarantee(0.5, 0.0, AddRemove())
    assert PrivacyEvent("label", guarantee).cost is None
    with pytest.raises(InvalidParameter, match="cost: expected one of"):
        PrivacyEvent("label", guarantee, 0.5)  # type: ignore[arg-type]


def test_a_composition_takes_any_sequence_of_parts() -> None:
    assert Composed([GaussianCost(1.0)]) == Composed((GaussianCost(1.0),))  # type: ignore[arg-type]
