from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from reticent.accounting import (
    BasicFilter,
    Filter,
    GaussianCost,
    PrivacyEvent,
    RdpAccountant,
    RdpFilter,
)
from reticent.core import AddRemove, Guarantee, GuaranteeKind, Replace
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidParameter

EventMaker = Callable[..., PrivacyEvent]
LIPSCHITZ = GuaranteeKind.LIPSCHITZ_PRIVACY


def test_basic_filter_adds_decimals_exactly(make_event: EventMaker) -> None:
    budget = BasicFilter(Guarantee(1.0, 3e-6, AddRemove()))
    for _ in range(10):
        budget.spend(make_event(epsilon=0.1, delta=3e-7))
    assert not budget.fits(make_event(epsilon=1e-9))
    with pytest.raises(BudgetExceeded, match=r"largest request that would fit is 0 answer"):
        budget.spend(make_event(epsilon=0.1))


def test_a_refusal_spends_nothing(make_event: EventMaker) -> None:
    budget = BasicFilter(Guarantee(1.0, 1e-9, AddRemove()))
    budget.spend(make_event(), 7)
    with pytest.raises(BudgetExceeded, match="would fit is 3 answer"):
        budget.spend(make_event(), 4)
    assert budget.largest(make_event()) == 3
    assert budget.largest(make_event(epsilon=0.001, delta=1e-10)) == 10


@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))]
)
def test_a_copy_of_a_filter_has_nothing_left(
    twin: Callable[[Filter], Filter], make_event: EventMaker
) -> None:
    total = Guarantee(1.0, 1e-5, AddRemove())
    for made in (BasicFilter(total), RdpFilter(total, [2, 8, 32])):
        other = twin(made)
        assert not other.fits(make_event())
        with pytest.raises(BudgetExceeded, match="a forked or copied one, which has nothing left"):
            other.spend(make_event())
        made.spend(make_event())


def test_forked_filters_have_nothing_left(make_event: EventMaker) -> None:
    made = BasicFilter(Guarantee(1.0, 1e-5, AddRemove()))
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=lambda: results.put(made.largest(make_event())))
    child.start()
    assert results.get(timeout=60) == 0
    child.join()
    assert made.largest(make_event()) > 0


def test_filters_keep_kinds_and_adjacencies_apart(make_event: EventMaker) -> None:
    budget = BasicFilter(Guarantee(1.0, 1e-9, AddRemove()))
    for wrong in (
        make_event(adjacency=Replace()),
        make_event(kind=LIPSCHITZ),
        make_event(kind=GuaranteeKind.NO_PRIVACY),
    ):
        with pytest.raises(IncompatibleGuarantees):
            budget.spend(wrong)
    BasicFilter(Guarantee(1.0, 0.0, AddRemove(), LIPSCHITZ)).spend(make_event(kind=LIPSCHITZ))
    with pytest.raises(IncompatibleGuarantees):
        BasicFilter(Guarantee(1.0, 0.0, AddRemove(), GuaranteeKind.NO_PRIVACY))


@pytest.mark.parametrize("orders", [[10.0], [8.0, 12.0, 16.0]])
def test_rdp_filter_lets_through_no_more_than_its_total(
    make_event: EventMaker, orders: list[float]
) -> None:
    """An accountant that knows the list of events in advance can only find a smaller total."""
    total = Guarantee(2.0, 1e-5, AddRemove())
    budget = RdpFilter(total, orders)
    rng = np.random.default_rng(1)
    spent = RdpAccountant(AddRemove())
    for sigma in rng.uniform(5, 60, 400):
        event = make_event(event=GaussianCost(float(sigma)))
        if budget.fits(event):
            budget.spend(event)
            spent.compose(event)
    assert 0.5 < spent.epsilon(delta=total.delta) <= total.epsilon
    assert np.any(budget.room >= 0)


def test_rdp_filter_of_one_order_is_the_theorem_to_the_last_digit(make_event: EventMaker) -> None:
    total, order, sigma = Guarantee(2.0, 1e-5, AddRemove()), 8.0, 30.0
    budget = total.epsilon - math.log(1 - 1 / order) + math.log(total.delta * order) / (order - 1)
    expected = math.floor(budget / (order / (2 * sigma**2)))
    assert RdpFilter(total, [order]).largest(make_event(event=GaussianCost(sigma))) == expected


def test_several_orders_share_delta(make_event: EventMaker) -> None:
    """A run may end on any of them, so each is as strict as a filter of its own with a third of
    delta.
    """
    event = make_event(event=GaussianCost(25.0))
    three = RdpFilter(Guarantee(6.0, 3e-5, AddRemove()), [4.0, 8.0, 16.0])
    alone = [
        RdpFilter(Guarantee(6.0, 1e-5, AddRemove()), [order]).largest(event)
        for order in (4.0, 8.0, 16.0)
    ]
    assert three.largest(event) == max(alone)


def test_rdp_filter_refuses_what_has_no_divergence(make_event: EventMaker) -> None:
    budget = RdpFilter(Guarantee(4.0, 1e-5, AddRemove()), [8.0])
    with pytest.raises(IncompatibleGuarantees, match="use BasicFilter"):
        budget.spend(make_event(delta=1e-9))
    with pytest.raises(InvalidParameter, match="delta=0"):
        RdpFilter(Guarantee(4.0, 0.0, AddRemove()), [8.0])
    with pytest.raises(InvalidParameter, match="add larger orders"):
        RdpFilter(Guarantee(0.1, 1e-9, AddRemove()), [2.0])
    with pytest.raises(IncompatibleGuarantees, match="kind"):
        RdpFilter(Guarantee(1.0, 1e-5, AddRemove(), LIPSCHITZ), [8.0])
