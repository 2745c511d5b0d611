"""The linkage table end to end on a small table of unit vectors."""

from __future__ import annotations

import numpy as np

from papers.posthoc import linkage
from reticent.datasets import Table


def test_small_table() -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 400)
    rows = random.normal(size=(400, 24))
    rows[:, 0] += 3.0 * (2 * labels - 1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    columns = tuple(f"x{place}" for place in range(24))
    data = Table(
        "small", columns, rows[:250], labels[:250], rows[250:], labels[250:], ("no", "yes"), "made"
    )
    found = linkage.run(data, epsilons=[4.0], seeds=1, trials=1_000)
    assert len(found) == 4  # two radii, a vector and a label each
    assert found[0].radius < found[2].radius  # the nearest row, then the tenth nearest
    for row in found:
        assert [game.exceeded for game in row.games] == [False, False]
        assert 0.4 < row.accuracy <= 1.0
    vectors, label = found[0], found[1]
    assert vectors.released.startswith(("PublicPCA", "PublicDiscriminants", "LiveCoordinates"))
    assert label.released.startswith("label, ")
    text = linkage.markdown(found)
    assert text.count("\n| ") == 1 + len(found)
