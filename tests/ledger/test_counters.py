"""A plan's queries are counted in the ledger: once, for all processes, through crashes."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import (
    BudgetExceeded,
    CorruptLedger,
    LedgerUnavailable,
)
from reticent.ledger import Ledger, PlanCounter
from tests.together import in_forks

WHERE = Scope(subject="ward 7")
PAID: dict[str, Any] = {
    "scope": WHERE,
    "event": PrivacyEvent("plan", Guarantee(1.0, 0.0, AddRemove(data_set="ward 7"))),
}


def opened(ledger: Ledger, name: str = "plan", queries: int = 20, answers: int = 20) -> PlanCounter:
    if not ledger.report(WHERE).budgets:
        ledger.grant(WHERE, PAID["event"].guarantee)
    return PlanCounter.open(
        ledger, name, booked="1a2b3c4d/7", queries=queries, answers=answers, **PAID
    )


def test_what_is_taken_is_gone_for_everybody(ledger: Ledger) -> None:
    first, second = opened(ledger), opened(ledger)
    assert first.take(12) == 12
    with pytest.raises(
        BudgetExceeded, match="requested 9, 12 of 20 asked and 12 of 20 labels given out"
    ):
        second.take(9)
    assert second.take(8) == 8
    assert second.remaining == 0
    assert PlanCounter.find(ledger, "plan", **PAID) == second
    assert PlanCounter.find(ledger, "another", **PAID) is None


def test_a_second_opening_joins_with_the_numbers_of_the_first(ledger: Ledger) -> None:
    opened(ledger).take(3)
    again = PlanCounter.open(
        ledger, "plan", booked="ffffffff/9", queries=1000, answers=1000, **PAID
    )
    assert (again.booked, again.queries, again.answers, again.asked) == ("1a2b3c4d/7", 20, 20, 3)


def test_answers_that_were_not_given_out_come_back(ledger: Ledger) -> None:
    counter = opened(ledger, answers=5)
    assert counter.take(4) == 4
    counter.settle(unused=3)
    assert (counter.asked, counter.answered) == (4, 1)
    assert counter.take(10) == 4
    assert counter.remaining == 0
    with pytest.raises(BudgetExceeded, match="at most 0 more"):
        counter.take(1)


def test_the_database_itself_counts_no_further(ledger: Ledger) -> None:
    opened(ledger)
    with pytest.raises(LedgerUnavailable), ledger.store.write() as connection:
        connection.execute(sa.text("UPDATE plan_counts SET asked = 21"))


def test_a_count_that_is_gone_answers_nothing(ledger: Ledger) -> None:
    counter = opened(ledger)
    with ledger.store.write() as connection:
        connection.execute(sa.text("DELETE FROM plan_counts"))
    with pytest.raises(CorruptLedger):
        counter.take(1)


def _take_one_by_one(url: str) -> int:
    taken = 0
    with closing(Ledger.open(url)) as ledger:
        counter = opened(ledger)
        try:
            while True:
                taken += counter.take(1)
        except BudgetExceeded:
            return taken


def test_eight_processes_take_twenty_queries_of_twenty(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL").close()
    assert sum(in_forks(*[partial(_take_one_by_one, str(tmp_path / "ledger.db"))] * 8)) == 20


def test_an_old_copy_gives_no_query_back(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.db", tmp_path / "elsewhere" / "ledger.anchor"
    anchor.parent.mkdir()
    with closing(Ledger.create(path, anchor=anchor)) as ledger:
        assert opened(ledger).take(2) == 2
    before = path.read_bytes()
    with closing(Ledger.open(path, anchor=anchor)) as ledger:
        assert opened(ledger).take(18) == 18
        assert ledger.verify().problems == ()
        (budget,) = ledger.report(WHERE).budgets
        assert (
            budget.spent_epsilon == 0
        )  # the plan itself was paid for elsewhere; its queries cost nothing
    path.write_bytes(before)
    with pytest.raises(LedgerUnavailable, match="is older than its anchor"):
        Ledger.open(path, anchor=anchor)
