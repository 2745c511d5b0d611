"""Repaired tables pass the exact check, lose little, and are whole shares."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.grids.shares import WHOLE, excess
from reticent.training.label_tables import repaired, whole_table
from tests.training.label_tables.test_optimal import grid


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    labels=st.integers(2, 12),
    epsilon=st.sampled_from([1e-3, 0.1, 1.0, 5.0, 12.0, 30.0]),
    sharp=st.sampled_from([1e-3, 0.1, 1.0]),
)
def test_any_table_becomes_one_that_passes(seed, labels, epsilon, sharp) -> None:
    lattice = grid((4, 3, 2))
    wanted = np.random.default_rng(seed).dirichlet(np.full(labels, sharp), lattice.size).T
    shares = whole_table(np.nan_to_num(wanted) + 1e-12, lattice=lattice, epsilon=epsilon)
    assert shares.dtype == np.uint32
    assert shares.min() >= 1
    assert set(shares.sum(axis=0, dtype=np.uint64).tolist()) == {WHOLE}
    assert excess(shares, shares, lattice=lattice, epsilon=epsilon) == 0


def test_a_table_that_passes_stays_as_it_is() -> None:
    lattice = grid((4, 3))
    logs = 0.4 * lattice.center.sum(axis=1)
    odds = np.stack([np.exp(-logs), np.exp(logs)])
    table = odds / odds.sum(axis=0)
    np.testing.assert_allclose(repaired(table, lattice=lattice, epsilon=2.0), table, rtol=1e-12)
    shares = whole_table(table, lattice=lattice, epsilon=2.0)
    np.testing.assert_allclose(shares / WHOLE, table, atol=2e-9)
