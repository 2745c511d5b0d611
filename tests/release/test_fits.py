"""Fits on the same records are counted, whoever makes them; other records are not."""

from __future__ import annotations

import pickle
import sys
import threading
import warnings
from copy import copy, deepcopy
from functools import partial
from typing import cast

import numpy as np
import pandas as pd
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, GuaranteeKind, Neighborhood, Replace
from reticent.core.errors import IncompatibleGuarantees, InvalidInput, PrivacyWarning
from reticent.core.releases import Receipt
from reticent.noise import SecureSampler, SeededSampler
from reticent.release.fits import (
    DataUse,
    forget_fits,
    not_counted,
    use_of,
)
from reticent.release.paying import Price, paid, receipt_of
from reticent.release.prepaid import Prepaid
from reticent.tables.shards import Shards
from tests.together import in_threads

COST = Guarantee(1.0, 1e-5, AddRemove(data_set="a"))


def rows(number: int, seed: int = 0, columns: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(number, columns))


def fitted(X: object, *, data_set: str | None = None, booked: bool = False) -> DataUse:
    return use_of(X, data_set=data_set, estimator=None, booked=booked)


def counts(first: object, second: object) -> bool:
    """Whether a release from the second rows counts one from the first."""
    forget_fits()
    fitted(first).spent(COST)
    use = fitted(second)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use.spent(COST)
    together = use.together()
    assert together is not None
    assert together.fits == 1 + len(caught)
    return together.fits == 2


@pytest.mark.parametrize("columns", [1, 3, 64, 65, 300])
def test_the_same_records_are_known_again(columns: int) -> None:
    table = rows(1000, columns=columns)
    assert counts(table, table)
    assert counts(table, table[::-1])
    assert counts(table, table.tolist())
    assert counts(table, pd.DataFrame(table))
    assert counts(table, np.asfortranarray(table))
    assert counts(table, Shards((table[:300], table[300:]), (np.zeros(300), np.zeros(700))))
    assert counts(table, table[200:])  # .2^64 of the keys have no row in common
    assert not counts(table, rows(1000, seed=1, columns=columns))
    assert not counts(table[:500], table[500:])


def test_a_name_is_enough_and_another_name_does_not_hide_the_rows() -> None:
    fitted(rows(10), data_set="ward").spent(COST)
    scaled = fitted(rows(10) * 2, data_set="ward")
    with pytest.warns(PrivacyWarning):
        scaled.spent(COST)
    renamed = fitted(rows(10), data_set="another")
    with pytest.warns(PrivacyWarning):
        renamed.spent(COST)
    other = fitted(rows(10, seed=1), data_set="third")
    other.spent(COST)
    assert other.card_line() == ""


def test_a_receipt_says_whether_its_cost_is_that_of_each_answer() -> None:
    """Three answers at epsilon 2 each cost 6, and three of a plan that cost 2 in all cost 2."""
    event = PrivacyEvent("labels", COST)
    each = receipt_of(Price(event, 3, "labels"), SecureSampler(), None)
    plan = cast(Prepaid, object())
    together = receipt_of(Price(event, 3, "labels", prepaid=plan), SecureSampler(), None)
    assert (each.together, together.together) == (False, True)
    assert Receipt.from_dict(together.to_dict()) == together
    assert each.describe() != together.describe()


