"""What predictions survive, for every certificate, by retraining on changed records."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from reticent.core.errors import InvalidInput
from reticent.release.fits import not_counted
from reticent.systems import (
    CertifiedClassifier,
    CertifiedEnsemble,
    CertifiedNetwork,
    ClippedDescent,
    ConvexCertifiedClassifier,
    HiddenLayer,
)
from tests.systems.certified.test_classifier import blobs

RECORDS: dict[str, Any] = {"epsilon": 1.0, "classes": [0, 1]}
SYSTEMS: dict[str, Any] = {
    "intervals": CertifiedClassifier(**RECORDS, k_max=12, training=ClippedDescent(clip=0.3)),
    "intervals, weights": CertifiedClassifier(**RECORDS, k_max=8, prevalence={0: 0.3, 1: 0.7}),
    "ensemble": CertifiedEnsemble(**RECORDS, k_max=6, members=3),
    "convex": ConvexCertifiedClassifier(**RECORDS, norm_bound=4.0, regularization=1.0),
    "hidden layer": CertifiedNetwork(
        **RECORDS, norm_bound=3.0, training=HiddenLayer(records=170, units=4, random_state=0)
    ),
}


@pytest.mark.filterwarnings("ignore:X. ")
@pytest.mark.parametrize("name", SYSTEMS)
def test_predictions_survive_what_they_say_they_survive(name: str) -> None:
    """Removed are the records that speak most for a label, inserted extreme ones against it."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 150)
    X = random.normal(size=(150, 2)) + np.where(y == 1, 1.0, -1.0)[:, None]
    X = np.round(X * 1024) / 1024
    queries = random.normal(size=(150, 2))

    def fitted(rows: np.ndarray, labels: np.ndarray) -> Any:
        with not_counted("retraining on changed records"):
            return SYSTEMS[name].fit(rows, labels)

    system = fitted(X, y)
    before, certified = system.exact_predict(queries), system.stable_distances(queries)[1]
    survived = {"remove": system.unlearning(queries), "insert": system.poisoning(queries)}
    if name != "ensemble":
        survived["replace"] = system.poisoning(queries, change="replace")
    for kind in ("remove", "insert"):
        assert (survived[kind] >= certified).all()
    checked = 0
    for k in (1, 2, 5):
        for label in (0, 1):
            helpful = np.argsort(np.where(y == label, -np.abs(X.sum(axis=1)), np.inf))[:k]
            kept = np.setdiff1d(np.arange(len(X)), helpful)
            worst = np.full((k, 2), 15.0 - 30.0 * label) + np.arange(k)[:, None] / 16
            extreme = [label] * k
            changed = {
                "remove": (X[kept], y[kept]),
                "insert": (np.concatenate([X, worst]), np.append(y, extreme)),
                "replace": (np.concatenate([X[kept], worst]), np.append(y[kept], extreme)),
            }
            for kind, numbers in survived.items():
                after = fitted(*changed[kind]).exact_predict(queries)
                assert (after == before)[numbers >= k].all()
                checked += int((numbers >= k).sum())
    assert checked > 500


def test_views_need_the_records_and_stay_with_their_owner(tmp_path: Path) -> None:
    X, y = blobs(40)
    system = clone(SYSTEMS["intervals"]).fit(X, y)
    before = pickle.dumps(system)
    first = system.unlearning(X)
    assert len(pickle.dumps(system)) == len(before)  # no view in it
    for other in (
        CertifiedClassifier.load(system.save(tmp_path / "bundle")),
        pickle.loads(pickle.dumps(system)),
    ):
        np.testing.assert_array_equal(other.exact_predict(X), system.exact_predict(X))
        with pytest.raises(InvalidInput, match="fit again"):
            other.unlearning(X)
    np.testing.assert_array_equal(system.unlearning(X), first)
    # Another fit forgets the views of the one before.
    system.fit(X[:20], y[:20])
    assert not np.array_equal(system.unlearning(X), first)
    with pytest.raises(InvalidInput, match="two members"):
        clone(SYSTEMS["ensemble"]).fit(X, y).poisoning(X, change="replace")
    with pytest.raises(InvalidInput, match="counting='remove'"):
        CertifiedClassifier(epsilon=1.0, classes=[0, 1], counting="remove").fit(X, y)


def test_views_of_records_that_were_changed_in_place_are_refused() -> None:
    """The fitted object has no copy of them."""
    for name in ("intervals", "ensemble"):
        X, y = blobs(60)
        system = clone(SYSTEMS[name]).fit(X, y)
        found = system.unlearning(X[:5])
        changed = clone(system).fit(X, y)
        X[7] = -X[7]
        with pytest.raises(InvalidInput, match="changed in place"):
            changed.unlearning(X[:5])
        np.testing.assert_array_equal(system.unlearning(X[:5]), found)  # trained before
