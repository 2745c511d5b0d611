"""Votes are counts."""

from __future__ import annotations

import numpy as np

from reticent.neighbours import label_votes


def test_votes_are_counts_of_labels() -> None:
    rng = np.random.default_rng(0)
    labels, chosen = rng.integers(0, 5, size=30), rng.integers(-1, 30, size=(8, 12))
    votes = label_votes(chosen, labels, classes=5)
    for row in range(8):
        assert votes[row].tolist() == [
            sum(labels[place] == c for place in chosen[row] if place >= 0) for c in range(5)
        ]
