from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from reticent.core import Norm
from reticent.core.norms import operator_norm, sign_patterns

entries = st.floats(-1e6, 1e6).map(
    lambda value: round(value, 9)
)  # squares of smaller numbers leave float64
vectors = st.lists(entries, min_size=1, max_size=6)


@given(vectors, st.data())
def test_hoelder(values, data):
    other = data.draw(st.lists(entries, min_size=len(values), max_size=len(values)))
    for norm in Norm:
        assert (
            abs(np.dot(values, other))
            <= norm.of(values) * norm.dual.of(other) * (1 + 1e-12) + 1e-300
        )


@pytest.mark.parametrize("norm", list(Norm))
def test_distances_of_near_rows_far_from_zero_are_exact(norm):
    """A matrix product of rows this long is off by more than 1 on any processor."""
    rows = 1e9 + np.random.default_rng(0).integers(0, 2**20, (30, 7)) * 2.0**-20
    moved = rows + 2.0**-20 * np.eye(7)[0]
    apart = norm.between(rows, np.concatenate([rows, moved]))
    assert (apart.diagonal() == 0.0).all()
    assert (apart[:, 30:].diagonal() == 2.0**-20).all()


@pytest.mark.parametrize("bits", range(1, 7))
def test_sign_patterns_are_all_of_them_once(bits):
    full = sign_patterns(bits)
    assert {tuple(row) for row in full} == set(itertools.product([-1.0, 1.0], repeat=bits))
    half = sign_patterns(bits, up_to_sign=True)
    assert {tuple(row) for row in np.concatenate([half, -half])} == set(
        itertools.product([-1.0, 1.0], repeat=bits)
    )
    assert len(half) == 2 ** (bits - 1)


def corners(matrix, input_norm):
    """Extreme points of the unit ball of l1 or l-infinity, where a convex function has its
    maximum.
    """
    size = matrix.shape[1]
    return (
        np.eye(size)
        if input_norm is Norm.L1
        else np.array(list(itertools.product([-1.0, 1.0], repeat=size)))
    )


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (2, 5), (4, 4), (5, 1)])
@pytest.mark.parametrize("output_norm", list(Norm))
def test_operator_norms(shape, output_norm):
    matrix = np.random.default_rng(0).normal(size=shape)
    for input_norm in (Norm.L1, Norm.LINF):
        expected = output_norm.of(corners(matrix, input_norm) @ matrix.T).max()
        assert operator_norm(matrix, input_norm, output_norm) == pytest.approx(expected)
    if output_norm is Norm.L2:
        assert operator_norm(matrix, Norm.L2, Norm.L2) == pytest.approx(
            np.linalg.svd(matrix)[1].max()
        )
    else:
        # By duality the l2 -> q norm is the largest l2 norm of M' y over the unit ball of the dual
        # norm of q.
        expected = Norm.L2.of(corners(matrix.T, output_norm.dual) @ matrix).max()
        assert operator_norm(matrix, Norm.L2, output_norm) == pytest.approx(expected)


def test_operator_norm_in_parts_is_the_whole(monkeypatch):
    """Wide matrices are taken in parts; a linear program per sign of the first output confirms
    one of them.
    """
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(14, 1200))
    whole = np.abs(sign_patterns(14, up_to_sign=True) @ matrix).sum(axis=1).max()
    assert operator_norm(matrix, Norm.LINF, Norm.L1) == pytest.approx(whole)
    row = linprog(-matrix[0], bounds=[(-1, 1)] * 1200)
    assert operator_norm(matrix[:1], Norm.LINF, Norm.LINF) == pytest.approx(-row.fun)
