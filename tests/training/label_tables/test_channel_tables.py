"""A code within a radius is worth at least as much as a label rule is."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE
from reticent.training.channel_tables import best_table
from reticent.training.label_tables import exact_table
from reticent.training.staircases import Information, response_on


@pytest.mark.parametrize("seed", [1, 2])
def test_a_code_is_never_worth_less_than_the_best_table_of_labels(seed: int) -> None:
    random, epsilon = np.random.default_rng(seed), 3.0
    cells = Lattice.over([[0.0, 0.0], [7.9, 6.9]], radius=1.0, tail=0.0)
    label = random.permutation(cells.size) % 6
    joint = random.dirichlet(np.ones(cells.size))[:, None] * (0.02 + (label[:, None] == range(6)))
    target = Information(joint / joint.sum())
    rule = exact_table(
        target.joint.T, lattice=cells, epsilon=epsilon, iterations=1000, close=0.002
    ).shares
    begun = response_on(random.integers(0, 8, cells.size), epsilon=epsilon)
    code = best_table(
        [target], cells=cells, epsilon=epsilon, weights=[1.0], whole=[1.0], starts=[begun]
    )
    worths = [float(target.value(shares / WHOLE).sum()) for shares in (code, rule)]
    assert worths[0] >= worths[1] * (1 - 1e-9)
    assert worths[1] > 0.05
