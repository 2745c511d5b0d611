"""A fitted winner is scored on public rows by what it says of them."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.planning.fitting import fit_plan
from reticent.planning.methods import Constant, ConstantStart, PublicStart
from reticent.planning.planner import plan


def rare(rows, seed):
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, 2))
    return X, (X[:, 0] + 0.5 * random.normal(size=rows) > 1.5).astype(int)


@pytest.mark.parametrize("method", [ConstantStart(), PublicStart()])
def test_it_is_scored_as_it_predicts(method):
    """Models that saw no public label predict public rows as they do others. Those that did saw
    them are scored by offsets of models that did not, which are worse.
    """
    X, y = rare(200, 0)
    found = plan(
        X, y, n_private=2000, epsilon=1.0, delta=1e-5, random_state=0, methods=[Constant(), method]
    )
    fitted = fit_plan(found, *rare(2000, 1), public_X=X, public_y=y)
    told = np.log(fitted.estimator.predict_proba(X)[np.arange(200), y])
    if isinstance(method, ConstantStart):
        assert fitted.expected.value == pytest.approx(told.mean(), abs=1e-4)
    else:
        assert fitted.expected.value < told.mean() - 0.001
    assert fitted.expected.error > told.std() / 200**0.5
