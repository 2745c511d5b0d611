"""Several labels of a record: one release, one bundle, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent import (
    NoisyGradientClassifier,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 5))
SIGNS = np.column_stack([X[:, 0] > 0, X[:, 1] + 0.3 * X[:, 0] > 0]).astype(int)
WORDS = np.where(X[:, 2] > 0.5, "high", np.where(X[:, 2] < -0.5, "low", "middle"))
Y = [[int(a), int(b), str(c)] for (a, b), c in zip(SIGNS, WORDS, strict=True)]
CLASSES = [(0, 1), (0, 1), ("low", "middle", "high")]
PRIVATE, PUBLIC, TEST = slice(0, 2000), slice(2000, 2400), slice(2400, None)
TRUTH = np.array(Y[TEST], dtype=object)


def fitted(**changes: Any) -> Any:
    given = {"epsilon": 4.0, "delta": 1e-5, "classes": CLASSES, "steps": 10, **changes}
    model = NoisyGradientClassifier(**given)
    return model.fit(X[PRIVATE], Y[PRIVATE], public_X=X[PUBLIC], public_y=Y[PUBLIC])


def test_all_columns_are_learned() -> None:
    model = fitted()
    found = model.predict(X[TEST])
    assert found.shape == (600, 3)
    assert (found == TRUTH).mean(axis=0).min() > 0.75
    assert model.score(X[TEST], TRUTH) > 0.85
    chances, scores = model.predict_proba(X[TEST]), model.decision_function(X[TEST])
    assert [part.shape for part in chances] == [(600, 2), (600, 2), (600, 3)]
    assert [part.shape for part in scores] == [(600,), (600,), (600, 3)]
    for at, part in enumerate(chances):
        assert np.allclose(part.sum(axis=1), 1)
        assert np.array_equal(model.classes_[at][part.argmax(axis=1)], found[:, at])
    assert np.array_equal((scores[0] > 0).astype(int), found[:, 0])
