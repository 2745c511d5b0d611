"""The ladder as a part: its rungs, and what it refuses."""

from __future__ import annotations

import numpy as np

from reticent.training.parts import Ladder, PublicDiscriminants


def test_directions_of_class_means_are_tried_and_worth_more_under_wide_noise() -> None:
    """Fisher's direction looks away from where rows vary most; under noise that is wider than the
    rows, the direction in which the means are furthest apart is the better one.
    """
    fisher, means = (part for part in Ladder().variants() if isinstance(part, PublicDiscriminants))
    rng = np.random.default_rng(0)
    labels = np.arange(4_000) % 2
    rows = rng.normal(size=(4_000, 2)) * [1.0, 0.05] + labels[:, None] * [1.0, 0.1]
    apart = []
    for part in (fisher, means):
        values = (part.fit(rows, labels).weight_ @ rows.T)[0]
        apart.append(abs(values[labels == 1].mean() - values[labels == 0].mean()))
    assert apart[1] > 2 * apart[0]  # the noise is the same, both are orthonormal
