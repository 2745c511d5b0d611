"""Samplers by name: none of them takes a seed or repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core.errors import UnknownName
from reticent.noise import release_sampler
from reticent.noise.release_samplers import RELEASE_SAMPLERS


@pytest.mark.parametrize("name", RELEASE_SAMPLERS)
def test_a_release_draws_fresh_numbers_without_a_seed(name: str) -> None:
    drawn = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - a global seed reaches no release either
        sampler = release_sampler(name)
        assert type(sampler) is RELEASE_SAMPLERS[name]
        assert not sampler.seeded
        drawn.append(
            [
                *sampler.discrete_gaussian(8, sigma=2.0**40).tolist(),
                *sampler.discrete_laplace(8, scale=2.0**40).tolist(),
            ]
        )
    assert not set(drawn[0]) & set(drawn[1])


def test_another_name_is_refused() -> None:
    with pytest.raises(UnknownName, match="seeded"):
        release_sampler("seeded")
