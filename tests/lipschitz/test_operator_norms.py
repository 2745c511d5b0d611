"""Closed-form constants: against exact rationals, sign enumeration and pairs of points, at any
width.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.core.errors import CertificationFailed
from reticent.core.norms import operator_norm
from reticent.lipschitz import IntervalBound, OperatorNormBound
from reticent.lipschitz.norm_products import matrix_bound
from reticent.lipschitz.operator_norms import is_sorting_network
from reticent.networks import (
    Activation,
    ActivationKind,
    Affine,
    Network,
    affine_chain,
)
from reticent.networks.sorting import pair_sort

NORMS = (Norm.L1, Norm.L2, Norm.LINF)
OUTPUTS = (*NORMS, "spread")


def orthonormal_rows(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    return np.linalg.qr(rng.normal(size=(columns, rows)))[0].T


def sorting_network(rng: np.random.Generator, *sizes: int) -> Network:
    layers = []
    for first, second in pairwise(sizes):
        weight = (
            orthonormal_rows(rng, second, first)
            if second <= first
            else orthonormal_rows(rng, first, second).T
        )
        layers += [Affine(weight, rng.normal(size=second)), pair_sort(second)]
    return Network(tuple(layers[:-1]), (sizes[0],))


def measure(output: Norm | str, rows: np.ndarray) -> np.ndarray:
    return np.ptp(rows, axis=1) if output == "spread" else output.of(rows, axis=1)


@pytest.mark.parametrize("input_norm", NORMS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_small_matrices_have_their_exact_norm(input_norm: Norm, output: Norm | str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        matrix = rng.normal(size=(4, 5)) * 2.0 ** rng.integers(-3, 4, size=(4, 1))
        if output == "spread":
            pairs = np.array([matrix[i] - matrix[j] for i in range(4) for j in range(i)])
            exact = operator_norm(pairs, input_norm, Norm.LINF)
        else:
            exact = operator_norm(matrix, input_norm, output)
        bound = matrix_bound(matrix, input_norm, output)
        assert exact <= bound <= exact * (1 + 1e-9)


@pytest.mark.parametrize("input_norm", NORMS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_no_pair_of_points_moves_farther_apart_at_any_width(
    input_norm: Norm, output: Norm | str
) -> None:
    rng = np.random.default_rng(1)
    network = sorting_network(rng, 60, 30, 24, 16)
    bound = OperatorNormBound(
        network, domain=Box.cube(60, 2.0), input_norm=input_norm, output=output
    ).global_bound()
    points = rng.uniform(-2, 2, size=(4000, 60))
    steps = rng.normal(size=(4000, 60)) * 10.0 ** rng.uniform(-6, 0, size=(4000, 1))
    steps[::2] = np.sign(steps[::2]) * 1e-3
    steps[1::4] = np.eye(60)[rng.integers(0, 60, 1000)]
    moved = measure(output, network.forward(points + steps) - network.forward(points))
    assert (moved <= bound * input_norm.of(steps, axis=1) * (1 + 1e-9) + 1e-12).all()


def test_orthonormal_layers_with_sorted_pairs_have_constant_one_in_l2_and_it_is_reached() -> None:
    rng = np.random.default_rng(2)
    network = sorting_network(rng, 512, 64, 32, 8)
    assert is_sorting_network(network)
    bound = OperatorNormBound(
        network, domain=Box.cube(512, 1.0), input_norm=Norm.L2, output=Norm.L2
    )
    assert 1.0 <= bound.global_bound() <= 1.0 + 1e-9
    # Downward layers of orthonormal rows: a step along a row that the next layers keep has slope 1.
    point = rng.normal(size=(1, 512))
    gradient = np.linalg.svd(_jacobian(network, point))[1]
    assert gradient[0] == pytest.approx(1.0, abs=1e-6)
    # Intervals read sorting as a residual sum. They are cut at the same constant.
    interval = IntervalBound(
        network, domain=Box.cube(512, 1.0), input_norm=Norm.L2, output=Norm.L2
    ).global_bound()
    assert interval == bound.global_bound()


def _jacobian(network: Network, point: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(point.shape[1])
    return ((network.forward(point + steps) - network.forward(point)) / 1e-6).T


def test_wide_pairs_of_norms_that_would_take_2_to_the_512_sign_vectors() -> None:
    identity = np.eye(512)
    assert matrix_bound(identity, Norm.LINF, Norm.L2) == pytest.approx(512**0.5)
    assert matrix_bound(identity, Norm.LINF, Norm.L1) == pytest.approx(512)
    assert matrix_bound(identity, Norm.L2, Norm.L1) == pytest.approx(512**0.5)
    turn = orthonormal_rows(np.random.default_rng(3), 16, 512)
    # The spectrum is the better bound here: rows would say about 16^(1/2) 512^(1/2) (2 / pi)^(1/2).
    assert matrix_bound(turn, Norm.LINF, Norm.L2) <= 512**0.5 * (1 + 1e-9)


def test_the_l2_constant_is_at_least_the_exact_rational_one() -> None:
    """Against exact arithmetic: x' (B^2 I - W' W) x must be positive for all x, by exact
    elimination.
    """
    rng = np.random.default_rng(4)
    for _ in range(5):
        matrix = rng.normal(size=(3, 4))
        bound = Fraction(matrix_bound(matrix, Norm.L2, Norm.L2))
        exact = [[Fraction(float(value)) for value in row] for row in matrix]
        gram = [
            [sum(a * b for a, b in zip(exact[i], exact[j], strict=True)) for j in range(3)]
            for i in range(3)
        ]

        def leading_minors_are_positive(scale: Fraction, gram: list[list[Fraction]] = gram) -> bool:
            rows = [
                [(scale**2 if i == j else Fraction(0)) - gram[i][j] for j in range(3)]
                for i in range(3)
            ]
            for place in range(3):
                if rows[place][place] <= 0:
                    return False
                for below in range(place + 1, 3):
                    factor = rows[below][place] / rows[place][place]
                    rows[below] = [
                        value - factor * above
                        for value, above in zip(rows[below], rows[place], strict=True)
                    ]
            return True

        assert leading_minors_are_positive(bound)
        assert not leading_minors_are_positive(bound * Fraction(999_999, 1_000_000))


@pytest.mark.parametrize(("input_norm", "output"), list(product(NORMS, NORMS)))
def test_an_activation_counts_with_its_largest_slope(input_norm: Norm, output: Norm) -> None:
    matrix = np.random.default_rng(5).normal(size=(3, 2))
    layers = (Affine(matrix, np.zeros(3)), Activation(ActivationKind.SIGMOID))
    bound = OperatorNormBound(
        Network(layers, (2,)), domain=Box.cube(2, 1.0), input_norm=input_norm, output=output
    )
    assert bound.global_bound() == pytest.approx(
        0.25 * operator_norm(matrix, input_norm, output), rel=1e-9
    )


def test_a_product_of_tiny_norms_is_not_lost_before_a_steep_layer() -> None:
    scales = [2.0**-390] * 3 + [2.0**390] * 3
    chain = Network(tuple(Affine(scale * np.eye(2), np.zeros(2)) for scale in scales), (2,))
    far = 2.0**200  # so that nothing underflows on the way, and the chain's slope is 1
    bound = OperatorNormBound(
        chain, domain=Box.cube(2, far), input_norm=Norm.L2, output=Norm.L2
    ).global_bound()
    moved = np.ptp(chain.forward(np.array([[0.0, 0.0], [far, 0.0]])), axis=0)[0]
    assert moved == far
    assert bound * far >= moved


def test_tiny_weights_are_charged_and_huge_ones_refused() -> None:
    assert matrix_bound(np.full((2, 2), 2.0**-1060), Norm.L2, Norm.L2) >= 2.0**-1059
    with pytest.raises(CertificationFailed, match="weights of at most"):
        matrix_bound(np.full((2, 2), 2.0**401), Norm.L2, Norm.L2)
    steep = affine_chain([np.full((2, 2), 2.0**399)] * 4, [np.zeros(2)] * 4)
    with pytest.raises(CertificationFailed, match="not a finite number"):
        OperatorNormBound(steep, domain=Box.cube(2, 1.0), input_norm=Norm.L2, output=Norm.L2)
