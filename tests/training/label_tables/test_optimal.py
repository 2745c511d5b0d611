"""The optimal table against linear programs over all pairs, solved by HiGHS."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_matrix

from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, excess
from reticent.training.label_tables import exact_table
from reticent.training.label_tables.optimal import simplex


def grid(shape: tuple[int, ...], reach: int = 1) -> Lattice:
    return Lattice(
        exponent=0,
        lower=(0,) * len(shape),
        shape=shape,
        side=1,
        reach=reach,
        coordinates=tuple(range(len(shape))),
        dimension=len(shape),
    )


def best_worth(weights: np.ndarray, lattice: Lattice, epsilon: float) -> float:
    """Worth of the best table: one constraint for each ordered touching pair and label."""
    labels, cells = weights.shape
    index = np.stack(np.unravel_index(np.arange(cells), lattice.shape), axis=1)
    apart = np.abs(index[:, None] - index[None]).max(axis=2)
    pairs = np.argwhere((apart > 0) & (apart <= lattice.reach))
    ratios = lil_matrix((len(pairs) * labels, cells * labels))
    sums = lil_matrix((cells, cells * labels))
    for row, (first, second) in enumerate(pairs):
        for label in range(labels):
            ratios[row * labels + label, label * cells + first] = 1.0
            ratios[row * labels + label, label * cells + second] = -math.exp(epsilon)
    for cell in range(cells):
        sums[cell, np.arange(labels) * cells + cell] = 1.0
    solved = linprog(
        -weights.ravel(),
        A_ub=ratios.tocsr(),
        b_ub=np.zeros(ratios.shape[0]),
        A_eq=sums.tocsr(),
        b_eq=np.ones(cells),
        bounds=(0, 1),
        method="highs",
    )
    return float(-solved.fun)


def random_weights(lattice: Lattice, labels: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(labels, 0.3), lattice.size).T * rng.random(lattice.size)


@pytest.mark.parametrize(
    ("shape", "reach"),
    [((6,), 1), ((6,), 2), ((4, 3), 1), ((3, 3, 2), 1), ((5, 4), 2), ((1, 5), 1)],
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_bound_and_table_enclose_the_linear_program(shape, reach, epsilon) -> None:
    lattice = grid(shape, reach)
    weights = random_weights(lattice, 3, seed=0)
    best = best_worth(weights, lattice, epsilon)
    found = exact_table(weights, lattice=lattice, epsilon=epsilon, iterations=1500)
    assert best * (1 - 1e-7) <= found.bound <= best * 1.002
    assert found.solved == pytest.approx(best, rel=2e-3)
    assert excess(found.shares, found.shares, lattice=lattice, epsilon=epsilon) == 0
    assert found.worth == pytest.approx(float((weights * found.shares).sum()) / WHOLE)
    assert 0.985 * best <= found.worth <= best * (1 + 1e-9)


@pytest.mark.parametrize("iterations", [50, 200])
def test_bound_holds_before_convergence(iterations) -> None:
    for seed in range(5):
        lattice = grid((4, 4))
        weights = random_weights(lattice, 4, seed)
        found = exact_table(weights, lattice=lattice, epsilon=1.0, iterations=iterations)
        assert found.bound >= best_worth(weights, lattice, 1.0) * (1 - 1e-7)


def test_projection_is_the_nearest_distribution() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200, 6)).astype(np.float32) * 2
    moved = simplex(points)
    assert np.abs(moved.sum(axis=1) - 1).max() < 1e-5
    assert moved.min() >= 0
    # optimality: no other distribution makes a smaller angle with points - moved
    gap = points - moved
    best = (gap * moved).sum(axis=1)
    assert (gap.max(axis=1) <= best + 1e-4).all()
