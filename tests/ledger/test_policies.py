from __future__ import annotations

from collections.abc import Callable

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Policy, Scope
from reticent.core.errors import BudgetExceeded, CorruptLedger, InvalidInput
from reticent.ledger import Ledger

EventMaker = Callable[..., PrivacyEvent]


def test_a_request_that_leaves_its_subject_out_is_refused(
    ledger_url: str, make_event: EventMaker
) -> None:
    """A budget for the client is there too, which would pay for it and leave the person's budget
    untouched.
    """
    book = Ledger.create(ledger_url, synchronous="NORMAL")
    book.grant(Scope(principal="acme"), Guarantee(100.0, 0.0, AddRemove()))
    book.grant(Scope(subject="Zo\u00eb"), Guarantee(0.1, 0.0, AddRemove()))
    book.reserve(Scope("acme", "Zo\u00eb"), make_event(), answers=1).commit("receipt")
    before = book.report().anchor
    with pytest.raises(InvalidInput, match="expected a subject, which this ledger requires"):
        book.reserve(Scope("acme"), make_event(), answers=1)
    with pytest.raises(InvalidInput, match="expected a subject"):
        book.reserve_each([Scope("acme", "Zo\u00eb"), Scope("acme")], make_event())
    with pytest.raises(InvalidInput, match="expected a subject"):
        book.preview(Scope("acme"), make_event(), answers=1)
    for look_alike in (
        "Zoe",
        "\u0396\u03bf\u03b5",
        "zo\u00eb",
    ):  # legal names by themselves: no budget names them
        with pytest.raises(
            BudgetExceeded, match=f"no budget names subject={look_alike}, as this ledger requires"
        ):
            book.reserve(Scope("acme", look_alike), make_event(), answers=1)
        with pytest.raises(BudgetExceeded, match=f"no budget names subject={look_alike}"):
            book.reserve_each([Scope("acme", look_alike)], make_event())
        with pytest.raises(BudgetExceeded, match=f"no budget names subject={look_alike}"):
            book.preview(Scope("acme", look_alike), make_event(), answers=1)
    assert book.report().anchor == before
    assert book.policy == Policy(["subject"])
    assert book.set_policy(()) == book.policy == book.report().policy
    book.reserve(Scope("acme"), make_event(), answers=1)
    assert book.set_policy(["principal", "subject"]).text == "principal,subject"
    with pytest.raises(InvalidInput, match="expected a principal"):
        book.reserve(Scope(subject="Zo\u00eb"), make_event(), answers=1)
    assert book.verify().problems == ()
    book.close()


def test_a_policy_that_was_changed_by_hand_is_found(ledger_url: str) -> None:
    book = Ledger.create(ledger_url, synchronous="NORMAL")
    book.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    for change, expected in (
        ("required = ''", "another policy, total or gap"),
        ("required = '', first_required = ''", "entry 1 does not match"),
    ):
        with book.store.write() as connection:
            connection.exec_driver_sql(f"UPDATE head SET {change}")
        assert any(expected in problem for problem in book.verify().problems)
        with pytest.raises(CorruptLedger):
            book.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
    book.close()
