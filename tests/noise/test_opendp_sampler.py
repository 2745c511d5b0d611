"""OpenDP as an oracle: our draws and theirs have one distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from reticent.noise import SecureSampler

ALARM = 1e-6


@pytest.mark.parametrize("distribution", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.4, 2.0**20 * 1.3])
def test_both_have_one_distribution(distribution: str, scale: float) -> None:
    """False-alarm rate 1e-6 each. Of 20,000 draws a scale that is 12 % off is rejected, as shown
    with one that is.
    """
    import opendp.prelude as opendp  # a second of every process that collects

    opendp.enable_features("contrib")
    name = "scale" if distribution == "discrete_laplace" else "sigma"
    make, metric = {
        "discrete_laplace": (opendp.m.make_laplace, opendp.l1_distance(T="i64")),
        "discrete_gaussian": (opendp.m.make_gaussian, opendp.l2_distance(T="f64")),
    }[distribution]
    measurement = make(opendp.vector_domain(opendp.atom_domain(T="i64")), metric, scale=scale)
    theirs = np.array(measurement(np.zeros(20_000, dtype=np.int64)))
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
