"""What predictions survive, tested by retraining on changed records."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.core.errors import InvalidInput
from reticent.systems import CertifiedClassifier, CertifiedEnsemble, ClippedDescent


def blobs(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 2, count)
    rows = random.normal(size=(count, 2)) + np.where(labels == 1, 1.0, -1.0)[:, None]
    return np.round(rows * 1024) / 1024, labels


SYSTEMS: dict[str, Any] = {
    "one": lambda: CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=12, training=ClippedDescent(clip=0.3)
    ),
    "weights": lambda: CertifiedClassifier(
        epsilon=1.0, classes=[0, 1], k_max=8, prevalence={0: 0.3, 1: 0.7}
    ),
    "ensemble": lambda: CertifiedEnsemble(epsilon=1.0, classes=[0, 1], k_max=6, members=3),
}


def test_a_number_too_large_is_caught_by_retraining() -> None:
    """The planted fault: twice the number, and some prediction does not survive it."""
    X, y = blobs(60)
    system = SYSTEMS["one"]().fit(X, y)
    queries = np.random.default_rng(2).normal(size=(2000, 2)) * 0.3
    before, survived = system.exact_predict(queries), 3 * system.poisoning(queries) + 3
    caught = 0
    for k in (3, 6):
        for label, place in ((0, 15.0), (1, -15.0)):
            worst = np.concatenate([X, np.full((k, 2), place)])
            after = SYSTEMS["one"]().fit(worst, np.append(y, [label] * k)).exact_predict(queries)
            caught += int((after != before)[survived >= k].sum())
    assert caught > 0


def test_views_need_the_records_and_stay_with_their_owner(tmp_path: Path) -> None:
    X, y = blobs(40)
    system = SYSTEMS["one"]().fit(X, y)
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
        SYSTEMS["ensemble"]().fit(X, y).poisoning(X, change="replace")
    with pytest.raises(InvalidInput, match="counting='remove'"):
        CertifiedClassifier(epsilon=1.0, classes=[0, 1], counting="remove").fit(X, y)
