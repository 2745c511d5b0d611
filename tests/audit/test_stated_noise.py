"""Tests of stated noise: half of it is refuted, and a textbook sampler is found out."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.audit import ScaleTest, reachable_laplace


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_half_the_stated_noise_is_refuted_by_200_draws_and_the_whole_seldom(law):
    """200 runs of each; 1,000 at the stated scale: more than 24 refuted at level .01 with a chance
    of 1e-4.
    """
    late, false = 0, 0
    for seed in range(200):
        random = np.random.default_rng([20, seed])
        draws = 7.0 + getattr(random, "normal" if law == "gaussian" else law)(size=200, scale=1.0)
        small = ScaleTest(law, scale=2.0, alpha=0.01)
        late += not small.update(draws)
        false += ScaleTest(law, scale=1.0, alpha=0.01).update(draws)
    assert late <= 2
    assert false <= 9


def test_reachable_sums_of_a_textbook_sampler():
    random = np.random.default_rng(21)
    for center, scale in ((0.0, 1.0), (1.0, 0.5), (17.0, 10.0)):
        drawn = center + random.laplace(scale=scale, size=2000)
        assert reachable_laplace(drawn, exact=center, scale=scale).all()
    drawn = random.laplace(scale=1.0, size=2000)
    assert reachable_laplace(drawn, exact=1.0, scale=1.0).mean() < 0.9
