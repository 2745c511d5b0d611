"""What ``predict`` and ``score`` of a certified system spend."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core import Guarantee, Scope
from reticent.core.errors import InvalidInput
from reticent.ledger import Ledger
from reticent.systems import CertifiedClassifier

X = np.random.default_rng(0).normal(size=(30, 2))
Y = (X[:, 0] > 0).astype(np.int64)
SCOPE = Scope(subject="ward")


def fitted(**changes: Any) -> CertifiedClassifier:
    settings = {"epsilon": 0.5, "classes": [0, 1], "k_max": 2, "data_set": "ward"}
    return CertifiedClassifier(**{**settings, **changes}).fit(X, Y)


def test_predict_is_charged_and_a_withheld_answer_needs_a_label_before(tmp_path: Path) -> None:
    system = fitted()
    withholding = fitted(mechanism="distance", delta=1e-6)
    with closing(Ledger.create(tmp_path / "ledger.db")) as ledger:
        ledger.grant(SCOPE, Guarantee(100.0, 1e-3, system.guarantee.adjacency))
        for calls in (1, 2):
            assert system.predict(X[:3], ledger=ledger, scope=SCOPE).shape == (3,)
            [account] = ledger.report().accounts
            assert account.reservations == account.commits == calls
        before = ledger.verify()
        with pytest.raises(InvalidInput, match="fallback"):
            withholding.predict(X[:3], ledger=ledger, scope=SCOPE)
        assert ledger.verify() == before
        withholding.fallback = 1
        assert set(withholding.predict(X[:3], ledger=ledger, scope=SCOPE)) <= {0, 1}


def test_score_spends_and_never_asks_for_the_exact_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("the exact answer was asked for")

    monkeypatch.setattr(CertifiedClassifier, "exact_predict", refuse)
    system, released = fitted(), []
    release = system.release
    monkeypatch.setattr(
        system, "release", lambda *rows, **more: released.append(1) or release(*rows, **more)
    )
    assert 0 <= system.score(X, Y) <= 1
    assert released == [1]
