"""One fused pass gives what the stages give one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.core import Box, Neighborhood, Norm
from reticent.mechanisms import ProposeTestRelease
from reticent.networks import affine_chain
from reticent.noise import SeededSampler
from reticent.systems.embedding import IdentityEmbedding
from reticent.systems.posthoc.certificates import bound_of
from reticent.systems.posthoc.plans import PosthocSetting, Requirement, output_of
from reticent.systems.posthoc.query import PrivateQuery

MECHANISMS = (
    "laplace",
    "k-norm-linf",
    "k-norm-l2",
    "gaussian",
    "noisy-max",
    "stability",
)


def query(mechanism: str, path: str, kind: str) -> PrivateQuery:
    """A release of a random 5-16-3 network; on the local path P is such that half of the points
    near 0 have level 3 or more.
    """
    rng = np.random.default_rng(7)
    network = affine_chain(
        [rng.normal(size=(16, 5)), rng.normal(size=(3, 16))],
        [rng.normal(size=16), rng.normal(size=3)],
    )
    domain = Box(np.full(5, -2.7), np.full(5, 2.3))  # neither end on a grid
    bound = bound_of(
        kind, network, domain=domain, input_norm=Norm.LINF, output=output_of(mechanism)
    )
    adjacency = Neighborhood(Norm.LINF, 0.05, "5-dimensional input space")
    requirement = Requirement(epsilon=6.0, delta=1e-3, adjacency=adjacency)
    local: dict[str, Any] = (
        {"epsilon_test": 2.0, "delta_test": 4e-4}
        if path == "local"
        else {"epsilon_test": 0.0, "delta_test": 0.0}
    )
    plan = PosthocSetting(
        path=path,  # type: ignore[arg-type]
        mechanism=mechanism,
        proposal=bound.global_bound()
        if path == "global"
        else float(np.median(bound.bound(rng.normal(size=(50, 5)), 0.15))),
        epsilon_release=3.9,
        delta_release=5e-4 if mechanism == "gaussian" else 0.0,
        **local,
    )
    return PrivateQuery(IdentityEmbedding(5), network, bound, requirement, plan)


def stage_by_stage(
    fitted: PrivateQuery, inputs: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Snap, forward, levels and noise, each from the public function of its own module, and each
    checking its input again.
    """
    step = fitted.bound.input_step
    points = (
        np.round(np.clip(inputs, fitted.bound.domain.lower, fitted.bound.domain.upper) / step)
        * step
    )
    values = fitted.network.forward_each(points)
    mechanism = fitted.mechanism
    if not isinstance(mechanism, ProposeTestRelease):
        return mechanism.release(values, sampler=SeededSampler(seed)), np.zeros(
            len(inputs), dtype=bool
        )
    assert fitted.test is not None
    return mechanism.release(values, fitted.test.levels(points), sampler=SeededSampler(seed))


@pytest.mark.parametrize(
    ("mechanism", "path", "kind"),
    [
        *((mechanism, "global", "layered") for mechanism in MECHANISMS),
        *((mechanism, "local", "linear") for mechanism in MECHANISMS),
        *(("laplace", "local", kind) for kind in ("interval", "layered")),
    ],
)
def test_the_fused_pass_is_the_stages_one_after_the_other(
    mechanism: str, path: str, kind: str
) -> None:
    fitted = query(mechanism, path, kind)
    inputs = 3.0 * np.random.default_rng(1).normal(size=(300, 5))  # some of them beyond the domain
    values, withheld = fitted.answer(inputs, sampler=SeededSampler(3))
    expected, missing = stage_by_stage(fitted, inputs, 3)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(withheld, missing)
    assert withheld.any() == (path == "local")
    np.testing.assert_allclose(
        fitted.exact(inputs),
        fitted.network.forward(fitted.points(inputs)),
        rtol=0,
        atol=fitted.network.rounding_error(fitted.bound.domain),
    )
