"""Tables, hop maps and responses in ``PosthocClassifier``: fitted, released, stored, refused."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import PosthocClassifier
from reticent.core.errors import CorruptBundle
from reticent.mechanisms import FiniteChannel, HopRelease
from reticent.systems.posthoc.label_lattice import LatticeRows, label_lattice
from reticent.training.label_tables import cell_weights
from reticent.training.parts.label_classifiers import LabelAware

RULES = {"table": FiniteChannel, "hop": HopRelease, "response": FiniteChannel}


def rows(count: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three labels in stripes along the first of two coordinates; the third is dead."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (count, 3)) * [3.0, 1.0, 0.01]
    return X, np.minimum(X[:, 0].astype(int), 2)


def classifier(mechanism: str, epsilon: float = 2.0, **changes) -> PosthocClassifier:
    return PosthocClassifier(
        **{
            "epsilon": epsilon,
            "delta": 0.0,
            "radius": 0.2,
            "embedder": "identity",
            "classifier": LabelAware(hidden=(16,), epochs=10),
            "mechanism": mechanism,
            "random_state": 0,
            **changes,
        }
    )


@pytest.fixture(scope="module", params=RULES)
def fitted(request) -> PosthocClassifier:
    return classifier(request.param).fit(*rows())


def test_released_labels_follow_the_stated_chances(fitted) -> None:
    X, y = rows(4000, seed=1)
    chances = fitted.probabilities(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    released = fitted.release(X).values
    expected = chances[np.arange(len(y)), y]
    spread = 5 * np.sqrt((expected * (1 - expected)).sum())
    assert abs((released == y).sum() - expected.sum()) < spread
    assert not np.isin(released, [0, 1, 2], invert=True).any()


@pytest.mark.parametrize("change", ["entry", "column", "side"])
def test_a_changed_table_in_a_bundle_is_refused(change) -> None:
    """Past the bundle's digests, as somebody would who writes bundles: the check is made anew."""
    from reticent.systems.posthoc.query import PrivateQuery

    table = classifier("table").fit(*rows())
    settings, arrays = table.query_.describe()
    shares = arrays["channel.shares"].astype(np.int64)
    if change == "entry":
        shares[:, 0] = [1, 2, 2**32 - 3]
    if change == "column":
        shares[1, 4] += 1
    if change == "side":
        settings["rule"]["lattice"]["side"] -= 1
    arrays = {**arrays, "channel.shares": shares.astype(np.uint32)}
    with pytest.raises(CorruptBundle, match=r"e\^epsilon|do not sum|does not cover"):
        PrivateQuery.from_description(settings, arrays, None)


def test_auto_is_never_below_a_rung_on_calibration_rows() -> None:
    auto = classifier("auto", 0.5).fit(*rows())
    names = {plan.mechanism for plan in auto.considered_}
    assert {"table", "hop", "response", "stability", "noisy-max"} <= names
    assert auto.query_.plan.utility == max(plan.utility for plan in auto.considered_)


def test_lattice_uses_the_coordinates_that_tell_labels_apart() -> None:
    X, y = rows()
    network = classifier("response").fit(X, y).query_.network
    public = LatticeRows(X, y, network)
    lattice = label_lattice(public, radius=0.2)
    assert lattice.coordinates == (0, 1)  # the third would be one cell
    assert lattice.shape[0] >= 14
    assert label_lattice(public, radius=0.2, cells=20).coordinates == (0,)
    weights = cell_weights(X, public.posterior, lattice=lattice, seed=0)
    assert weights.shape == (3, lattice.size)
    assert weights.sum() == pytest.approx(1.0)
