"""``predict`` of the query voters is a release: it has noise, is counted, and is charged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import BudgetExceeded
from reticent.release.fits import not_counted
from reticent.release.prepaid import Prepaid
from reticent.systems import LinearVoteClassifier

PUBLIC = np.random.default_rng(0).normal(size=(40, 2))
ROWS = np.random.default_rng(1).normal(size=(60, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)


def made(**changes: Any) -> LinearVoteClassifier:
    given: dict[str, Any] = {"epsilon": 50.0, "delta": 1e-5, "classes": (0, 1), "answers": 30}
    return LinearVoteClassifier(**{**given, **changes})


def test_predict_and_score_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    system = made().fit(ROWS, LABELS, public_X=PUBLIC)

    def refused(*_: Any) -> None:
        raise AssertionError("the exact answer was asked for")

    for name in ("exact_predict", "vote_table"):
        monkeypatch.setattr(LinearVoteClassifier, name, refused)
    assert system.predict(ROWS[:4]).shape == (4,)
    assert system.remaining_ == 26
    assert 0.0 <= system.score(ROWS[:20], LABELS[:20]) <= 1.0
    assert system.remaining_ == 6
    with pytest.raises(BudgetExceeded):
        system.predict(ROWS[:7])


@pytest.mark.parametrize(("response", "delta"), [("stability", 0.0), ("gaussian", 1e-5)])
def test_predict_does_not_tell_the_label_of_the_only_record(response: str, delta: float) -> None:
    """Another label is one record less, then one more: at epsilon .1 each, its share moves by at
    most tanh(.1).

    4,000 first answers for each label, as of so many fits; five standard errors of the difference
    are .056, which chance exceeds once in 1.7 million. Exact answers differ by 1.
    """
    shares = []
    for label in (0, 1):
        with not_counted("as of many fits of which one is released"):
            system = made(epsilon=0.1, delta=delta, answers=1, response=response)
            system.fit(ROWS[:1], np.array([label]), public_X=PUBLIC)
            assert system.exact_predict(ROWS[:1]).tolist() == [label]
            system._prepaid = Prepaid(system.response_.event, queries=4000)
            shares.append(float(np.mean(system.predict(np.repeat(ROWS[:1], 4000, axis=0)))))
    assert abs(shares[1] - shares[0]) <= math.tanh(0.1) + 2 * delta + 0.056
