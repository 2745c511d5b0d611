"""Margins of sums and norms against exact arithmetic, on sums made so that rounding loses as
much as it can.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from reticent.core import Norm
from reticent.core.norms import operator_norm
from reticent.core.rounding import operator_norm_bound, spectral_norm_bound, sum_error

OLD_MARGIN = 1.0 + 2.0**-40


def losing(terms: int) -> np.ndarray:
    """1, then terms that a running sum of 1 rounds away one by one, although together they
    matter.
    """
    values = np.full(terms, 0.99 * 2.0**-53)
    values[0] = 1.0
    return values


@pytest.mark.parametrize("terms", [2, 100, 2**13, 2**20])
def test_a_sum_in_the_worst_order_is_within_the_margin(terms: int) -> None:
    values = losing(terms)
    computed, exact = float(np.cumsum(values)[-1]), math.fsum(values)
    assert computed == 1.0 or terms > 2**53
    assert exact <= computed * (1 + sum_error(terms))
    # The margin is not far from what is lost.
    assert exact >= computed * (1 + 0.4 * sum_error(terms))


@pytest.mark.parametrize("columns", [1, 2])
def test_an_operator_norm_of_four_million_entries_is_not_below_the_exact_one(columns: int) -> None:
    rows = 2**22 // columns
    matrix = np.repeat(losing(rows)[:, None], columns, axis=1)
    exact = math.fsum(matrix[:, 0])
    plain = operator_norm(matrix, Norm.L1, Norm.L1)
    assert operator_norm_bound(matrix, Norm.L1, Norm.L1) >= exact
    if columns == 2:  # where numpy adds row by row
        assert plain * OLD_MARGIN < exact


@pytest.mark.parametrize(
    ("input_norm", "output_norm"),
    [(a, b) for a in Norm for b in Norm if (a, b) != (Norm.L2, Norm.L2)],
)
def test_bounds_hold_for_small_matrices_in_fractions(input_norm: Norm, output_norm: Norm) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        matrix = random.standard_normal((4, 3)) * 2.0 ** random.integers(-30, 30, (4, 3))
        vectors = {
            Norm.L1: np.eye(3),
            Norm.LINF: np.array([[1, a, b] for a in (-1, 1) for b in (-1, 1)]),
            Norm.L2: random.standard_normal((50, 3)),
        }[input_norm]
        bound = Fraction(operator_norm_bound(matrix, input_norm, output_norm))
        for vector in vectors.tolist():
            image = [
                sum(Fraction(w) * Fraction(x) for w, x in zip(row, vector, strict=True))
                for row in matrix.tolist()
            ]
            with mpmath.workdps(60):
                ratio = _norm(image, output_norm) / _norm([Fraction(x) for x in vector], input_norm)
                assert ratio <= mpmath.mpf(bound.numerator) / bound.denominator


def _norm(values: list[Fraction], norm: Norm) -> mpmath.mpf:
    sizes = [abs(mpmath.mpf(value.numerator) / value.denominator) for value in values]
    if norm is Norm.LINF:
        return max(sizes)
    return (
        mpmath.fsum(sizes)
        if norm is Norm.L1
        else mpmath.sqrt(mpmath.fsum(size**2 for size in sizes))
    )


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (30, 7), (7, 30)])
@pytest.mark.parametrize("scale", [1.0, 2.0**-200, 2.0**200])
def test_spectral_norms_are_bounded_and_tight(shape: tuple[int, int], scale: float) -> None:
    random = np.random.default_rng(sum(shape))
    for matrix in (
        random.standard_normal(shape),
        np.ones(shape),
        np.linalg.qr(random.standard_normal(shape))[0],
    ):
        with mpmath.workdps(50):
            gram = mpmath.matrix((matrix if shape[0] >= shape[1] else matrix.T).tolist())
            exact = mpmath.sqrt(max(mpmath.eigsy(gram.T * gram, eigvals_only=True)))
            bound = spectral_norm_bound(matrix * scale)
            assert bound >= exact * scale
            assert bound <= exact * scale * (1 + 1e-10)
