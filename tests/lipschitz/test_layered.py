"""The layered bound: exact oracles, other bounds, nested boxes by the ten thousand, the claims
of tightness.
"""

from __future__ import annotations

import numpy as np
import pytest
from nested_regions import HALF, chain, violations

from reticent.core import Box, Norm
from reticent.lipschitz import IntervalBound, LayeredBound


@pytest.mark.parametrize(
    "widths", [(4, 8, 7, 3), (4, 9, 20, 3), (3, 7, 6, 6, 2), (3, 7, 10, 10, 2), (1, 3, 20, 1)]
)
@pytest.mark.parametrize("output", ["l1", "l2"])
def test_never_above_intervals(widths, output):
    rng = np.random.default_rng(1)
    network = chain(rng, *widths)
    bounds = [
        kind(network, domain=Box.cube(widths[0], HALF), input_norm=Norm.LINF, output=Norm(output))
        for kind in (LayeredBound, IntervalBound)
    ]
    points, radii = rng.uniform(-2, 2, size=(20, widths[0])), rng.random(20) * 1.5
    joint, plain = (bound.bound(points, radii) for bound in bounds)
    assert (joint <= plain * (1 + 1e-5)).all()


NETWORKS = {
    "searched": (4, 9, 7, 3),
    "relaxed": (4, 8, 20, 3),
    "three layers searched": (3, 6, 5, 5, 2),
    "three layers relaxed": (3, 6, 10, 9, 2),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(
    ("norm", "output", "count"),
    [
        (Norm.LINF, "l1", 60),
        (Norm.L1, "l1", 60),
        (Norm.LINF, "l2", 60),
        pytest.param(Norm.LINF, "l1", 2500, marks=pytest.mark.soak),
        pytest.param(Norm.L1, "l1", 1000, marks=pytest.mark.soak),
    ],
)
def test_isotone_at_kinks(name, norm, output, count):
    """In the soak 14,000 pairs over four networks and two norms."""
    network = chain(np.random.default_rng(3), *NETWORKS[name])
    domain = Box.cube(network.input_dimension, HALF)
    bound = LayeredBound(network, domain=domain, input_norm=norm, output=output)
    wrong, strict = violations(bound, count, 3)
    assert wrong == 0
    assert strict > 0.05
