from __future__ import annotations

import pytest

from reticent.accounting import (
    Composed,
    GaussianCost,
    PrivacyEvent,
)
from reticent.core import AddRemove, Guarantee
from reticent.core.errors import InvalidParameter


def test_an_event_needs_no_more_than_its_guarantee() -> None:
    guarantee = Guarantee(0.5, 0.0, AddRemove())
    assert PrivacyEvent("label", guarantee).cost is None
    with pytest.raises(InvalidParameter, match="cost: expected one of"):
        PrivacyEvent("label", guarantee, 0.5)  # type: ignore[arg-type]


def test_a_composition_takes_any_sequence_of_parts() -> None:
    assert Composed([GaussianCost(1.0)]) == Composed((GaussianCost(1.0),))  # type: ignore[arg-type]
