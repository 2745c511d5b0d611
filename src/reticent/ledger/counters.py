"""The used part of a prepaid plan, counted in the ledger for all its processes and copies.

A plan is charged once, as a whole (``Ledger.reserve``). Its queries are counted and cost nothing,
so the count stands in a table of its own beside the entries. It goes up, durably, before anything
is computed. In the same transaction an entry without a cost says how many queries were asked. It
moves the ledger's anchor: a copy from before is refused and gives no query back. The count is a
row of the ledger's tree, so a count that was changed by other means is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import count
from reticent.core.errors import BudgetExceeded, InvalidInput, LedgerUnavailable, ReticentError
from reticent.core.scopes import Scope
from reticent.ledger.chain import Page, read_tip
from reticent.ledger.ledger import Ledger
from reticent.ledger.schema import LONGEST_PLAN_NAME, plan_counts
from reticent.ledger.tree import PLANS

T = TypeVar("T")


@dataclass
class PlanCounter:
    """The durable count of one prepaid plan.

    **Guarantee.** Over all processes and copies that count by it, at most ``queries`` queries are
    asked and at most ``answers`` answers given, through crashes: both counts go up before anything
    is computed.

    Attributes:
        ledger: the ledger that holds the count.
        name: name of the plan.
        scope, event: scope and event of the plan's charge.
        booked: the ledger's reservation that paid for the plan.
        queries, answers: the most that may be asked and given.
        asked, answered: counts at the last look.

    Example:
        >>> import tempfile
        >>> from reticent.core import AddRemove, Guarantee
        >>> with (
        ...     tempfile.TemporaryDirectory() as folder,
        ...     tempfile.TemporaryDirectory() as elsewhere,
        ... ):
        ...     ledger = Ledger.create(f"{folder}/budgets.db", anchor=elsewhere)
        ...     where = Scope(subject="ward 7")
        ...     plan = PrivacyEvent("plan", Guarantee(1.0, 0.0, AddRemove(data_set="ward 7")))
        ...     _ = ledger.grant(where, plan.guarantee)
        ...     paid = ledger.reserve(where, plan, answers=1)
        ...     counter = PlanCounter.open(
        ...         ledger, "plan-7", scope=where, event=plan, booked=paid.id, queries=10, answers=4
        ...     )
        ...     granted = counter.take(6)  # six queries may give out four answers
        ...     counter.settle(unused=3)
        ...     again = PlanCounter.find(ledger, "plan-7", scope=where, event=plan)
        ...     ledger.close()
        >>> granted, again.asked, again.answered, again.remaining
        (4, 6, 1, 4)

    References:
        - Rogers, Roth, Ullman and Vadhan (2016), "Privacy odometers and filters: pay-as-you-go
          composition", arXiv:1605.08294, filters, which a plan whose cost is fixed beforehand does
          without.

    See Also:
        reticent.ledger.Ledger: charges the plan.
        reticent.accounting.private_knn_total: what a plan costs.
    """

    ledger: Ledger
    name: str
    scope: Scope
    event: PrivacyEvent
    booked: str
    queries: int
    answers: int
    asked: int = 0
    answered: int = 0

    @classmethod
    def open(
        cls,
        ledger: Ledger,
        name: str,
        *,
        scope: Scope,
        event: PrivacyEvent,
        booked: str,
        queries: int,
        answers: int,
    ) -> Self:
        """Return the count called ``name``, with its own numbers if it is there, or a new one.

        Raises:
            InvalidInput, InvalidParameter: a name of no or more than 64 characters, or limits below
                1.
            LedgerUnavailable: the ledger could not be written.
        """
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_PLAN_NAME:
            raise InvalidInput(
                f"name: expected 1 to {LONGEST_PLAN_NAME} characters, got {type(name).__name__}"
            )
        limits = {
            "queries": count(queries, name="queries"),
            "answers": count(answers, name="answers"),
        }

        def make(page: Page) -> dict[str, Any]:
            row = _row(page, name)
            if row is None:
                row = {"name": name, "booked": booked, "asked": 0, "answered": 0, **limits}
                page.connection.execute(plan_counts.insert().values(row))
                page.tree.put({PLANS.key(name): PLANS.digest(row)})
                page.note(f"plan of {booked} is counted"[:1000])
            return row

        row = _done(ledger.post_together([make]))
        return cls(ledger, scope=scope, event=event, **row)

    @classmethod
    def find(cls, ledger: Ledger, name: str, *, scope: Scope, event: PrivacyEvent) -> Self | None:
        """Return the count called ``name``, or None.

        Raises:
            LedgerUnavailable: the ledger cannot be read.
        """
        with ledger.store.read() as connection:
            row = _row(Page.of(connection, read_tip(connection)), name)
        return None if row is None else cls(ledger, scope=scope, event=event, **row)

    @property
    def remaining(self) -> int:
        """The queries that could still be asked at the last look, and 0 once all answers are
        given out.
        """
        return self.queries - self.asked if self.answered < self.answers else 0

    def take(self, queries: int) -> int:
        """Count ``queries`` queries as asked, and as many answers as they may give out.

        Both are durable once this returns.

        Returns:
            The number of answers that these queries may give out: as many as there are queries, or
            what is left. ``settle`` gives back those that were not used.

        Raises:
            BudgetExceeded: more than are left. Nothing was counted.
            InvalidInput, IncompatibleGuarantees: the plan could not be charged to this scope.
                Nothing was counted.
            LedgerUnavailable: the ledger could not be written, or is older than its anchor. Nothing
                may be released.
        """
        if queries == 0:
            return 0

        def count_up(page: Page) -> int:
            self._look(page)
            if queries > self.remaining:
                raise BudgetExceeded(
                    f"queries: requested {queries}, {self.asked} of {self.queries} asked and "
                    f"{self.answered} of {self.answers} "
                    f"labels given out or being computed; at most {self.remaining} more may be "
                    "asked under this plan"
                )
            granted = min(queries, self.answers - self.answered)
            self._write(page, asked=self.asked + queries, answered=self.answered + granted)
            return granted

        return self.ledger.post_use(self.scope, self.event, answers=queries, work=count_up)

    def settle(self, *, unused: int) -> None:
        """Give back answers that ``take`` granted and that were not given out.

        Raises:
            LedgerUnavailable: the ledger could not be written. They stay counted.
        """

        def give_back(page: Page) -> None:
            self._look(page)
            self._write(page, asked=self.asked, answered=self.answered - unused)
            page.note(f"plan of {self.booked}: {unused} answers were not used")

        if unused:
            _done(self.ledger.post_together([give_back]))

    def _look(self, page: Page) -> None:
        row = _row(page, self.name)
        if row is None:
            raise LedgerUnavailable(
                f"{self.ledger.store.name}: has no count of plan {self.name!r}; use the one "
                "that was charged"
            )
        self.asked, self.answered = row["asked"], row["answered"]

    def _write(self, page: Page, *, asked: int, answered: int) -> None:
        where = plan_counts.c.name == self.name
        counts = {"asked": asked, "answered": answered}
        page.connection.execute(plan_counts.update().where(where).values(counts))
        limits = {"booked": self.booked, "queries": self.queries, "answers": self.answers}
        row = {"name": self.name, **limits, **counts}
        page.tree.put({PLANS.key(self.name): PLANS.digest(row)})
        self.asked, self.answered = asked, answered


def _done(found: list[T | ReticentError]) -> T:
    """Return the result of the one work of a transaction.

    Raises:
        ReticentError: the work refused.
    """
    (done,) = found
    if isinstance(done, ReticentError):
        raise done
    return done


def _row(page: Page, name: str) -> dict[str, Any] | None:
    """Return the row of a plan, as the chain knows it."""
    query = sa.select(plan_counts).where(plan_counts.c.name == name)
    found = page.connection.execute(query).mappings().first()
    page.tree.check(PLANS, PLANS.key(name), found)
    return None if found is None else dict(found)
