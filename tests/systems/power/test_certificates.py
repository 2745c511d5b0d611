"""Proved constants of both encoders: never below sampled quotients or sampled Jacobians, exact
where exactness is known.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from reticent.core.errors import CertificationFailed, UnsupportedNetwork
from reticent.networks import Affine, Network, Residual, affine_chain
from reticent.networks.sorting import pair_sort
from reticent.systems.power.certificates import sorting_bound, spectral_bound
from reticent.training.power.lipschitz import SortingNetwork


def test_spectral_bound_is_exact_where_columns_are_orthonormal_and_valid_elsewhere() -> None:
    random = np.random.default_rng(0)
    for shape in ((5, 3), (3, 5), (4, 4), (1, 6), (6, 1)):
        matrix = random.normal(size=shape)
        largest = np.linalg.norm(matrix, 2)
        assert largest <= spectral_bound(matrix) <= largest * np.sqrt(min(shape)) * (1 + 1e-9)
        frame = np.linalg.svd(matrix, full_matrices=False)
        assert spectral_bound(3.0 * frame[0] @ frame[2]) == pytest.approx(3.0, rel=1e-11)
    assert spectral_bound(np.zeros((2, 3))) == 0.0


def exact_squares(matrix: np.ndarray) -> Fraction:
    """Largest absolute row sum of W'W (or WW'), which is at least ||W||^2, in rational numbers."""
    short = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    rows = [[Fraction(float(value)) for value in row] for row in short]
    return max(
        sum(abs(sum(a * b for a, b in zip(row, other, strict=True))) for other in rows)
        for row in rows
    )


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1.5e-162, 1e-155, 1.0, 1e155, 1e300])
def test_spectral_bound_covers_underflow(scale: float) -> None:
    matrix = np.zeros((40, 2))
    matrix[:-1, 0] = matrix[-1, 1] = scale
    matrix[:20, 1] = 1e-8 * scale
    assert Fraction(spectral_bound(matrix)) ** 2 >= exact_squares(matrix)
    slack = 1e-9 if scale > 1e-310 else 0.01
    assert Fraction(spectral_bound(matrix)) ** 2 <= exact_squares(matrix) * Fraction(1 + slack)
    assert spectral_bound(np.full((2, 2), 1.7e308)) == np.inf


def test_a_chain_of_tiny_and_huge_layers_has_its_true_constant() -> None:
    """Gram matrices of middle layers underflow, and 1e-160 times 1e-160 is no normal number; the
    map is steep all the same.
    """
    down = np.zeros((4096, 2))
    down[:-1, 0], down[-1, 1] = 1.5e-162, 2.3e-162
    last = np.full((2, 4096), 1 / 64) * np.array([[1.0], [0.0]])
    chains = (
        [1e60 * np.eye(2), 1e60 * np.eye(2), down, 1e40 * last],
        [1e-160 * np.eye(2)] * 2 + [1e160 * np.eye(2)] * 2,
    )
    for weights in chains:
        chain = Network(tuple(Affine(weight, np.zeros(len(weight))) for weight in weights), (2,))
        moved = [
            float(value)
            for value in np.ptp(chain.forward(np.array([[0.0, 0.0], [0.3, 0.0]])), axis=0)
        ]
        assert np.linalg.norm(moved) > 0.28
        assert sorting_bound(chain) * 0.3 >= np.linalg.norm(moved)
        assert sorting_bound(chain) < 10
    for scale in (0.0, 1e-100, 1e100):
        with pytest.raises(CertificationFailed, match="beyond 2"):
            sorting_bound(Network((Affine(scale * np.eye(2), np.zeros(2)),), (2,)))


@pytest.mark.parametrize("seed", range(5))
def test_sorting_constant_covers_every_quotient(seed: int) -> None:
    torch.manual_seed(seed)
    network = SortingNetwork((7, 6, 4, 2)).description()
    bound = sorting_bound(network)
    assert bound == pytest.approx(1.0, rel=1e-9)
    random = np.random.default_rng(seed)
    first = random.normal(size=(5000, 7))
    second = first + random.normal(size=(5000, 7)) * 10.0 ** random.uniform(-4, 0, (5000, 1))
    moved = np.linalg.norm(network.forward(first) - network.forward(second), axis=1)
    assert (moved <= bound * np.linalg.norm(first - second, axis=1) * (1 + 1e-9)).all()


def test_only_affine_layers_and_pair_sorts_pass() -> None:
    with pytest.raises(UnsupportedNetwork, match="affine layers and pair sorts"):
        sorting_bound(affine_chain([np.eye(2), np.eye(2)], [np.zeros(2), np.zeros(2)]))
    first, activation, last = pair_sort(4).branch
    assert isinstance(last, Affine)
    stretched = Residual((first, activation, Affine(2.0 * last.weight, last.bias)))
    with pytest.raises(UnsupportedNetwork, match="pair sorts"):
        sorting_bound(Network((Affine(np.eye(4), np.zeros(4)), stretched), (4,)))
