"""psi is 1-Lipschitz and levels of neighbours differ by at most 1, also where the bound equals
the proposal.
"""

from __future__ import annotations

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.core.errors import InvalidInput
from reticent.lipschitz import (
    IntervalBound,
    LayeredBound,
    LevelTest,
    LinearBound,
    stability_radius,
)
from reticent.lipschitz.radius import grid_radius, snap
from reticent.networks import Activation, ActivationKind, Affine, Network, affine_chain

ROWS = [
    *(("interval", norm) for norm in ("linf", "l2", "l1")),
    *(("interval smooth", norm) for norm in ("linf", "l2")),
]


def small_bound(kind, norm, seed=0):
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=(6, 2)), rng.normal(size=(2, 6))]
    biases = [rng.normal(size=6), np.zeros(2)]
    network = affine_chain(weights, biases)
    if kind.endswith("smooth"):
        layers = [Affine(w, b) for w, b in zip(weights, biases, strict=True)]
        network = Network((layers[0], Activation(ActivationKind.GELU), layers[1]), (2,))
    kinds = {"layered": LayeredBound, "linear": LinearBound}
    make = kinds.get(kind, IntervalBound)
    return make(network, domain=Box.cube(2, 3.0), input_norm=Norm(norm), output=Norm.L1)


def neighbours(rng, points, distance, norm, count):
    """Points at distance at most ``distance`` in ``norm``, half of them exactly as far as
    floating point allows.
    """
    step = rng.uniform(-1, 1, size=(count, points.shape[1]))
    step[::4] = np.sign(step[::4])
    step[1::4, 1:] = 0.0
    step *= (
        distance
        / norm.of(step)[:, None]
        * np.where(np.arange(count) % 2 == 0, 1.0, rng.random(count))[:, None]
    )
    moved = points + step
    far = norm.of(moved - points) > distance
    moved[far] = points[far]
    return moved


@pytest.mark.parametrize(("kind", "norm"), ROWS)
def test_psi_is_one_lipschitz_on_random_pairs(kind, norm):
    """15,000 pairs per row, 10**5 in all; no violation of |psi - psi'| <= d + tolerance +
    rounding of centers.
    """
    rng = np.random.default_rng(1)
    bound, count, tolerance = small_bound(kind, norm), 15_000, 0.05
    proposal = 0.8 * bound.global_bound()
    first = rng.uniform(-3.5, 3.5, size=(count, 2))  # some outside the domain
    second = first + rng.normal(size=first.shape) * rng.choice([1e-6, 1e-2, 0.3], size=(count, 1))
    psi, other = (
        stability_radius(bound, points, proposal=proposal, max_radius=1.0, tolerance=tolerance)
        for points in (first, second)
    )
    rounding = 2 * bound.input_step * Norm(norm).of_ones(2)
    assert (np.abs(psi - other) <= Norm(norm).of(first - second) + tolerance + rounding).all()
    assert len(np.unique(psi)) > 5  # the test has something to find


