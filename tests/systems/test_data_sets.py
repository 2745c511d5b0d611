"""Records belong to a data set that its owner names: what is booked is charged to the name,
however often it is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import AddRemove, Guarantee, Scope, Unit
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidInput
from reticent.ledger import Ledger
from reticent.systems import (
    CertifiedClassifier,
    Features,
    Neighbours,
    PrivateKNNClassifier,
)

X = np.random.default_rng(0).uniform(size=(60, 8, 8))
Y = np.arange(60) % 2
KEYS = [f"person {number % 20}" for number in range(60)]
PUBLIC = np.random.default_rng(1).uniform(size=(20, 8, 8))
SCOPE = Scope(subject="hospital")

pytestmark = pytest.mark.filterwarnings("ignore::reticent.core.errors.PrivacyWarning")


def neighbours(data_set: str | None, keys: Any = None) -> Any:
    return PrivateKNNClassifier(
        epsilon=4.0,
        delta=1e-5,
        queries=5,
        neighbours=Neighbours(number=10, sampling_probability=0.5),
        classes=[0, 1],
        data_set=data_set,
        features=Features(range=(0.0, 1.0)),
    ).fit(X, Y, keys)


def certified(data_set: str | None, keys: Any = None) -> Any:
    return CertifiedClassifier(epsilon=1.0, k_max=1, classes=[0, 1], data_set=data_set).fit(
        X, Y, keys
    )


def test_two_data_sets_do_not_add_up_and_two_fits_on_one_do() -> None:
    one, again, other, unnamed, nameless = (
        certified(name) for name in ("ward 7", "ward 7", "ward 8", None, None)
    )
    assert one.guarantee.compose(again.guarantee).epsilon == pytest.approx(
        2 * one.guarantee.epsilon
    )
    for first, second in ((one, other), (one, unnamed), (unnamed, nameless)):
        with pytest.raises(IncompatibleGuarantees, match="data set"):
            first.guarantee.compose(second.guarantee)


def test_persons_and_records_do_not_add_up() -> None:
    persons, records = neighbours("ward 7", KEYS), neighbours("ward 7")
    assert persons.guarantee.adjacency == AddRemove(1, Unit.PERSON, "ward 7")
    assert records.guarantee.adjacency == AddRemove(1, Unit.RECORD, "ward 7")
    with pytest.raises(IncompatibleGuarantees, match=r"all records of 1 person\(s\)"):
        persons.guarantee.compose(records.guarantee)


@pytest.mark.parametrize("fit", [neighbours, certified])
def test_a_ledger_charges_every_fit_to_the_name_and_takes_none_without(
    fit: Callable[..., Any], tmp_path: Path
) -> None:
    cost = fit("ward 7").guarantee

    def booked(name: str | None) -> Any:
        return fit(name).release(PUBLIC[:1], ledger=ledger, scope=SCOPE)

    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(
            SCOPE, Guarantee(2.5 * cost.epsilon, max(2.5 * cost.delta, 1e-9), cost.adjacency)
        )
        booked("ward 7")
        booked("ward 7")
        before = ledger.verify()
        with pytest.raises(BudgetExceeded):
            booked("ward 7")
        with pytest.raises(IncompatibleGuarantees):
            booked("ward 8")
        with pytest.raises(
            InvalidInput, match=r"data_set: expected a name of the protected records"
        ):
            booked(None)
        assert ledger.verify() == before


def test_identities_of_certified_records_make_no_persons() -> None:
    made = certified("ward 7", range(60))
    assert made.guarantee.adjacency == AddRemove(1, Unit.RECORD, "ward 7")
    with pytest.raises(InvalidInput, match="persons"):
        certified("ward 7", KEYS)
