"""Teachers of any kind: who is in which part, and what never raises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from reticent.core.errors import InvalidParameter
from reticent.release.fits import not_counted
from reticent.systems import PateClassifier, Teachers
from reticent.systems.votes.teachers import parts_of

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 3))
CODES = (ROWS[:, 0] > 0).astype(int)
QUERIES = RNG.normal(size=(40, 3))


def classifier(estimator: Any, **more: Any) -> PateClassifier:
    teachers = Teachers(estimator=estimator, number=6, random_state=1)
    settings: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "classes": (0, 1), "answers": 100}
    return PateClassifier(**{**settings, "teachers": teachers, **more})


def votes(model: Any, rows: np.ndarray, codes: np.ndarray) -> np.ndarray:
    with not_counted("a test: nothing leaves"):
        return np.asarray(model.fit(rows, codes).vote_table(QUERIES))


def test_a_part_is_where_the_record_or_its_owner_is_and_not_where_it_stands() -> None:
    order = RNG.permutation(len(ROWS))
    model = classifier(DecisionTreeClassifier(random_state=0))
    assert np.array_equal(votes(model, ROWS, CODES), votes(model, ROWS[order], CODES[order]))
    owners = [f"{at // 10}".encode() for at in range(len(ROWS))]
    found = parts_of(ROWS, CODES, owners, number=4, key=b"k" * 16)
    assert all(
        len({owners[place] for place in part} & set(owners)) * 10 == len(part) for part in found
    )
    assert sorted(np.concatenate(found).tolist()) == list(range(len(ROWS)))
    other = parts_of(ROWS, CODES, owners, number=4, key=b"o" * 16)
    assert any(len(a) != len(b) or set(a) != set(b) for a, b in zip(found, other, strict=True))


class Failing(DecisionTreeClassifier):
    """Fails where a record has 9 in its first column, and answers nonsense to large queries."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        if (X[:, 0] == 9).any():
            raise ValueError("a secret of this record")
        return super().fit(X, y)

    def predict(self, X: Any, check_input: bool = True) -> Any:
        if (X > 5).any():
            raise RuntimeError("too large")
        return super().predict(X)


def test_a_record_that_makes_its_teacher_fail_is_a_vote_for_the_first_label() -> None:
    rows = ROWS.copy()
    rows[3, 0] = 9.0
    with not_counted("a test: nothing leaves"):
        fitted = classifier(Failing()).fit(rows, CODES)
        counts = fitted.vote_table(QUERIES)
        assert counts.shape == (40, 2)
        assert len(fitted.release(np.full((2, 3), 7.0)).values) == 2


def test_an_estimator_that_never_works_is_refused_before_any_record() -> None:
    class Broken(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any, **more: Any) -> Any:
            raise RuntimeError("no licence")

    with pytest.raises(InvalidParameter):
        classifier(Broken()).fit(ROWS, CODES)
    with pytest.raises(InvalidParameter):
        Teachers(estimator=DecisionTreeClassifier)
    with pytest.raises(InvalidParameter):
        Teachers(estimator=DecisionTreeClassifier(), number=1)
