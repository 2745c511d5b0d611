"""The MILP oracle against brute force over activation patterns, at kinks, under limits, and
against exact search.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.posthoc.milp import milp_lipschitz
from reticent.core import Box
from reticent.lipschitz.bounds import parse_output
from tests.lipschitz.brute_force import lipschitz, tiny_networks

OUTPUTS = ("l1", "linf", "spread")
RADII = (0.1, 0.5, 1.0, 2.0)
EDGE = 3.0

TINY = list(tiny_networks(12, most_hidden=7, seed=5))


def question(row: int, dimension: int) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """A center, a radius and the ends of its ball for the row-th network of a table."""
    center, radius = (
        np.random.default_rng(row).uniform(-2.5, 2.5, size=dimension),
        RADII[row % len(RADII)],
    )
    return center, radius, np.maximum(center - radius, -EDGE), np.minimum(center + radius, EDGE)


@pytest.mark.parametrize("row", range(len(TINY)), ids=[name for name, _ in TINY])
def test_the_constant_is_that_of_brute_force(row: int):
    network, output = TINY[row][1], OUTPUTS[row % 3]
    center, radius, lower, upper = question(row, network.input_dimension)
    found = milp_lipschitz(
        network, center, radius, domain=Box.cube(len(center), EDGE), output=parse_output(output)
    )
    assert found.value == pytest.approx(
        lipschitz(network, lower, upper, output), rel=1e-6, abs=1e-9
    )
    assert found.value <= found.bound <= found.value * (1 + 1e-6) + 1e-9
    assert found.gap == found.bound - found.value
    assert ((found.witness >= lower) & (found.witness <= upper)).all()
