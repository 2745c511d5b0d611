from __future__ import annotations

from collections.abc import Callable

import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Policy, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, UnknownName
from reticent.ledger import Ledger

EventMaker = Callable[..., PrivacyEvent]


@pytest.mark.parametrize(
    ("budget", "request_", "covered"),
    [
        (Scope(subject="s"), Scope("p", "s", "b"), True),
        (Scope(principal="p", subject="s"), Scope("p", "s"), True),
        (Scope(principal="p"), Scope("q", "s"), False),
        (Scope(principal="p", subject="s"), Scope(principal="p"), False),
        (Scope(bundle="b"), Scope("p", "s", "b"), True),
    ],
)
def test_covers(budget: Scope, request_: Scope, covered: bool) -> None:
    assert budget.covers(request_) is covered


@pytest.mark.parametrize("wrong", ["a\nb", " a", "a ", "x" * 201, "a\x00", 7, None])
def test_bad_names_are_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="subject: expected"):
        Scope(subject=wrong)


def test_a_scope_names_something() -> None:
    with pytest.raises(InvalidInput, match="at least one"):
        Scope()
    assert Scope(principal="p", bundle="b").describe() == "principal=p, bundle=b"


def test_what_is_stored_is_shown_whatever_it_is() -> None:
    assert Scope.stored("", "a\u0301\n", "").subject == "a\u0301\n"


def test_a_policy_is_text_and_back() -> None:
    policy = Policy(["bundle", "principal", "bundle"])
    assert (policy.required, policy.text) == (("principal", "bundle"), "principal,bundle")
    assert Policy.stored(policy.text) == policy
    assert Policy.stored(Policy(()).text) == Policy(())
    assert Policy("subject") == Policy(("subject",))
    with pytest.raises(UnknownName, match="required='person'"):
        Policy(["person"])


def test_a_request_that_leaves_its_subject_out_is_refused(ledger_url: str, make_event: EventMaker) -> None:
    """A budget for the client is there too, which would pay for it and leave the person's budget untouched."""
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
    for look_alike in ("Zoe", "\u0396\u03bf\u03b5", "zo\u00eb"):  # legal names by themselves: no budget names them
        with pytest.raises(BudgetExceeded, match=f"no budget names subject={look_alike}, as this ledger requires"):
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
    for change, expected in (
        ("required = ''", "another policy, total or gap"),
        ("required = '', first_required = ''", "entry 1 does not match"),
    ):
        book.grant(Scope(subject="s"), Guarantee(1.0, 0.0, AddRemove()))
        with book.store.write() as connection:
            connection.exec_driver_sql(f"UPDATE head SET {change}")
        assert any(expected in problem for problem in book.verify().problems)
    book.close()
