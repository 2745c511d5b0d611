"""``predict`` of classifiers that answer rows is a release, and ``exact_predict`` is not called by
accident.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from reticent.core import Guarantee, Scope
from reticent.core.errors import BudgetExceeded, InvalidInput, NotFittedYet, PrivacyWarning
from reticent.ledger import Ledger
from reticent.systems import (
    CertifiedClassifier,
    ClippedDescent,
    Features,
    LabelAware,
    Neighbours,
    PosthocClassifier,
    PrivateKNNClassifier,
    PublicRanges,
)

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 2)) * 0.3 + np.repeat([[-0.5, -0.5], [0.5, 0.5]], 30, axis=0)
Y = np.repeat(["no", "yes"], 30)
SCOPE = Scope(subject="ward 7")

RECORDS: dict[str, Any] = {"epsilon": 1e-6, "classes": ["no", "yes"], "data_set": "ward 7"}
SMALL: dict[str, Any] = {"k_max": 1, "training": ClippedDescent(epochs=2)}
SYSTEMS: dict[str, Any] = {
    "certified": CertifiedClassifier(**RECORDS, **SMALL),
    "posthoc": PosthocClassifier(
        epsilon=1e-6,
        delta=0.0,
        radius=0.2,
        embedder="identity",
        classifier=LabelAware(hidden=(4,), epochs=2),
        mechanism="response",
        random_state=0,
    ),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_predict_and_score_cost_a_row_what_release_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an epsilon of 1e-6 labels are coins. All 60 are the exact ones once in 2^60 runs."""
    system = clone(SYSTEMS[name]).fit(X, Y)
    cost = system.guarantee
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(150.5 * cost.epsilon, cost.delta, cost.adjacency))
        labels = system.predict(X, ledger=ledger, scope=SCOPE)
        assert labels.dtype == system.classes_.dtype
        assert set(labels) <= {"no", "yes"}
        assert (labels != system.exact_predict(X)).any()
        [account] = ledger.report(SCOPE).accounts
        assert account.answers == len(X)
        system.predict(X, ledger=ledger, scope=SCOPE)
        with pytest.raises(BudgetExceeded):
            system.predict(X, ledger=ledger, scope=SCOPE)
        [account] = ledger.report(SCOPE).accounts
        assert account.answers == 2 * len(X)
    # Without a ledger score is priced and drawn as predict is.
    asked: list[int] = []
    price = type(system).price

    def noted(self: Any, inputs: Any) -> Any:
        asked.append(len(inputs))
        return price(self, inputs)

    monkeypatch.setattr(type(system), "price", noted)
    assert system.score(X, system.exact_predict(X)) < 1.0
    assert asked == [len(X)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_scikit_learn_never_asks_for_the_exact_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = clone(SYSTEMS[name]).set_params(epsilon=50.0)

    def never(self: Any, X: Any) -> None:
        raise AssertionError("the exact answer was asked for")

    monkeypatch.setattr(type(system), "exact_predict", never)
    piped = make_pipeline(PublicRanges((-2.0, 2.0)), system)
    piped.fit(X, Y)
    assert 0.0 <= piped.score(X, Y) <= 1.0
    assert piped.predict(X).shape == (len(X),)
    for method in ("predict_proba", "decision_function", "predict_log_proba", "transform"):
        assert not hasattr(system, method)
    if hasattr(system, "data_set"):
        # Its folds' fits, answers and scores would be on private records, and in no ledger.
        with pytest.raises(InvalidInput, match="cross_val_score"):
            cross_val_score(system, X, Y, cv=2, error_score="raise")
    else:
        assert cross_val_score(system, X, Y, cv=2, error_score="raise").shape == (2,)


def test_answers_of_two_fits_are_counted_where_no_ledger_is() -> None:
    first, second = (clone(SYSTEMS["certified"]).fit(X, Y) for _ in range(2))
    first.predict(X[:3])
    first.score(X[:3], Y[:3])  # of one fit: its own guarantee says what an answer costs
    assert "fits on the same records" not in first.card().to_markdown()
    with pytest.warns(PrivacyWarning, match="released 8 time"):
        second.predict(X[:2])
    assert "released 8 time" in second.card().to_markdown()
    assert "released 8 time" not in second.bundle().card


def test_predict_refuses_where_answers_may_be_withheld() -> None:
    settings: dict[str, Any] = {"delta": 1e-5, "queries": 2, "answers": 1, "classes": ["no", "yes"]}
    system = PrivateKNNClassifier(
        epsilon=1.0, **settings, neighbours=Neighbours(number=5), features=Features(range=(-3, 3))
    )
    with pytest.raises(NotFittedYet):
        system.predict(X)
    with pytest.raises(InvalidInput, match="fallback"):
        system.fit(X, Y).predict(X[:2])
    system.set_params(fallback="no")
    assert set(system.predict(X[:2])) <= {"no", "yes"}
