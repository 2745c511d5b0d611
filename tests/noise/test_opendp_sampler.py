"""OpenDP as an oracle: our draws and theirs have one distribution; and it is imported by whoever
asks for it alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.core.errors import InvalidParameter
from reticent.noise import OpenDPSampler, SecureSampler

ALARM = 1e-6


@pytest.mark.parametrize("distribution", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.4, 2.0**20 * 1.3])
def test_both_have_one_distribution(distribution: str, scale: float) -> None:
    """False-alarm rate 1e-6 each. Of 20,000 draws a scale that is 12 % off is rejected, as shown
    with one that is.
    """
    name = "scale" if distribution == "discrete_laplace" else "sigma"
    theirs = getattr(OpenDPSampler(), distribution)(20_000, **{name: scale})
    for factor, same in ((1.0, True), (0.8, False), (1.25, False)):
        ours = getattr(SecureSampler(), distribution)(20_000, **{name: scale * factor})
        if scale < 10:
            values = np.arange(-3, 4)
            table = [
                [*[(draws == v).sum() for v in values], (np.abs(draws) > 3).sum()]
                for draws in (ours, theirs)
            ]
            columns = np.array(table)[:, np.sum(table, axis=0) > 20]
            p = stats.chi2_contingency(columns).pvalue
        else:
            p = stats.ks_2samp(ours, theirs).pvalue
        assert bool(p > ALARM) is same


def test_the_rest_comes_from_the_words_of_the_operating_system() -> None:
    sampler = OpenDPSampler()
    assert not sampler.seeded
    assert "OpenDP" in sampler.name
    assert sampler.geometric((3, 4), scale=5.0).min() >= 0
    assert sampler.bernoulli([0.0, 1.0]).tolist() == [False, True]
    assert sampler.quotient_coins(np.array([[0], [4]]), np.array([[3, 4], [4, 4]])).tolist() == [
        False,
        True,
    ]
    assert sampler.discrete_laplace((0, 2), scale=1.0).shape == (0, 2)
    with pytest.raises(InvalidParameter, match="sigma"):
        sampler.discrete_gaussian(3, sigma=0.0)
