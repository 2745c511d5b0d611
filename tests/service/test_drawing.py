"""One draw for many requests: each gets its own rows and receipt, and nothing that was not paid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from reticent.accounting import PrivacyEvent
from reticent.core import AddRemove, Guarantee, Scope
from reticent.core.errors import InvalidInput
from reticent.ledger import Ledger
from reticent.release.paying import Drawn, Price
from reticent.release.prepaid import Prepaid
from reticent.service.catalogue import ServedBundle
from reticent.service.drawing import Charged, Question, drawn, priced
from reticent.tables.frames import NamedRows, rows_as_fitted

ONE = Guarantee(0.25, 0.0, AddRemove())
EVENT = PrivacyEvent("echo", ONE)


class Echo:
    """Releases its input's first column, and withholds rows below 0; counts what it is asked."""

    bundle_identity_ = "echo"
    feature_names_in_ = np.array(["a", "b"], dtype=object)

    def __init__(self) -> None:
        self.checks, self.prices, self.draws = 0, 0, list[int]()

    def checked(self, X: Any) -> Any:
        self.checks += 1
        rows = np.asarray(rows_as_fitted(self, X), dtype=np.float64)
        if not np.isfinite(rows).all():
            raise InvalidInput("rows: expected finite numbers")
        return rows

    def price(self, inputs: Any) -> Price:
        self.prices += 1
        return Price(EVENT, len(inputs), "echo", bundle="echo")

    def draw(self, inputs: Any, sampler: Any) -> Drawn:
        self.draws.append(len(inputs))
        return Drawn(inputs[:, 0], inputs[:, 0] < 0)


class Served:
    """A bundle of an ``Echo``."""

    identity = "echo"

    def __init__(self) -> None:
        self.system = Echo()


def question(
    bundle: Any,
    rows: npt.ArrayLike,
    scope: Any,
    names: tuple[str, ...] | None = ("a", "b"),
) -> Question:
    table = np.array(rows, dtype=np.float64)
    return Question(bundle, table if names is None else NamedRows(table, names), scope)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger.create(tmp_path / "l.db", synchronous="NORMAL", anchor=tmp_path / "anchors")
    made.grant(Scope(subject="s"), Guarantee(100.0, 0.0, AddRemove()))
    yield made
    made.close()


def charge(ledger: Ledger, asked: Question) -> Charged:
    cost = priced(asked)
    (done,) = ledger.post_together([cost.posting.work])
    return Charged(cost, cost.posting.result(done))


def test_what_a_question_costs_is_known_before_anything_is_drawn(ledger: Ledger) -> None:
    bundle, before = Served(), ledger.anchor()
    cost = priced(question(bundle, [[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], Scope(subject="s")))
    assert (cost.price.event, cost.price.answers) == (EVENT, 3)
    with pytest.raises(InvalidInput, match="finite"):
        priced(question(bundle, [[np.nan, 0.0]], Scope(subject="s")))
    with pytest.raises(InvalidInput, match="one for each of the 1 rows"):
        priced(question(bundle, [[1.0, 0.0]], [Scope(subject="s")] * 2))
    assert bundle.system.draws == []
    assert ledger.anchor() == before
    (done,) = ledger.post_together([cost.posting.work])
    assert cost.posting.result(done).charge.epsilon == 3 * 250_000


def test_requests_of_every_form_are_drawn_together_and_each_gets_its_own(ledger: Ledger) -> None:
    """One scope or one for each row, and columns in any order: one draw."""
    bundle, one = Served(), Scope("p", "s")
    charged = [
        charge(ledger, question(bundle, [[1.0, 9.0], [-2.0, 9.0]], one)),
        charge(ledger, question(bundle, [[9.0, 3.0]], [one], ("b", "a"))),
        charge(ledger, question(bundle, [[4.0, 9.0], [5.0, 9.0], [-6.0, 9.0]], [one] * 3)),
    ]
    found = drawn(charged)
    assert bundle.system.draws == [6]
    assert [release.values.tolist() for release in found] == [[1, -2], [3], [4, 5, -6]]
    for release, paid in zip(found, charged, strict=True):
        assert release.withheld.tolist() == [value < 0 for value in release.values]
        assert release.columns == ("label",)
        assert release.receipt.answers == len(release.values)
        assert release.receipt.booked == paid.reservation.id
        assert release.receipt.position == paid.reservation.position
        assert release.receipt.digest == paid.reservation.digest
        assert not release.receipt.seeded
    assert len({release.receipt.identifier for release in found}) == 3
    assert len({release.receipt.booked for release in found}) == 3
    for release, paid in zip(found, charged, strict=True):
        ledger.post_together([paid.reservation.committing(release.receipt.identifier)])
    assert ledger.verify(receipts=[release.receipt for release in found]).ok


@pytest.mark.parametrize("more", [-1, 1])
def test_a_draw_of_other_rows_than_were_charged_goes_to_nobody(ledger: Ledger, more: int) -> None:
    class Wrong(Echo):
        def draw(self, inputs: Any, sampler: Any) -> Drawn:
            rows = np.zeros((len(inputs) + more, 2))
            return super().draw(rows, sampler)

    bundle = Served()
    bundle.system = Wrong()
    charged = [charge(ledger, question(bundle, [[1.0, 0.0]], Scope("p", "s"))) for _ in range(3)]
    with pytest.raises(AssertionError, match="one answer for each row"):
        drawn(charged)


def test_what_is_paid_for_as_a_whole_is_never_charged_by_answer() -> None:
    class Plan(Echo):
        def price(self, inputs: Any) -> Price:
            return replace(super().price(inputs), prepaid=Prepaid(EVENT, queries=10))

    bundle = Served()
    bundle.system = Plan()
    with pytest.raises(InvalidInput, match="as a whole"):
        priced(question(bundle, [[1.0, 0.0]], Scope("p", "s")))


def test_a_bundle_answers_rows_of_many_requests_as_it_answers_each(
    tmp_path: Path, ledger: Ledger
) -> None:
    """At so large an epsilon that the label of every row is certain, the labels are known."""
    from reticent.systems.certified.reserve_system import ConvexCertifiedClassifier

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) * 0.05 + 0.4 * (2 * y[:, None] - 1)
    model = ConvexCertifiedClassifier(epsilon=30.0, classes=["no", "yes"], data_set="certain")
    model.fit(X, np.where(y == 1, "yes", "no")).save(tmp_path / "certain")
    served = ServedBundle.read(tmp_path / "certain", trusted_with=False, trusted_key=None)
    total = Guarantee(1e5, 0.0, model.guarantee.adjacency)
    ledger.grant(Scope(subject="certain"), total)
    scope = Scope("p", "certain", served.identity)
    charged = [charge(ledger, question(served, X[[n]], scope, None)) for n in range(20)]
    labels = [release.values.tolist() for release in drawn(charged)]
    assert labels == [["yes" if label else "no"] for label in y[:20]]
