"""Requests that wait together share a transaction, and one that refuses harms no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput, LedgerUnavailable
from reticent.ledger import Ledger, tree
from reticent.ledger.chain import Page
from reticent.ledger.charging import charge_one
from reticent.service.keys import KeyStore
from reticent.service.writer import GroupWriter

EVENT = PrivacyEvent("test", Guarantee(0.1, 0.0, AddRemove()))


@pytest.fixture
def ledger(ledger_url: str, tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(ledger_url, synchronous="NORMAL", anchor=tmp_path / "anchors")
    made.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    yield made
    made.close()


def charge(ledger: Ledger, subject: str = "s") -> Any:
    return charge_one(ledger._commit, Scope("p", subject), EVENT, answers=1, slack_delta=0.0)


def test_requests_that_wait_together_share_one_transaction(ledger: Ledger) -> None:
    writer = GroupWriter(ledger)
    transactions = []
    post = ledger._transaction
    held, let_go = threading.Event(), threading.Event()

    def counting(work: Any, *how: bool) -> Any:
        transactions.append(work)
        if len(transactions) == 1:
            held.set()
            assert let_go.wait(30)
        return post(work, *how)

    ledger._transaction = counting  # type: ignore[method-assign, assignment]
    with ThreadPoolExecutor(14) as threads:
        first = threads.submit(writer.post, charge(ledger).work)
        assert held.wait(30)
        more = [threads.submit(writer.post, charge(ledger).work) for _ in range(11)]
        refused = threads.submit(writer.post, charge(ledger, "nobody").work)
        while writer._waiting.qsize() < 12:
            pass
        let_go.set()
        outcomes = [one.result() for one in (first, *more)]
        with pytest.raises(BudgetExceeded, match="no budget"):
            refused.result()
    writer.close()
    assert len(transactions) == 2
    charged = [one for one in outcomes if hasattr(one, "committing")]
    assert len(charged) == 10  # all that the budget has room for
    assert len({one.position for one in charged}) == 10
    with pytest.raises(BudgetExceeded):
        charge(ledger).result(next(one for one in outcomes if one not in charged))
    assert ledger.report().budgets[0].left_epsilon == 0
    assert ledger.verify().ok
    with pytest.raises(LedgerUnavailable, match="stopping"):
        writer.post(charge(ledger).work)


def test_a_work_that_refuses_after_it_wrote_undoes_all(ledger: Ledger) -> None:
    def late(page: Page) -> None:
        charge(ledger).work(page)
        raise InvalidInput("too late")

    before = ledger.anchor()
    with pytest.raises(InvalidInput, match="too late"):
        ledger.post_together([charge(ledger).work, late])
    assert ledger.anchor() == before
    assert ledger.report().budgets[0].spent_epsilon == 0


def test_a_row_that_the_tree_cannot_take_undoes_all(ledger: Ledger) -> None:
    ledger.reserve(Scope("p", "s"), EVENT, answers=1)
    before = ledger.anchor()
    with ledger.store.write() as connection:
        connection.exec_driver_sql("UPDATE nodes SET content = substr(content, 2)")

    def forgetful(page: Page) -> Any:
        return charge(ledger).work(page, lambda _: tree._known.clear())  # its row is written

    with pytest.raises(CorruptLedger):
        ledger.post_together([forgetful])
    with pytest.raises(CorruptLedger):
        KeyStore(ledger).create("p", bundles=["*"], subjects=["s"])
    with ledger.store.read() as connection:
        read = connection.exec_driver_sql
        assert read("SELECT spent_epsilon FROM budgets").scalar() == 100_000
        assert read("SELECT count(*) FROM api_keys").scalar() == 0
    assert ledger.anchor() == before


def test_a_transaction_that_fails_fails_for_all_that_are_in_it(ledger: Ledger) -> None:
    def broken(page: Page) -> None:
        raise ZeroDivisionError

    writer = GroupWriter(ledger)
    with pytest.raises(ZeroDivisionError):
        writer.post(broken)
    assert hasattr(writer.post(charge(ledger).work), "committing")  # and it goes on
    writer.close()
    assert ledger.report().budgets[0].spent_epsilon == 100_000


def test_only_what_charges_moves_the_anchor(ledger: Ledger) -> None:
    writer = GroupWriter(ledger)
    anchor = ledger.anchor_file()
    one = charge(ledger)
    (done,) = writer.post_each([one.work])
    paid = one.result(done)
    after = anchor.read()
    assert after is not None
    assert after.seq == paid.position
    assert writer.post_each([paid.committing("receipt-1")], keep=False) == [None]
    assert anchor.read() == after  # a copy that lost commits alone gives no budget back
    assert ledger.anchor().seq == after.seq + 1
    other = charge(ledger)
    other.result(*writer.post_each([other.work]))
    assert anchor.read() == ledger.anchor()
    writer.close()
    ledger.check_anchor()