@pytest.mark.parametrize(("kind", "norm"), ROWS)
@pytest.mark.parametrize("chosen", ["exactly a bound", "just below a bound", "random"])
def test_levels_of_neighbours_differ_by_at_most_one(kind, norm, chosen):
    """5,000 pairs per row, 10**5 in all, with proposals that sit exactly on or one ulp below a
    computed bound.
    """
    rng = np.random.default_rng(2)
    bound, radius, count = small_bound(kind, norm), 0.07, 5_000
    plain = LevelTest(bound, 1.0, radius, 10)
    anchor = rng.uniform(-1, 1, size=(1, 2))
    center = snap(bound, anchor)
    touched = bound.bound_over(bound.region_on_grid(center, np.array([3.0 * plain.radius_steps])))[
        0
    ]
    proposal = {
        "exactly a bound": touched,
        "just below a bound": np.nextafter(touched, 0),
        "random": 0.7 * bound.global_bound(),
    }
    test = LevelTest(bound, float(proposal[chosen]), radius, 10)
    first = rng.uniform(-3.2, 3.2, size=(count, 2))
    first[: count // 2] = anchor + rng.normal(size=(count // 2, 2)) * 0.2
    first[0] = anchor[0]
    second = neighbours(rng, first, radius, Norm(norm), count)
    levels, others = test.levels(first), test.levels(second)
    assert (np.abs(levels - others) <= 1).all()
    assert len(np.unique(levels)) > 2
    if chosen == "exactly a bound":
        assert levels[0] >= 3
    if chosen == "just below a bound":
        assert levels[0] <= 2


@pytest.mark.parametrize(("kind", "norm"), ROWS)
def test_bad_pairs_have_level_zero(kind, norm):
    """Whenever f moves by more than proposal * R within a neighbourhood, both
    levels are 0.
    """
    rng = np.random.default_rng(3)
    bound, radius = small_bound(kind, norm), 0.1
    first = rng.uniform(-3, 3, size=(10_000, 2))
    second = neighbours(rng, first, radius, Norm(norm), len(first))
    for fraction in (0.05, 0.2, 0.5):
        test = LevelTest(bound, fraction * bound.global_bound(), radius, 5)
        values = [
            bound.network.forward(snap(bound, points) * bound.input_step)
            for points in (first, second)
        ]
        most = test.proposal * test.radius_steps * bound.input_step
        bad = np.abs(values[0] - values[1]).sum(axis=1) > most * (1 + 1e-12)
        assert bad.any() or fraction == 0.5
        assert not test.levels(first[bad]).any() if bad.any() else True
        assert not test.levels(second[bad]).any() if bad.any() else True


@pytest.mark.parametrize(("kind", "norm"), [*ROWS, ("layered", "linf"), ("linear", "l2")])
def test_levels_are_what_a_plain_scan_finds(kind, norm):
    rng = np.random.default_rng(4)
    bound = small_bound(kind, norm)
    test = LevelTest(bound, 0.75 * bound.global_bound(), 0.06, 7)
    count = 40 if kind == "layered" else 200
    points = rng.uniform(-3, 3, size=(count, 2))
    centers = snap(bound, points)
    scanned = np.zeros(count, dtype=int)
    for level in range(1, 8):
        radii = np.full(count, float(level * test.radius_steps))
        scanned += bound.bound_over(bound.region_on_grid(centers, radii)) <= test.proposal
    levels = test.levels(points)
    assert np.array_equal(levels, scanned)
    assert np.array_equal(
        np.concatenate([test.levels(points[[i]]) for i in range(20)]), levels[:20]
    )


@pytest.mark.parametrize(("kind", "norm"), ROWS)
def test_all_radii_at_once_find_what_the_search_finds(kind, norm, monkeypatch):
    bound = small_bound(kind, norm)
    test = LevelTest(bound, 0.75 * bound.global_bound(), 0.06, 7)
    points = np.random.default_rng(5).uniform(-3, 3, size=(60, 2))
    found = []
    for at_once in (0, 60 * 7):
        monkeypatch.setattr(type(bound), "_asked_at_once", at_once)
        found.append(test.levels(points))
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) > 2
    assert np.array_equal(test.levels_on_grid(snap(bound, points)), found[0])


def test_snapped_points_are_on_the_grid_and_near():
    bound = small_bound("interval", "l1")
    test = LevelTest(bound, 1.0, 0.1, 3)
    points = np.random.default_rng(5).uniform(-4, 4, size=(1000, 2))
    snapped, effective = (
        snap(bound, points) * bound.input_step,
        test.radius_steps * bound.input_step,
    )
    assert np.array_equal(np.round(snapped / bound.input_step), snapped / bound.input_step)
    assert (np.abs(snapped - bound.domain.clip(points)) <= bound.input_step / 2).all()
    assert effective >= 0.1 + 2 * bound.input_step
    assert effective == pytest.approx(0.1, rel=1e-3)
    assert grid_radius(bound, 0.1) == test.radius_steps


def test_psi_on_a_network_known_in_closed_form():
    """f(x) = max(x, 0): psi is the distance to the kink, or unlimited where the slope itself is
    allowed.
    """
    bound = LayeredBound(
        affine_chain([[[1.0]], [[1.0]]], [[0.0], [0.0]]),
        domain=Box.cube(1, 4.0),
        input_norm=Norm.LINF,
        output=Norm.L1,
    )
    points = np.linspace(-3.9, 3.9, 53)[:, None]
    psi = stability_radius(bound, points, proposal=0.5, max_radius=2.0, tolerance=1 / 64)
    expected = np.clip(-points[:, 0], 0, 2.0)
    assert (psi <= expected + 1e-5).all()
    assert (psi >= np.minimum(expected, 2.0) - 1 / 64 - 1e-4).all()
    assert (
        stability_radius(bound, points, proposal=1.01, max_radius=2.0, tolerance=0.3) == 2.0
    ).all()
    assert (
        stability_radius(bound, points, proposal=1e-9, max_radius=2.0, tolerance=3.0)[
            points[:, 0] > 0
        ]
        == 0.0
    ).all()


@pytest.mark.parametrize(
    ("center", "radius"), [(5.0, 1.0), (-4.5, 3.0), (float("nan"), 1.0), (0.0, -1.0)]
)
def test_balls_around_points_outside_the_domain_are_refused(center: float, radius: float) -> None:
    bound = IntervalBound(
        affine_chain([[[1.0]]], [[0.0]]),
        domain=Box.cube(1, 4.0),
        input_norm=Norm.LINF,
        output=Norm.L1,
    )
    step = bound.input_step
    with pytest.raises(InvalidInput, match="centers"):
        bound.region_on_grid(np.array([[center]]) / step, np.array([radius]) / step)
    with pytest.raises(InvalidInput, match="whole grid steps"):
        bound.region_on_grid(np.array([[0.5]]), np.array([1.0]))
