"""What a radius means: counts against brute force, rules against what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from reticent.core.norms import Norm
from reticent.radius import survey_radius
from reticent.radius.distances import row_distances

METRIC = {Norm.L1: "cityblock", Norm.L2: "euclidean", Norm.LINF: "chebyshev"}


def rows(columns: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(columns)
    points = random.normal(size=(300, columns)).round(1)  # with ties and rows that repeat
    points[:20] = points[20:40]
    return points, random.integers(0, 3, 300)


@pytest.mark.parametrize("norm", list(Norm))
@pytest.mark.parametrize("columns", [2, 40])
def test_counts_are_those_of_all_pairs(norm: Norm, columns: int) -> None:
    points, labels = rows(columns)
    apart = cdist(points, points, METRIC[norm])
    np.fill_diagonal(apart, np.inf)
    radius = float(np.quantile(apart, 0.05)) + 1e-6
    found = row_distances(points, norm, radii=[radius], neighbour=3, columns={"label": labels})
    np.testing.assert_array_equal(found.within[0], (apart <= radius).sum(axis=1))
    np.testing.assert_allclose(found.nearest, np.sort(apart, axis=1)[:, 2], rtol=1e-12)
    other = np.where(labels[:, None] != labels, apart, np.inf).min(axis=1)
    np.testing.assert_allclose(found.other["label"], other, rtol=1e-12, atol=1e-12)


def test_wide_rows_that_lie_exactly_at_the_radius_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of rows far from their mean round by more than the gap between .5 and the next
    double; such pairs are computed again.
    """
    points = np.zeros((60, 16))
    points[:30, 0], points[30:, 0] = 1000.0, -1000.0
    points[:, 1] = 0.5 * (np.arange(60) % 2)
    monkeypatch.setattr("reticent.radius.distances._ENTRIES", 700)  # several blocks
    found = row_distances(points, Norm.L2, radii=[0.5, 0.4999], neighbour=1, columns={})
    assert found.within.tolist() == [[29] * 60, [14] * 60]


def test_rules_give_what_they_promise() -> None:
    points = np.random.default_rng(1).uniform(size=(500, 2))
    half = points[:, 0] > 0.5
    names = survey_radius(
        points, radii=[], epsilons=[0.2, 0.5, 2.0], columns={"half": half, "none": np.zeros(500)}
    ).rules
    radii = [rule.radius for rule in names]
    again = survey_radius(
        points, radii=radii[:2] + radii[3:5], epsilons=[0.2, 0.5], columns={"half": half}
    )
    by_radius = {at.radius: at for at in again.at}
    assert by_radius[radii[0]].median_neighbours >= 10
    assert by_radius[radii[1]].counterfactuals["half"] >= 0.5
    assert math.isnan(radii[2])  # all rows have the same value
    caps = {(cap.radius, cap.epsilon): cap.median_pair for cap in again.caps}
    assert caps[radii[3], 0.2] <= 0.75 < caps[radii[3], 0.5]
    assert caps[radii[4], 0.5] <= 0.75
    assert radii[3] < radii[4]  # a smaller epsilon affords more steps, and so a smaller radius
    assert math.isnan(radii[5])  # one step at epsilon 2 is above the cap already


@pytest.mark.parametrize("delta", [1e-4, 0.02, 0.3])
def test_the_rule_of_the_median_pair_counts_delta(delta: float) -> None:
    points = np.random.default_rng(1).uniform(size=(500, 2))
    settings = {"epsilons": [0.1], "delta": delta}
    rule = survey_radius(points, radii=[], **settings).rules[-1]
    pure = survey_radius(points, radii=[], epsilons=[0.1]).rules[-1]
    assert rule.radius > pure.radius or delta == 1e-4
    least, nearly = (
        survey_radius(points, radii=[factor * rule.radius], **settings).caps[0]
        for factor in (1.0, 0.9)
    )
    assert least.median_pair <= 0.75 < nearly.median_pair


@pytest.mark.parametrize("columns", [2, 20])
def test_shares_are_the_empirical_distribution(columns: int) -> None:
    random = np.random.default_rng(0)
    points = random.uniform(size=(400, columns))
    half = points[:, 0] > 0.5
    found = survey_radius(points, radii=[], epsilons=[1.0], columns={"half": half})
    apart = np.abs(points[:, None] - points).max(axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearest = {
        "another row": apart.min(axis=1),
        "10 other rows": np.sort(apart, axis=1)[:, 9],
        "a row with another half": np.where(half[:, None] != half, apart, np.inf).min(axis=1),
    }
    assert set(found.shares) == set(nearest)
    for name, distances in nearest.items():
        assert 100 < len(found.shares[name]) <= 200
        for radius, share in found.shares[name]:
            assert share == pytest.approx((distances <= radius * (1 + 1e-12)).mean())
        assert found.shares[name][-1][1] == 1.0
    drawn = (found.shares["10 other rows"], found.shares["a row with another half"])
    for rule, steps in zip(found.rules, drawn, strict=False):  # a rule stands where its curve is
        below = [share for radius, share in steps if radius <= rule.radius * (1 + 1e-12)]
        assert below[-1] == pytest.approx(0.5, abs=0.01)


def test_a_radius_that_buys_nothing_is_named() -> None:
    """Gaussian points of 50 coordinates lie far from all others, points of a line do not."""
    random = np.random.default_rng(0)
    far = survey_radius(random.normal(size=(200, 50)), radii=[], epsilons=[1.0], norm="l2")
    nobody, nothing, none = far.advice()
    assert f"{far.first[0]:.4g}" in nobody
    assert f"{far.random_pair:.4g}" in nothing
    assert "radius=None" in none
    least = survey_radius(
        random.normal(size=(200, 50)),
        radii=[0.49 * far.random_pair, 0.51 * far.random_pair, 1.01 * far.random_pair],
        epsilons=[],
        norm="l2",
    )
    assert [at.median_hops for at in least.at] == [3, 2, 1]
    line = survey_radius(random.normal(size=(200, 1)), radii=[], epsilons=[1.0])
    assert len(line.advice()) == 2
