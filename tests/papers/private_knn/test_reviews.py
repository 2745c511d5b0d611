"""The table of film reviews, and the parts it is made from."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from papers.private_knn import reviews
from papers.private_knn.reviews import Reviews, public_rows_alone, rows


def _parts() -> Reviews:
    rng = np.random.default_rng(0)
    labels = np.arange(900) % 2
    found = rng.normal(size=(900, 5)) * 0.1
    found[:, 0] += labels - 0.5
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    parts = slice(0, 600), slice(600, 800), slice(800, None)
    return Reviews(*(column[part] for part in parts for column in (found, labels)))


def test_all_ways_learn_what_is_easy() -> None:
    parts = _parts()
    assert public_rows_alone(parts) > 0.95
    for right in rows(parts, 8.0).values():
        assert len(right) == 3
        assert np.mean(right) > 0.9


def test_embeddings_are_centred_by_public_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    train, test = rng.normal(size=(2100, 4)) + 3.0, rng.normal(size=(30, 4)) + 3.0
    data = SimpleNamespace(
        train_rows=train,
        test_rows=test,
        train_labels=np.arange(2100) % 2,
        test_labels=np.arange(30) % 2,
    )
    monkeypatch.setattr(reviews, "load_imdb", lambda: data)
    parts = reviews.reviews(20, centred=True)
    assert (len(parts.private), len(parts.public), len(parts.asked)) == (100, 2000, 20)
    expected = test[:20] - train[:2000].mean(axis=0)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(parts.asked, expected)
    np.testing.assert_array_equal(reviews.reviews(20, centred=False).asked, test[:20])
