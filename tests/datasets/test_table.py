"""The split of a table."""

from __future__ import annotations

import numpy as np

from reticent.datasets.table import last_fifth_held_out


def test_the_split_is_a_partition() -> None:
    train, test = last_fifth_held_out(101)
    assert len(test) == 20
    assert sorted(np.concatenate([train, test]).tolist()) == list(range(101))
