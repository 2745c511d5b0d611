"""Tables, hop maps and responses in ``PosthocClassifier``: fitted, released, stored, refused."""

from __future__ import annotations

import numpy as np
import pytest

from reticent import PosthocClassifier
from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.core.norms import Norm
from reticent.grids.lattice import Lattice
from reticent.mechanisms import FiniteChannel, HopRelease
from reticent.networks import Affine, Network
from reticent.systems import Calibration
from reticent.systems.posthoc import label_lattice as label_lattice_module
from reticent.systems.posthoc.label_lattice import (
    LatticeRows,
    cell_weights,
    fitted_rules,
    label_lattice,
    label_lattices,
    promising_lattice,
)
from reticent.training.label_tables import ExactTable, exact_table
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


def test_neighbours_have_close_chances(fitted) -> None:
    X, _ = rows(3000, seed=2)
    moved = X + np.random.default_rng(0).choice([-0.2, 0.2], X.shape)
    ratio = np.log(fitted.probabilities(X)) - np.log(fitted.probabilities(moved))
    assert 0.5 < np.abs(ratio).max() <= 2.0 + 1e-9


def test_bundles_are_read_back(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "bundle")
    loaded = PosthocClassifier.load(tmp_path / "bundle")
    X, _ = rows(50, seed=3)
    np.testing.assert_array_equal(loaded.probabilities(X), fitted.probabilities(X))
    assert loaded.bundle_identity_ == fitted.bundle_identity_


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
    assert {"table", "hop", "response", "softmax", "stability", "noisy-max"} <= names
    assert auto.query_.plan.utility == max(plan.utility for plan in auto.considered_)


def test_a_table_is_solved_until_it_is_close_to_its_bound_or_costs_too_much(monkeypatch) -> None:
    X, y = rows()
    public = LatticeRows(X, y, classifier("response").fit(X, y).query_.network)
    near = Neighborhood(Norm.LINF, 0.8, "embedding")
    given: list[int] = []
    found: list[ExactTable] = []

    def kept(weights, *, iterations, **settings):
        given.append(iterations)
        found.append(exact_table(weights, iterations=iterations, **settings))
        return found[-1]

    def table() -> None:
        next(fitted_rules("table", public, epsilon=1.0, adjacency=near, seed=0))

    monkeypatch.setattr(label_lattice_module, "exact_table", kept)
    table()
    assert given[-1] == 1000
    assert found[-1].iterations < 1000
    assert found[-1].bound - found[-1].worth <= 0.005
    monkeypatch.setattr(label_lattice_module, "_STEPS", 1.0)
    table()
    assert given[-1] == 200


def test_tests_and_rules_do_not_go_together() -> None:
    with pytest.raises(InvalidParameter, match="path='local'"):
        classifier("table", calibration=Calibration(path="local")).fit(*rows())


def test_lattice_uses_the_coordinates_that_tell_labels_apart() -> None:
    X, y = rows()
    network = classifier("response").fit(X, y).query_.network
    public = LatticeRows(X, y, network)
    lattice = label_lattice(public, radius=0.2)
    assert lattice.coordinates == (0, 1)  # the third would be one cell
    assert lattice.shape[0] >= 14
    assert label_lattice(public, radius=0.2, cells=20).coordinates == (0,)
    weights = cell_weights(public, lattice, seed=0)
    assert weights.shape == (3, lattice.size)
    assert weights.sum() == pytest.approx(1.0)


def test_fitted_rules_are_audited_at_neighbours_of_rows(fitted) -> None:
    from reticent.audit import audit_fitted

    X, _ = rows(30, seed=5)
    audit = audit_fitted(fitted, X, draws=4000, alpha=0.01, seed=0)
    assert not audit.refuted
    assert any("largest change of a label's chance" in str(pair) for pair in audit.pairs)
    assert len(audit.pairs) == 2  # neighbours of rows, and the worst cells of all


def test_wider_cells_over_more_coordinates_are_tried_where_they_tell_more() -> None:
    """Eight labels by three coordinates: two of them cannot name more than half of the rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (4000, 3)) * [1.0, 0.99, 0.98]
    bits = (X > 0.5).astype(int)
    y = bits @ [4, 2, 1]
    signs = 2.0 * (np.arange(8)[:, None] >> np.array([2, 1, 0]) & 1) - 1.0
    logits = Affine(40.0 * signs, np.zeros(8))
    public = LatticeRows(X, y, Network((Affine(np.eye(3), np.full(3, -0.5)), logits), (3,)))
    lattices = label_lattices(public, radius=0.05, cells=600.0)
    assert [sum(size > 1 for size in lattice.shape) for lattice in lattices] == [2, 3]
    assert all(lattice.covers(0.05) for lattice in lattices)
    assert all(lattice.size <= 600 for lattice in lattices)
    assert not lattices[0].covers(0.06)
    chosen = promising_lattice(public, lattices, epsilon=2.0, seed=0)
    assert chosen is lattices[1]
    assert promising_lattice(public, lattices[:1], epsilon=2.0, seed=0) is lattices[0]


def test_of_many_coordinates_as_many_are_used_as_leave_few_cells() -> None:
    """Cells of all eight would be more than a lattice can have, wide ones too."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (500, 8))
    y = (X[:, 0] > 0.5).astype(int)
    public = LatticeRows(X, y, Network((Affine(np.eye(2, 8), np.zeros(2)),), (8,)))
    for radius in (0.02, 1e-5):
        lattices = label_lattices(public, radius=radius)
        assert all(lattice.covers(radius) for lattice in lattices)
        assert all(lattice.size <= 4 * len(X) for lattice in lattices[1:])


def test_of_hundreds_of_coordinates_few_lattices_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all coordinates fit into one cell: whether one more tells more is seen beforehand."""
    made: list[tuple[int, ...]] = []
    over = Lattice.over

    def counted(points: np.ndarray, *, coordinates: tuple[int, ...], **settings) -> Lattice:
        made.append(coordinates)
        return over(points, coordinates=coordinates, **settings)

    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (400, 300)) * np.where(np.arange(300) < 3, 1.0, 1e-3)
    y = (X[:, :3] > 0.5).astype(int) @ [4, 2, 1]
    public = LatticeRows(X, y, Network((Affine(np.eye(8, 300), np.zeros(8)),), (300,)))
    monkeypatch.setattr(Lattice, "over", counted)
    lattices = label_lattices(public, radius=0.05)
    assert [lattice.coordinates for lattice in lattices[1:]] == made[-len(lattices) + 1 :]
    assert len(made) <= len(lattices) + 1
