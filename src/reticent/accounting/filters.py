"""Filters, whose totals hold even if every next event is chosen from earlier answers.

A filter has a total in advance and refuses every event that would exceed it. Events, their number
and the moment to stop may depend on earlier releases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.accounting.accountants import RdpAccountant
from reticent.accounting.costs import elementary_costs
from reticent.accounting.events import PrivacyEvent, StatedCost
from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, IncompatibleGuarantees, InvalidParameter
from reticent.core.guarantees import Guarantee, GuaranteeKind
from reticent.core.processes import HomeProcess


class Filter(ABC):
    """A total with a guard that refuses every event that would exceed it. A refusal spends nothing.

    A filter counts in the memory of one process. A forked child, a copy and an unpickled filter
    have nothing left, since each would go on counting by itself. Several processes count together
    in a ledger.

    Args:
        total: the most that may be spent. Its adjacency and kind are those of every event.

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294 (introduces filters).

    See Also:
        reticent.accounting.BasicFilter: sums.
        reticent.accounting.RdpFilter: Rényi sums.
        reticent.ledger.Ledger: for many processes, on disk.
    """

    def __init__(self, total: Guarantee) -> None:
        if total.kind is GuaranteeKind.NO_PRIVACY:
            raise IncompatibleGuarantees(
                "a filter needs a total that promises something; got kind='no differential privacy'"
            )
        self.total = total
        self._home = HomeProcess()

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Copied here, so that a shallow copy does not share its home with the original.
        self.__dict__.update(state, _home=copy(state["_home"]))

    def spend(self, event: PrivacyEvent, answers: int = 1) -> None:
        """Charge ``answers`` answers of ``event``. Call it before they are computed.

        Raises:
            BudgetExceeded: they do not fit. Nothing was charged.
            IncompatibleGuarantees: another adjacency or kind, or no formula. Nothing was charged.
        """
        if not self._home.is_here:
            raise BudgetExceeded(
                f"{answers} answer(s) of {event.mechanism}: expected the filter that was made, "
                "in its process; this is a "
                "forked or copied one, which has nothing left. Count in a ledger, where all "
                "processes count together"
            )
        if not self.fits(event, answers):
            raise BudgetExceeded(
                f"{answers} answer(s) of {event.mechanism} do not fit into what is left of "
                f"{self.total.describe()}; "
                f"the largest request that would fit is {self.largest(event)} answer(s)"
            )
        self._charge(event, answers)

    def fits(self, event: PrivacyEvent, answers: int = 1) -> bool:
        """Return whether ``spend`` would accept. Nothing is charged.

        Raises:
            IncompatibleGuarantees: another adjacency or kind, or no formula.
        """
        answers = count(answers, name="answers")
        if event.guarantee.kind is not self.total.kind:
            raise IncompatibleGuarantees(
                f"cannot charge {event.guarantee.kind.value} to a total of {self.total.kind.value}"
            )
        if event.guarantee.adjacency != self.total.adjacency:
            raise IncompatibleGuarantees(
                "costs compose only within one adjacency: the total is for "
                f"{self.total.adjacency.describe()}, "
                f"{event.mechanism} protects {event.guarantee.adjacency.describe()}"
            )
        return self._home.is_here and self._fits(event, answers)

    def largest(self, event: PrivacyEvent) -> int:
        """Return the largest number of answers of ``event`` that would still fit, at most 2**62."""
        if not self.fits(event, 1):
            return 0
        lower, upper = 1, 2
        while upper < 2**62 and self.fits(event, upper):
            lower, upper = upper, 2 * upper
        while upper - lower > 1:
            middle = (lower + upper) // 2
            lower, upper = (middle, upper) if self.fits(event, middle) else (lower, middle)
        return lower

    @abstractmethod
    def _fits(self, event: PrivacyEvent, answers: int) -> bool: ...

    @abstractmethod
    def _charge(self, event: PrivacyEvent, answers: int) -> None: ...


class BasicFilter(Filter):
    """Exact sums of epsilon and delta. This is the filter for pure costs, and the ledger keeps it
    on disk.

    **Guarantee.** Everything released through the filter together is (total.epsilon,
    total.delta)-private, fully adaptively. This also holds for Lipschitz privacy, whose epsilon per
    unit of distance adds up in the same way.

    Edge cases: a float stands for its shortest decimal, as the caller wrote it, and decimals are
    added as fractions. A hundred answers of 0.01 fit into 1 exactly.

    Example:
        >>> from reticent.core import AddRemove
        >>> event = PrivacyEvent("label", Guarantee(0.1, 0.0, AddRemove()))
        >>> budget = BasicFilter(Guarantee(1.0, 1e-9, AddRemove()))
        >>> budget.spend(event, 7)
        >>> budget.largest(event)
        3

    Utility:
        Exact sums: the tenth answer of 0.1 still fits into 1. Gaussian noise is better off with
        ``RdpFilter``.

    Runtime:
        O(1) a charge, 0.03 ms on one core (benchmarks/runtimes.py).

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294 (basic composition is a valid privacy filter).

    See Also:
        reticent.accounting.RdpFilter: Rényi sums.
        reticent.ledger.Ledger: for many processes, on disk.
    """

    def __init__(self, total: Guarantee) -> None:
        super().__init__(total)
        self.epsilon = Fraction(0)
        self.delta = Fraction(0)

    def _fits(self, event: PrivacyEvent, answers: int) -> bool:
        epsilon, delta = _exact(event.guarantee.epsilon), _exact(event.guarantee.delta)
        return self.epsilon + answers * epsilon <= _exact(
            self.total.epsilon
        ) and self.delta + answers * delta <= _exact(self.total.delta)

    def _charge(self, event: PrivacyEvent, answers: int) -> None:
        self.epsilon += answers * _exact(event.guarantee.epsilon)
        self.delta += answers * _exact(event.guarantee.delta)


class RdpFilter(Filter):
    """Sums of Rényi divergences. For Gaussian noise and for many small costs this filter lets
    several times more answers through.

    **Guarantee.** Everything released through the filter together is (total.epsilon,
    total.delta)-differentially private, fully adaptively, whatever order the run ends on.

    At one order a, spending at most B(a) in sum is (a, B(a))-RDP although costs are chosen
    adaptively. This converts to (epsilon, delta). With several orders a run may continue while
    *any* order has room. Which one is left at the end depends on the released answers, a choice
    that the theorem for one order does not cover. Split the outcomes by the order they end on. Each
    part is an event of the single-order run, so the deltas of the orders *add*. Each therefore gets
    delta / len(orders).

    Args:
        total: delta above 0, kind differential privacy.
        orders: Rényi orders above 1, fixed before anything is released. Few well-placed ones are
            better than many.

    **Differs from the paper**: several orders, and the split of delta over them.

    Example:
        >>> from reticent.accounting import GaussianCost
        >>> from reticent.core import AddRemove
        >>> event = PrivacyEvent("gaussian", Guarantee(0.5, 1e-5, AddRemove()), GaussianCost(20.0))
        >>> RdpFilter(Guarantee(2.5, 1e-5, AddRemove()), orders=[6.0, 9.0, 12.0]).largest(
        ...     event
        ... ) > 100
        True

    Utility:
        The same as Rényi accounting of events fixed in advance, at a delta divided by the number of
        orders.

    Runtime:
        O(orders) a charge, 0.04 ms with one order on one core (benchmarks/runtimes.py).

    References:
        - Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
          arXiv:2008.11193 (the Rényi filter of one order).
        - Lécuyer (2021), "Practical privacy filters and odometers with Rényi differential privacy
          and applications to differentially private deep learning", arXiv:2103.01379 (the same,
          independently).
        - Canonne, Kamath and Steinke (2020), "The discrete Gaussian for differential privacy",
          arXiv:2004.00010, proposition 12 (conversion).

    See Also:
        reticent.accounting.BasicFilter: sums of epsilon and delta.
        reticent.accounting.RdpAccountant: events fixed in advance.
    """

    def __init__(self, total: Guarantee, orders: Sequence[float]) -> None:
        super().__init__(total)
        if total.kind is not GuaranteeKind.DIFFERENTIAL_PRIVACY:
            raise IncompatibleGuarantees(
                f"Rényi costs are differential privacy, got kind={total.kind.value!r}"
            )
        if total.delta == 0:
            raise InvalidParameter(
                "delta=0: a Rényi filter needs a total with delta above 0; use BasicFilter"
            )
        self._spent = RdpAccountant(total.adjacency, orders)
        alphas = self._spent.orders
        share = total.delta / alphas.size
        self.budget: Array = (
            total.epsilon - np.log1p(-1 / alphas) + np.log(share * alphas) / (alphas - 1)
        )
        """Rényi budget B(a) per order, shape (k,). Orders with a negative budget never have
        room.
        """
        if not np.any(self.budget > 0):
            raise InvalidParameter(
                f"no order in {alphas.tolist()} has room for {total.describe()}; add larger orders"
            )

    @property
    def room(self) -> Array:
        """Budget left at each order, shape (k,)."""
        return np.asarray(self.budget - self._spent.rdp)

    def _fits(self, event: PrivacyEvent, answers: int) -> bool:
        return bool(
            np.any(self._spent.rdp + answers * _curve(event, self._spent.orders) <= self.budget)
        )

    def _charge(self, event: PrivacyEvent, answers: int) -> None:
        self._spent.compose(event, answers)


def _exact(number: float) -> Fraction:
    return Fraction(repr(number))


def _curve(event: PrivacyEvent, orders: Array) -> Array:
    """Return the Rényi divergences of one answer. Refuse a cost that has none."""
    if any(delta > 0 for delta in _stated_deltas(event)):
        raise IncompatibleGuarantees(
            f"{event.mechanism}: only (epsilon, delta={event.guarantee.delta:g}) is stated, "
            "which has no Rényi divergence; use BasicFilter"
        )
    return RdpAccountant(event.guarantee.adjacency, orders.tolist()).compose(event).rdp


def _stated_deltas(event: PrivacyEvent) -> list[float]:
    return [cost.delta for cost, _ in elementary_costs(event) if isinstance(cost, StatedCost)]
