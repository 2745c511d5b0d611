"""A plan's queries are counted in the ledger: once, for all processes, through crashes."""

from __future__ import annotations

import multiprocessing
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from reticent.core.errors import BudgetExceeded, InvalidInput, InvalidParameter, LedgerUnavailable
from reticent.ledger import Ledger, PlanCounter


def opened(ledger: Ledger, name: str = "plan", queries: int = 20, answers: int = 20) -> PlanCounter:
    return PlanCounter.open(ledger, name, booked="1a2b3c4d/7", queries=queries, answers=answers)


def test_what_is_taken_is_gone_for_everybody(ledger: Ledger) -> None:
    first, second = opened(ledger), opened(ledger)
    assert first.take(12) == 12
    with pytest.raises(BudgetExceeded, match="requested 9, 12 of 20 asked and 12 of 20 labels given out"):
        second.take(9)
    assert second.take(8) == 8
    assert second.remaining == 0
    assert PlanCounter.find(ledger, "plan") == second
    assert PlanCounter.find(ledger, "another") is None


def test_a_second_opening_joins_with_the_numbers_of_the_first(ledger: Ledger) -> None:
    opened(ledger).take(3)
    again = PlanCounter.open(ledger, "plan", booked="ffffffff/9", queries=1000, answers=1000)
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


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": ""}, InvalidInput),
        ({"name": "x" * 65}, InvalidInput),
        ({"name": 7}, InvalidInput),
        ({"queries": 0}, InvalidParameter),
    ],
)
def test_what_is_no_plan_is_refused(ledger: Ledger, change: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        PlanCounter.open(ledger, **{"name": "plan", "booked": "1a2b3c4d/7", "queries": 2, "answers": 2, **change})  # type: ignore[arg-type]


def test_a_count_that_is_gone_answers_nothing(ledger: Ledger) -> None:
    counter = opened(ledger)
    with ledger.store.write() as connection:
        connection.execute(sa.text("DELETE FROM plan_counts"))
    with pytest.raises(LedgerUnavailable, match="has no count of plan"):
        counter.take(1)


def _take_one_by_one(url: str, results: multiprocessing.Queue) -> None:  # type: ignore[type-arg]
    taken = 0
    with closing(Ledger.open(url)) as ledger:
        counter = opened(ledger)
        try:
            while True:
                taken += counter.take(1)
        except BudgetExceeded:
            results.put(taken)


def test_eight_processes_take_twenty_queries_of_twenty(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger.db", synchronous="NORMAL").close()
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=_take_one_by_one, args=(str(tmp_path / "ledger.db"), results)) for _ in range(8)]
    for worker in workers:
        worker.start()
    assert sum(results.get() for _ in workers) == 20
    for worker in workers:
        worker.join()
