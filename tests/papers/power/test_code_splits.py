"""Cuts of tables with public ranges."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.code_splits import split
from reticent.tables import Numeric


@pytest.mark.parametrize("data", ["breast-cancer", "digits", "wine"])
def test_ranges_are_not_those_of_the_rows(data: str) -> None:
    part = split(data, seed=0, tuning=False)
    assert part.schema == split(data, seed=1, tuning=True).schema
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    if data != "digits":
        numbers = [one for one in part.schema.attributes if isinstance(one, Numeric)]
        assert (np.array([one.upper for one in numbers]) > rows.max(axis=0)).all()
    assert not any(part.schema.review(rows).values())


def test_parts_of_a_cut_share_no_row() -> None:
    part = split("wine", seed=0, tuning=False)
    rows = np.concatenate([part.public[0], part.private[0], part.test[0]])
    assert len(np.unique(rows, axis=0)) == len(rows) == 178
    held = split("wine", seed=0, tuning=True)
    tried = np.concatenate([held.public[0], held.private[0], held.test[0]])
    assert len(tried) == 142
    # The test rows of the cut are not read.
    assert not (tried[:, None] == part.test[0][None]).all(axis=2).any()
