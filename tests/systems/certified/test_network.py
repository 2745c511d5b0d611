"""A certified hidden layer: neighbours beside public models, bundles, and what survives."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from reticent.core.errors import CorruptBundle
from reticent.release.fits import not_counted
from reticent.systems import CertifiedNetwork, HiddenLayer, PublicReference

RANDOM = np.random.default_rng(0)
PUBLIC = RANDOM.normal(size=(90, 3))
PUBLIC_Y = (PUBLIC[:, 0] > 0.3).astype(int) + (PUBLIC[:, 1] > 0.5)
ROWS = RANDOM.normal(size=(40, 3))
LABELS = (ROWS[:, 0] + 0.7 * RANDOM.normal(size=40) > 0).astype(int) + (ROWS[:, 2] > 1.0)
QUERIES = RANDOM.normal(size=(60, 3))
REFERENCE = PublicReference(models=[LogisticRegression()], rows="embedding")


def fitted(X: np.ndarray, y: np.ndarray, **fields: Any) -> CertifiedNetwork:
    given: dict[str, Any] = {
        "epsilon": 1.0,
        "classes": [0, 1, 2],
        "data_set": "rows",
        "norm_bound": 3.0,
        "training": HiddenLayer(records=41, units=8, reach=12.0, random_state=0),
    }
    public = {"public_X": PUBLIC, "public_y": PUBLIC_Y} if "features" in fields else {}
    with not_counted("brute force over tiny data sets"):
        return CertifiedNetwork(**{**given, **fields}).fit(X, y, **public)


def test_neighbours_beside_public_models(monkeypatch: pytest.MonkeyPatch) -> None:
    started = REFERENCE.start(PUBLIC, PUBLIC_Y, 3)
    monkeypatch.setattr(PublicReference, "start", lambda *given: started)
    flipped = 0
    for size in (0, 1, 5, 40):
        X, y = ROWS[:size], LABELS[:size]
        labels, distances = fitted(X, y, features=REFERENCE).stable_distances(QUERIES)
        neighbours = [(np.vstack([X, q]), np.append(y, c)) for q in QUERIES[:9] for c in range(3)]
        neighbours += [(np.delete(X, at, 0), np.delete(y, at)) for at in range(min(size, 4))]
        for rows, codes in neighbours:
            others, beside = fitted(rows, codes, features=REFERENCE).stable_distances(QUERIES)
            assert np.abs(distances - beside).max() <= 1
            differ = labels != others
            flipped += int(differ.sum())
            assert not distances[differ].any()
            assert not beside[differ].any()
    assert flipped > 3


@pytest.mark.parametrize(
    "change",
    [
        lambda bundle: bundle.settings["training"].update(records=0),
        lambda bundle: bundle.settings["training"].update(units=6),
        lambda bundle: bundle.settings["training"].update(offset_bound=8.0),
        lambda bundle: bundle.settings.update(certificate="convex"),
        lambda bundle: bundle.settings.update(members=2),
        lambda bundle: bundle.arrays["member0.weights"].fill(np.nan),
        lambda bundle: bundle.arrays["member0.weights"].fill(1e6),
    ],
)
def test_a_bundle_that_does_not_fit_together_is_refused(tmp_path: Path, change: Any) -> None:
    bundle = fitted(ROWS, LABELS).bundle()
    copy = dataclasses.replace(
        bundle,
        settings={**bundle.settings, "training": dict(bundle.settings["training"])},
        arrays={name: array.copy() for name, array in bundle.arrays.items()},
    )
    change(copy)
    with pytest.raises(CorruptBundle):
        CertifiedNetwork.load(copy.write(tmp_path / "bundle"))


def test_predictions_survive_what_they_say_they_survive() -> None:
    X, y = np.repeat(ROWS, 4, axis=0), (np.repeat(ROWS, 4, axis=0)[:, 0] > 0).astype(int)
    kept = {"classes": [0, 1], "training": HiddenLayer(records=170, units=4, random_state=0)}
    own = fitted(X, y, **kept)
    before = own.exact_predict(QUERIES)
    survived = own.unlearning(QUERIES)
    swapped = own.poisoning(QUERIES, change="replace")
    assert survived.max() > 20
    assert (swapped <= (survived + 1) / 2).all()
    for k in (1, 4, 10):
        for label in (0, 1):
            helpful = np.argsort(np.where(y == label, -np.abs(X[:, 0]), np.inf))[:k]
            fewer = np.delete(X, helpful, axis=0), np.delete(y, helpful)
            row = np.tile([[9.0 - 18.0 * label, 0.0, 0.0]], (k, 1))
            more = np.vstack([X, row]), np.append(y, [label] * k)
            both = np.vstack([fewer[0], row]), np.append(fewer[1], [label] * k)
            for (rows, codes), far in ((fewer, survived), (more, survived), (both, swapped)):
                after = fitted(rows, codes, **kept).exact_predict(QUERIES)
                assert (after == before)[far >= k].all()
