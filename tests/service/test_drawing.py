"""One draw for many requests: each gets its own rows and receipt, and nothing that was not paid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import InvalidInput
from reticent.core.releases import Receipt, Release
from reticent.ledger import Ledger
from reticent.service.catalogue import ServedBundle
from reticent.service.drawing import Charged, Question, cost_of, drawn, drawn_with
from reticent.tables.frames import NamedRows

ONE = Guarantee(0.25, 0.0, AddRemove())
EVENT = PrivacyEvent("echo", ONE)


class Echo:
    """Releases its input's first column, and withholds rows below 0; counts its draws."""

    identity = "echo"

    def __init__(self) -> None:
        self.draws: list[int] = []
        self.event = EVENT
        self.more = 0

    def answer(self, inputs: Any, ledger: Ledger, scope: Scope | list[Scope]) -> Release:
        rows = np.asarray(inputs, dtype=np.float64)
        if not np.isfinite(rows).all():
            raise InvalidInput("rows: expected finite numbers")
        if isinstance(scope, list):
            assert len(scope) == len(rows)
            paid = ledger.reserve_each(scope, self.event)
        else:
            paid = ledger.reserve(scope, self.event, answers=len(rows) + self.more)
        self.draws.append(len(rows))
        receipt = Receipt("echo", ONE, len(rows), "echo", "none", "none", False, paid.id)
        paid.commit(receipt.identifier)
        return Release(rows[:, 0], rows[:, 0] < 0, receipt, ("label",))


def question(bundle: Any, rows: Sequence[Sequence[float]], scope: Any, *names: str) -> Question:
    table = np.array(rows, dtype=np.float64)
    return Question(bundle, NamedRows(table, names) if names else table, scope)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(tmp_path / "l.db", synchronous="NORMAL", anchor=tmp_path / "anchors")
    made.grant(Scope(subject="s"), Guarantee(100.0, 0.0, AddRemove()))
    yield made
    made.close()


def charge(ledger: Ledger, asked: Question) -> Charged:
    cost = cost_of(asked, ledger.store)
    (done,) = ledger.post_together([cost.posting.work])
    return Charged(asked, cost, cost.posting.result(done))


def test_what_a_question_costs_is_known_before_anything_is_drawn(ledger: Ledger) -> None:
    bundle, before = Echo(), ledger.anchor()
    cost = cost_of(question(bundle, [[1.0], [2.0], [3.0]], Scope(subject="s")), ledger.store)
    assert cost.event == EVENT
    with pytest.raises(InvalidInput, match="finite"):
        cost_of(question(bundle, [[np.nan]], Scope(subject="s")), ledger.store)
    assert bundle.draws == []
    assert ledger.anchor() == before
    (done,) = ledger.post_together([cost.posting.work])
    assert cost.posting.result(done).charge.epsilon == 3 * 250_000


@pytest.mark.parametrize("each", [False, True])
def test_every_request_gets_its_own_rows_and_receipt(ledger: Ledger, each: bool) -> None:
    bundle = Echo()
    given = [[[1.0], [-2.0]], [[3.0]], [[4.0], [5.0], [-6.0]]]
    asked = [
        question(bundle, rows, [Scope("p", "s")] * len(rows) if each else Scope("p", "s"))
        for rows in given
    ]
    charged = [charge(ledger, one) for one in asked]
    found = drawn(charged, ledger.store)
    assert bundle.draws == [6]
    for release, rows, paid in zip(found, given, charged, strict=True):
        assert release.values.tolist() == [row[0] for row in rows]
        assert release.withheld.tolist() == [row[0] < 0 for row in rows]
        assert release.columns == ("label",)
        assert release.receipt.answers == len(rows)
        assert release.receipt.booked == paid.reservation.id
        assert release.receipt.position == paid.reservation.position
        assert release.receipt.digest == paid.reservation.digest
    assert len({release.receipt.identifier for release in found}) == 3
    assert len({release.receipt.booked for release in found}) == 3
    for release, paid in zip(found, charged, strict=True):
        ledger.post_together([paid.reservation.committing(release.receipt.identifier)])
    assert ledger.verify(receipts=[release.receipt for release in found]).ok


def test_a_release_that_asks_for_more_than_was_charged_draws_nothing(ledger: Ledger) -> None:
    bundle = Echo()
    charged = charge(ledger, question(bundle, [[1.0]], Scope(subject="s")))
    bundle.more = 1
    with pytest.raises(AssertionError, match="other rows"):
        drawn([charged], ledger.store)
    bundle.more = 0
    bundle.event = PrivacyEvent("echo", replace(ONE, epsilon=0.5))
    with pytest.raises(AssertionError, match="another cost"):
        drawn([charged], ledger.store)
    assert bundle.draws == []


def test_only_questions_of_one_bundle_and_one_form_are_drawn_together() -> None:
    bundle, rows, scope = Echo(), [[1.0, 2.0]], Scope(subject="s")
    forms = [
        question(bundle, rows, scope),
        question(bundle, rows, [scope]),
        question(bundle, rows, scope, "a", "b"),
        question(bundle, rows, scope, "b", "a"),
    ]
    assert len({drawn_with(one) for one in forms}) == 4
    assert drawn_with(forms[2]) == drawn_with(question(bundle, [[3.0, 4.0]], scope, "a", "b"))


def test_columns_keep_their_names(ledger: Ledger, served_bundles: Path) -> None:
    seen = []

    class Named(Echo):
        def answer(self, inputs: Any, ledger: Ledger, scope: Scope | list[Scope]) -> Release:
            seen.append(inputs.columns)
            return super().answer(inputs, ledger, scope)

    bundle = Named()
    scope = Scope("p", "s")
    charged = [charge(ledger, question(bundle, [[float(n), 0.0]], scope, "a", "b")) for n in (7, 8)]
    found = drawn(charged, ledger.store)
    assert set(seen) == {("a", "b")}
    assert [release.values.tolist() for release in found] == [[7.0], [8.0]]


def test_a_bundle_answers_rows_of_many_requests_as_it_answers_each(
    tmp_path: Path, ledger: Ledger
) -> None:
    """At so large an epsilon that the label of every row is certain, the labels are known."""
    from reticent.systems.certified.convex_classifier import ConvexCertifiedClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) * 0.05 + 0.4 * (2 * y[:, None] - 1)
    model = ConvexCertifiedClassifier(epsilon=30.0, classes=["no", "yes"], data_set="certain")
    model.fit(X, np.where(y == 1, "yes", "no")).save(tmp_path / "certain")
    served = ServedBundle.read(tmp_path / "certain", trusted_with=False, trusted_key=None)
    total = Guarantee(1e5, 0.0, model.guarantee.adjacency)
    ledger.grant(Scope(subject="certain"), total)
    scope = Scope("p", "certain", served.identity)
    charged = [charge(ledger, question(served, X[[n]], scope)) for n in range(20)]
    labels = [release.values.tolist() for release in drawn(charged, ledger.store)]
    assert labels == [["yes" if label else "no"] for label in y[:20]]
