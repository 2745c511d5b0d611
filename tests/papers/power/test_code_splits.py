"""Cuts of tables with public ranges."""

from __future__ import annotations

import numpy as np

from papers.power.code_splits import split


def test_parts_of_a_cut_share_no_row() -> None:
    part = split("wine", seed=0, tuning=False)
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    assert len(np.unique(rows, axis=0)) == len(rows) == 178
    held = split("wine", seed=0, tuning=True)
    tried = np.concatenate([held.public[0], held.private[0], held.test[0]])
    assert len(tried) == 142
    # The test rows of the cut are not read.
    assert not (tried[:, None] == part.test[0][None]).all(axis=2).any()