def test_a_card_does_not_tell_that_two_data_sets_share_a_record() -> None:
    """The card is published, so it counts fits by their public names, and never by rows."""
    fitted(rows(10), data_set="January").spent(COST)
    for name in ("February", None):
        apart, sharing = rows(10, seed=1), np.vstack([rows(9, seed=1), rows(1)])
        lines = []
        for table in (apart, sharing):
            use = fitted(table, data_set=name and f"{name} {len(lines)}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyWarning)
                use.spent(COST)
            lines.append(use.card_line())
        assert lines == ["", ""]


def test_the_sum_is_by_kind_of_neighbours_and_grows() -> None:
    first, second = fitted(rows(10), data_set="ward"), fitted(rows(10), data_set="ward")
    first.spent(COST)
    assert first.card_line() == ""
    with pytest.warns(PrivacyWarning, match=r"epsilon=4, delta=3e-05"):
        second.spent(Guarantee(1.5, 1e-5, AddRemove()), answers=2)
    second.spent(Guarantee(3.0, 0.0, Replace(unit="person")))  # warned once for each fit
    for use in (first, second):
        together = use.together()
        assert together is not None
        assert (together.fits, together.releases) == (2, 4)
        assert {kind: cost for kind, *cost in together.costs} == {
            AddRemove(): [4.0, pytest.approx(3e-5)],
            Replace(unit="person"): [3.0, 0.0],
        }
        assert together.words() in use.card_line()
    with pytest.warns(PrivacyWarning):
        first.spent(COST)


def test_a_fit_that_has_released_nothing_costs_nothing() -> None:
    fitted(rows(10))
    use = fitted(rows(10))
    assert use.together() is None
    use.spent(COST)
    assert use.card_line() == ""


def test_booked_simulated_and_excused_fits_do_not_count() -> None:
    fitted(rows(10)).spent(COST)
    for use in (
        fitted(rows(10), booked=True),
        use_of(rows(10), data_set=None, estimator=None, booked=False, simulated=True),
    ):
        use.spent(COST)
        assert use.together() is None
    use = fitted(rows(10))
    with not_counted("the rows are made up"):
        inner = fitted(rows(10))
        use.spent(COST)
    inner.spent(COST)
    assert inner.together() is None
    assert use.together() is None
    with pytest.raises(InvalidInput), not_counted(""):
        pass


def test_what_leaves_unbooked_is_counted_and_a_simulation_is_not() -> None:
    use = fitted(rows(10))
    price = Price(PrivacyEvent("a mechanism", COST), 3, "a mechanism", use=use)
    with paid(price, sampler=SeededSampler(0), ledger=None, scope=None):
        pass
    assert use.together() is None
    with paid(price, sampler=SecureSampler(), ledger=None, scope=None):
        pass
    found = use.together()
    assert found is not None
    assert found.releases == 3
    assert [epsilon for _, epsilon, _ in found.costs] == [3.0 * COST.epsilon]


def test_an_excuse_ends_with_its_thread() -> None:
    with not_counted("the rows are made up"):
        (found,) = in_threads(lambda: fitted(rows(10)))
    assert found.counted


def test_costs_of_other_things_than_records_are_refused() -> None:
    use = fitted(rows(10))
    with pytest.raises(IncompatibleGuarantees):
        use.spent(Guarantee(1.0, 0.0, Neighborhood("l2", 1.0, "space")))
    with pytest.raises(IncompatibleGuarantees):
        use.spent(Guarantee(1.0, 0.0, AddRemove(), GuaranteeKind.NO_PRIVACY))


def test_copies_and_pickles_are_the_same_fit_and_hold_no_digest() -> None:
    use = fitted(rows(100), data_set="ward")
    use.spent(COST)
    stored = pickle.dumps(use)
    assert not any(digest in stored for digest in use._rows)
    for again in (copy(use), deepcopy(use), pickle.loads(stored)):
        assert again is use
        again.spent(COST)  # one fit's second release
    forget_fits()  # as another process would know nothing
    elsewhere = pickle.loads(stored)
    assert elsewhere is not use
    fitted(rows(100)).spent(COST)
    named = fitted(rows(7, seed=1), data_set="ward")
    named.spent(COST)
    with pytest.warns(PrivacyWarning):
        elsewhere.spent(COST)


def test_no_release_of_many_threads_is_lost() -> None:
    uses = [fitted(rows(10)) for _ in range(2)]
    start = threading.Barrier(8)

    def release(use: DataUse) -> None:
        start.wait()
        for _ in range(2000):
            use.spent(COST)

    often, before = 1e-6, sys.getswitchinterval()
    sys.setswitchinterval(often)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            in_threads(*(partial(release, uses[n % 2]) for n in range(8)))
    finally:
        sys.setswitchinterval(before)
    together = uses[0].together()
    assert together is not None
    assert (together.fits, together.releases) == (2, 16000)
    assert together.costs[0][1] == 16000.0
