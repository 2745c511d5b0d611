"""Several labels of a record: one release, one bundle, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent import (
    LinearVoteClassifier,
    NoisyGradientClassifier,
    load,
)
from reticent.core.errors import CorruptBundle, InvalidInput, InvalidParameter

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


def test_a_bundle_answers_as_the_model_did(tmp_path: Path) -> None:
    model = fitted()
    folder = model.save(tmp_path / "bundle")
    assert np.array_equal(load(folder).predict(X[TEST]), model.predict(X[TEST]))
    assert load(folder).bundle().identity == model.bundle().identity
    bundle = model.bundle()
    for labels in ([[0, 1], [0, 1]], [[0, 1], [0, 1], [0]], [0, 1]):
        changed = type(bundle)(
            bundle.system, {**bundle.settings, "labels": labels}, bundle.arrays, bundle.card
        )
        with pytest.raises(CorruptBundle):
            load(changed.write(tmp_path / "changed", overwrite=True))


@pytest.mark.filterwarnings("ignore::reticent.PrivacyWarning")
def test_one_release_has_less_noise_than_one_for_each_label() -> None:
    """The joint noise is sqrt(L) that of one label; a split total takes about L times it."""
    public = {"public_X": X[PUBLIC]}
    columns = {}
    for labels, epsilon in ((1, 1.0), (9, 1.0), (1, 1.0 / 9)):
        y = np.repeat(SIGNS[PRIVATE, :1], labels, axis=1)
        model = NoisyGradientClassifier(
            steps=1, epsilon=epsilon, delta=1e-5, classes=[(0, 1)] * labels
        )
        columns[labels, epsilon] = model.fit(X[PRIVATE], y, **public).mechanism_.sigmas[0]
    one = columns[1, 1.0]
    assert columns[9, 1.0] / one == pytest.approx(3.0, rel=1e-3)
    assert columns[1, 1.0 / 9] / one > 7.0


def test_what_does_not_fit_is_refused() -> None:
    refused: list[tuple[Any, dict[str, Any]]] = [
        ([row[:2] for row in Y[PRIVATE]], {}),
        (SIGNS[PRIVATE, 0], {}),
        (None, {}),
        ([[0, 1, "other"], *Y[1:2000]], {}),
        (Y[PRIVATE], {"student_share": 0.5}),
        (Y[PRIVATE], {"classes": [(0, 1), (0, 1), ("low",)]}),
        (Y[PRIVATE], {"classes": [(0, 1), (0, 1), ((1, 2), (3, 4))]}),
    ]
    for labels, changes in refused:
        given = {"epsilon": 1.0, "delta": 1e-5, "classes": CLASSES, **changes}
        with pytest.raises((InvalidInput, InvalidParameter)) as error:
            NoisyGradientClassifier(**given).fit(X[PRIVATE], labels, public_X=X[PUBLIC])
        assert "other" not in str(error.value)
    votes = LinearVoteClassifier(epsilon=1.0, delta=1e-5, classes=CLASSES, answers=3)
    with pytest.raises(InvalidParameter, match="classes"):
        votes.fit(X[PRIVATE], SIGNS[PRIVATE, 0], public_X=X[PUBLIC])
