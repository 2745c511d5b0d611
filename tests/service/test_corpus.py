"""A ledger as it stands after a year, made by the public interface, is opened elsewhere and spent
on.

It holds what a real one does: grants, commits, open entries, a lease, the count of a prepaid plan,
keys, answers that are kept and answers that were removed. Ledgers of every schema that was ever
released belong through ``spend_on``; so far there is one schema, and its ledger is made here.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reticent import load
from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import AnswerLost, BudgetExceeded
from reticent.ledger import LedgerReport, PlanCounter
from reticent.ledger.location import Location
from reticent.service.core import Service
from reticent.service.retention import prune
from tests.service.conftest import RECORDS, Place
from tests.service.test_answering import COST, ask

CLIENT = Scope("acme", RECORDS)
ONE = PrivacyEvent("label", Guarantee(0.25, 0.0, AddRemove(1, data_set=RECORDS)))
ROWS = [[0.3, 0.2], [-0.3, -0.2]]
YEAR = 365 * 86_400.0


@dataclass(frozen=True)
class Contents:
    """What a ledger held when it was put away.

    Attributes:
        report: how it stood.
        receipts: of everything that was released and committed, as clients keep them.
        kept: an answer that the service still has, to the request "kept"; that to the request
            "gone" was removed.
        opened: how many charges have no receipt.
    """

    report: LedgerReport
    receipts: tuple[dict[str, Any], ...]
    kept: bytes
    opened: int


def fill(place: Place) -> Contents:
    """Books a bit of everything."""
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    ask(service, key, "gone")
    removed = prune(service.ledger, older_than=YEAR, clock=lambda: time.time() + 2 * YEAR)
    assert removed.answers == 1
    kept = ask(service, key, "kept")
    service.close()
    ledger = place.open()
    labels = load(place.bundles / "labels")
    released = labels.release(ROWS, ledger=ledger, scope=CLIENT)
    patients = load(place.bundles / "rows")
    scopes = [Scope("acme", f"patient-{number}") for number in (1, 2)]
    of_each = patients.release(ROWS, ledger=ledger, scope=scopes)
    ledger.reserve(CLIENT, ONE, answers=3)  # whoever made it was killed
    ledger.reserve_each(scopes, patients.price(patients.checked(ROWS[:1])).event)
    with ledger.lease(CLIENT, ONE, answers=8) as lease:
        lease.reserve(answers=2).commit("receipt of a lease")
    plan = ledger.reserve(CLIENT, ONE, answers=1)
    counter = PlanCounter.open(
        ledger, "neighbours", scope=CLIENT, event=ONE, booked=plan.id, queries=10, answers=4
    )
    counter.take(6)
    counter.settle(unused=3)
    plan.commit("receipt of a plan")
    receipts = (released.receipt.to_dict(), of_each.receipt.to_dict())
    found = Contents(ledger.report(), receipts, kept, opened=3)
    ledger.close()
    return found


def spend_on(place: Place, contents: Contents) -> None:
    """Opens a ledger, finds in it what it held, and charges everything that can be charged."""
    ledger = place.open()
    before = ledger.report()
    assert before == contents.report
    assert sum(one.reservations - one.commits for one in before.accounts) == contents.opened
    anchor = contents.report.anchor
    assert ledger.verify(anchor=anchor, receipts=contents.receipts).problems == ()
    counter = PlanCounter.find(ledger, "neighbours", scope=CLIENT, event=ONE)
    assert counter is not None
    assert (counter.asked, counter.answered, counter.remaining) == (6, 1, 4)
    assert counter.take(4) == 3
    with pytest.raises(BudgetExceeded):
        counter.take(1)
    labels = load(place.bundles / "labels")
    again = labels.release(ROWS, ledger=ledger, scope=CLIENT).receipt
    ledger.grant(Scope(subject="a new record"), Guarantee(1.0, 0.0, AddRemove()))
    ledger.close()
    service = Service(place.settings())
    key = service.keys.find(place.secret)
    assert ask(service, key, "kept") == contents.kept
    with pytest.raises(AnswerLost):
        ask(service, key, "gone")
    assert ask(service, key, "another") != contents.kept
    service.close()
    ledger = place.open()
    spent = {one.scope: one.spent_epsilon for one in ledger.report().budgets}
    records = Scope(subject=RECORDS)
    (stood,) = (one.spent_epsilon for one in before.budgets if one.scope == records)
    assert spent[records] == stood + 2 * COST
    assert ledger.verify(anchor=anchor, receipts=[*contents.receipts, again]).problems == ()
    ledger.close()


def test_a_ledger_is_opened_elsewhere_and_spent_on(any_place: Place, tmp_path: Path) -> None:
    contents = fill(any_place)
    place = any_place
    location = Location.of(place.ledger)
    if location.is_sqlite:
        moved = tmp_path / "elsewhere" / "ledger.db"
        moved.parent.mkdir()
        shutil.copy(location.path, moved)
        place = replace(place, ledger=f"sqlite:///{moved}?anchor={location.anchor}")
    spend_on(place, contents)
