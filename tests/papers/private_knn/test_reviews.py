"""The table of film reviews, and the parts it is made from."""

from __future__ import annotations

import numpy as np

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
