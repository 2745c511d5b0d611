"""The bound of one hidden layer: its formula by brute force, its table, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from reticent.core import Box, Norm
from reticent.grids.arithmetic import Interval
from reticent.lipschitz import LayeredBound
from reticent.lipschitz.neuron_table import BLOCK, NeuronTable
from reticent.networks import affine_chain


def formula(first, bias, last, low, high):
    """max over s, t of sum_on c + sum_unstable max(0, c), written out."""
    best = 0.0
    reach = np.abs(first) @ ((high - low) / 2)
    middle = first @ ((high + low) / 2) + bias
    on, off = middle - reach >= 0, middle + reach < 0
    for s in itertools.product([-1, 1], repeat=len(last)):
        for t in itertools.product([-1, 1], repeat=first.shape[1]):
            share = (np.array(s) @ last) * (first @ np.array(t))
            best = max(best, share[on].sum() + np.maximum(share[~on & ~off], 0).sum())
    return best


def test_one_hidden_layer_is_the_formula():
    rng = np.random.default_rng(0)
    first, last, bias = rng.normal(size=(7, 4)), rng.normal(size=(3, 7)), rng.normal(size=7)
    bound = LayeredBound(
        affine_chain([first, last], [bias, np.zeros(3)]),
        domain=Box.cube(4, 2.0),
        input_norm=Norm.LINF,
        output=Norm.L1,
    )
    for _ in range(25):
        center, radius = rng.uniform(-2, 2, size=4), rng.random()
        expected = formula(
            first, bias, last, np.maximum(center - radius, -2), np.minimum(center + radius, 2)
        )
        assert bound.bound(center[None], radius)[0] == pytest.approx(expected, rel=1e-5)


def table_of(rng, hidden, functionals, directions, whole=None):
    first, last = rng.normal(size=(hidden, 4)), rng.normal(size=(functionals, hidden))
    signs = np.sign(rng.normal(size=(directions, 4)))
    if whole is None:
        whole = Interval(np.zeros((1, hidden)), np.ones((1, hidden)), 1.0)
    return first, last, signs, NeuronTable.build(first, last, np.abs(last), signs, whole)


def test_table_sums_stay_exact_in_float32():
    rng = np.random.default_rng(1)
    *_, table = table_of(rng, 40, 20, 30)
    assert len(table.blocks) == -(-600 // BLOCK)
    for block in table.blocks:
        assert np.array_equal(block, np.round(block))
        assert 4 * np.abs(block.astype(np.float64)).sum(axis=0).max() < 2**24 + 4 * 40
    assert (np.diff(table.reach) <= 0).all()


def test_pruned_search_is_the_full_maximum():
    rng = np.random.default_rng(2)
    first, last, signs, table = table_of(rng, 12, 40, 40)
    slopes = np.sort(rng.integers(0, 2, size=(2, 300, 12)), axis=0).astype(float)
    found = table.largest(Interval(slopes[0], slopes[1], 1.0))
    share = (last[:, None, :] * (signs @ first.T)[None]).reshape(-1, 12)
    columns = np.concatenate([share, -share])
    best = (slopes[0] @ columns.T + (slopes[1] - slopes[0]) @ np.maximum(columns, 0).T).max(axis=1)
    assert (found >= best).all()
    assert found == pytest.approx(best, rel=1e-4, abs=1e-4)
    assert np.array_equal(
        found,
        np.concatenate(
            [table.largest(Interval(a[None], b[None], 1.0)) for a, b in zip(*slopes, strict=True)]
        ),
    )


def test_units_that_never_change_are_used_and_change_nothing():
    rng = np.random.default_rng(3)
    lower, upper = np.zeros((1, 12)), np.ones((1, 12))
    lower[0, :4], upper[0, 4:8] = 1.0, 0.0
    plain = table_of(np.random.default_rng(4), 12, 10, 10)[-1]
    known = table_of(np.random.default_rng(4), 12, 10, 10, Interval(lower, upper, 1.0))[-1]
    slopes = np.sort(rng.integers(0, 2, size=(2, 200, 12)), axis=0).astype(float)
    slopes[:, :, :4], slopes[:, :, 4:8] = 1.0, 0.0
    question = Interval(slopes[0], slopes[1], 1.0)
    assert np.array_equal(plain.largest(question), known.largest(question))
    assert known.reach[0] < plain.reach[0]


def test_cancelling_outputs_do_not_hide_rounding():
    """Logits that differ by far less than their size: the error of each entry is measured before
    they cancel.
    """
    base = np.array([[1e6, -1e6, 3e5]])
    last = np.concatenate([base, base + np.array([[1e-3, 2e-3, -1e-3]])])
    first = np.eye(3)
    bound = LayeredBound(
        affine_chain([first, last], [np.ones(3), np.zeros(2)]),
        domain=Box.cube(3, 0.5),
        input_norm=Norm.LINF,
        output="spread",
    )
    exact = float(np.abs(last[1] - last[0]).sum())
    assert exact <= bound.global_bound() <= exact * 1.001


def test_too_large_for_a_table_takes_the_other_path(monkeypatch):
    rng = np.random.default_rng(6)
    network = affine_chain(
        [rng.normal(size=(5, 3)), rng.normal(size=(2, 5))], [rng.normal(size=5), np.zeros(2)]
    )
    bounds = []
    for limit in (2**23, 1):
        monkeypatch.setattr("reticent.lipschitz.layered._TABLE_NUMBERS", limit)
        bounds.append(
            LayeredBound(network, domain=Box.cube(3, 2.0), input_norm=Norm.LINF, output=Norm.L1)
        )
    assert bounds[0]._table is not None
    assert bounds[1]._table is None
    points = rng.uniform(-2, 2, size=(50, 3))
    assert bounds[0].bound(points, 0.3) == pytest.approx(bounds[1].bound(points, 0.3), rel=2e-5)
