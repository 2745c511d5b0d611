"""The layer that sorts pairs does so, and is built from layers that can be certified."""

from __future__ import annotations

import numpy as np

from reticent.networks.sorting import pair_sort


def test_pairs_are_sorted() -> None:
    branch = pair_sort(4).branch
    rows = np.array([[1.0, 3.0, 5.0, 2.0]])
    moved = rows + branch[2].forward(branch[1].kind.apply(branch[0].forward(rows)))
    assert moved.tolist() == [[3.0, 1.0, 5.0, 2.0]]
