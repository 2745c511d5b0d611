"""Works of one transaction: one that refuses harms no other, and one that fails undoes all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput
from reticent.ledger import Ledger, tree
from reticent.ledger.chain import Page
from reticent.ledger.charging import charge_one
from reticent.service.keys import KeyStore

EVENT = PrivacyEvent("test", Guarantee(0.1, 0.0, AddRemove()))


@pytest.fixture
def ledger(ledger_url: str, tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(ledger_url, synchronous="NORMAL", anchor=tmp_path / "anchors")
    made.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    yield made
    made.close()


def charge(ledger: Ledger, subject: str = "s") -> Any:
    return charge_one(ledger._commit, Scope("p", subject), EVENT, answers=1, slack_delta=0.0)


def test_each_sees_what_was_charged_before_it_and_one_that_refuses_harms_none(
    ledger: Ledger,
) -> None:
    works = [charge(ledger).work for _ in range(12)]
    *outcomes, refused = ledger.post_together([*works, charge(ledger, "nobody").work])
    assert isinstance(refused, BudgetExceeded)
    charged: list[Any] = [one for one in outcomes if hasattr(one, "committing")]
    assert len({one.position for one in charged}) == 10  # all that the budget has room for
    with pytest.raises(BudgetExceeded):
        charge(ledger).result(next(one for one in outcomes if one not in charged))
    assert ledger.report().budgets[0].left_epsilon == 0
    assert ledger.verify().ok


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

    with pytest.raises(ZeroDivisionError):
        ledger.post_together([charge(ledger).work, broken])
    (done,) = ledger.post_together([charge(ledger).work])
    assert hasattr(done, "committing")  # and it goes on
    assert ledger.report().budgets[0].spent_epsilon == 100_000


def test_only_what_charges_moves_the_anchor(ledger: Ledger) -> None:
    anchor = ledger.anchor_file()
    one = charge(ledger)
    (done,) = ledger.post_together([one.work])
    paid = one.result(done)
    after = anchor.read()
    assert after is not None
    assert after.seq == paid.position
    assert ledger.post_together([paid.committing("receipt-1")], keep=False) == [None]
    assert anchor.read() == after  # a copy that lost commits alone gives no budget back
    assert ledger.anchor().seq == after.seq + 1
    other = charge(ledger)
    other.result(*ledger.post_together([other.work]))
    assert anchor.read() == ledger.anchor()
    ledger.check_anchor()
