"""Settings that cannot be drawn from are refused when a mechanism is made: after a charge it is too
late.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from reticent.core.errors import ReticentError
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.mechanisms import (
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    NoisyArgmax,
    NoisyMaxRelease,
    NoisyScreening,
    ProposeTestRelease,
    StabilityRelease,
)
from reticent.noise import SecureSampler

NEAR = Neighborhood(Norm.LINF, 0.5, "embedding")
LENGTHS = (5e-324, 1e-290, 1.0, 1e300)
EPSILONS = (5e-324, 1e-10, 1e-6, 1.0, 700.0, 1e300)
ERRORS = (0.0, 1.0, 1e10, 1e300)
VALUES = np.array([[-0.0, 5e-324], [1.7e308, -1.7e308], [1.0, 1.0]])


def additive(cls, **named):
    return lambda sensitivity, epsilon, error: cls(
        sensitivity=sensitivity,
        epsilon=epsilon,
        evaluation_error=error,
        adjacency=NEAR,
        **named,
    )


@pytest.mark.parametrize(
    "build",
    [
        additive(LaplaceMechanism, dimension=2),
        additive(GaussianMechanism, dimension=2, delta=1e-6),
        additive(KNormMechanism, dimension=2, output_norm="linf"),
        additive(KNormMechanism, dimension=2, output_norm="l2"),
        additive(NoisyMaxRelease, classes=2),
        additive(StabilityRelease, classes=2),
    ],
)
def test_what_is_made_is_drawn_from(build) -> None:
    sampler, made = SecureSampler(), 0
    for settings in product(LENGTHS, EPSILONS, ERRORS):
        try:
            mechanism = build(*settings)
        except ReticentError:
            continue
        made += 1
        assert len(mechanism.release(VALUES, sampler=sampler)) == len(VALUES)
        assert len(mechanism.release(VALUES[:0], sampler=sampler)) == 0
    assert made >= 5


def test_noise_wider_than_any_sampler_draws_is_refused() -> None:
    shared = {"neighbours": 3, "sigma": 2.0**51, "sampling_probability": 0.5, "delta": 1e-6}
    with pytest.raises(ReticentError):
        NoisyArgmax(classes=2, **shared)
    with pytest.raises(ReticentError):
        NoisyScreening(threshold=1.0, **shared)
    inner = LaplaceMechanism(sensitivity=1.0, epsilon=1.0, dimension=1, adjacency=NEAR)
    with pytest.raises(ReticentError):
        ProposeTestRelease(
            radius=0.5, proposal=1.0, epsilon_test=1e-9, delta_test=1e-12, inner=inner
        )
