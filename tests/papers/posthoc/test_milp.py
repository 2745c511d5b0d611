"""The MILP oracle against brute force over activation patterns, at kinks, under limits, and
against exact search.
"""

from __future__ import annotations

import numpy as np
import pytest

from papers.posthoc.exact.constants import lipschitz_constant
from papers.posthoc.exact.constants import nearest_violation as exact_nearest
from papers.posthoc.milp import milp_lipschitz, milp_nearest_violation
from reticent.core import Box
from reticent.lipschitz.bounds import parse_output
from tests.lipschitz.brute_force import (
    cells,
    lipschitz,
    measure_of,
    nearest_violation,
    tiny_networks,
)

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
@pytest.mark.parametrize("output", OUTPUTS)
def test_the_constant_is_that_of_brute_force(row: int, output: str):
    network = TINY[row][1]
    center, radius, lower, upper = question(row, network.input_dimension)
    found = milp_lipschitz(
        network, center, radius, domain=Box.cube(len(center), EDGE), output=parse_output(output)
    )
    assert found.value == pytest.approx(
        lipschitz(network, lower, upper, output), rel=1e-6, abs=1e-9
    )
    assert found.value <= found.bound <= found.value * (1 + 1e-6) + 1e-9
    assert found.gap == found.bound - found.value
    assert found.witness is not None
    assert ((found.witness >= lower) & (found.witness <= upper)).all()


@pytest.mark.parametrize("row", range(len(TINY)), ids=[name for name, _ in TINY])
def test_the_distance_is_that_of_brute_force(row: int):
    network, output = TINY[row][1], OUTPUTS[row % 3]
    center, _, _, _ = question(row, network.input_dimension)
    domain = Box.cube(len(center), EDGE)
    norms = np.unique(
        [
            round(measure_of(cell.jacobian, output), 6)
            for cell in cells(network, domain.lower, domain.upper)
        ]
    )
    # Between two norms that occur, so that rounding decides nothing.
    limit = float(norms[-2:].mean()) if len(norms) > 1 else float(norms[-1]) + 0.5
    expected, _ = nearest_violation(network, center, limit, domain.lower, domain.upper, output)
    found = milp_nearest_violation(
        network, center, limit=limit, max_radius=np.inf, domain=domain, output=parse_output(output)
    )
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-7)
    if np.isinf(expected):
        assert (found.witness, found.status.value, found.gap) == (
            None,
            "none within the radius",
            0.0,
        )
    else:
        assert found.bound <= found.value <= found.bound * (1 + 1e-6) + 1e-7
        assert found.witness is not None
        assert np.abs(found.witness - center).max() <= found.value * (1 + 1e-6) + 1e-9
        # Just beyond the distance the limit is exceeded, just before it is not.
        for reach, above in (
            (found.value * 1.001 + 1e-6, True),
            (found.value * 0.999 - 1e-6, False),
        ):
            if reach > 0:
                ends = (
                    np.maximum(center - reach, domain.lower),
                    np.minimum(center + reach, domain.upper),
                )
                assert (lipschitz(network, *ends, output) > limit) == above


def test_an_optimum_that_presolve_would_lose():
    """HiGHS 1.15.1 with presolve calls 0.98907 optimal here; brute force and exact search find
    0.98811.
    """
    network, limit = list(tiny_networks(9, most_hidden=20, seed=11))[8][1], 4.8444
    center, domain = question(8, 2)[0], Box.cube(2, EDGE)
    expected, _ = nearest_violation(network, center, limit, domain.lower, domain.upper, "spread")
    found = milp_nearest_violation(
        network, center, limit=limit, max_radius=np.inf, domain=domain, output="spread"
    )
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert expected == pytest.approx(0.98811, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.soak)])
def test_exact_search_agrees_on_small_networks(count):
    """One to three hidden layers with up to 20 neurons, all output measures; the constant and
    the distance.
    """
    rng = np.random.default_rng(11)
    for row, (name, network) in enumerate(tiny_networks(count, most_hidden=20, seed=11)):
        center, radius, *_ = question(row, network.input_dimension)
        domain, output = Box.cube(len(center), EDGE), parse_output(OUTPUTS[row % 3])
        by_solver = milp_lipschitz(network, center, radius, domain=domain, output=output)
        by_search = lipschitz_constant(
            network, center, radius, domain=domain, output=output, relative=1e-9, absolute=1e-12
        )
        assert by_search.value == pytest.approx(by_solver.value, rel=1e-6, abs=1e-9), name
        limit = by_solver.value * rng.uniform(0.8, 1.5) + 1e-3
        near = milp_nearest_violation(
            network, center, limit=limit, max_radius=np.inf, domain=domain, output=output
        )
        exact = exact_nearest(
            network, center, limit=limit, max_radius=np.inf, domain=domain, output=output
        )
        assert exact.distance == pytest.approx(near.value, rel=1e-6, abs=1e-7), name
