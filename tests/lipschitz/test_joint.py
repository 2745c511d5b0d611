"""Derivatives over all directions at once: the optimum of their linear program, isotone in the
states of neurons, the same in fractions and long doubles, and what a slope that is chosen would do.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.core import Norm
from reticent.grids.rounding import Surd
from reticent.lipschitz import entries, joint
from reticent.lipschitz.entries import EntryChords
from reticent.lipschitz.joint import JointDerivatives

NORMS = [Norm.LINF, Norm.L2, Norm.L1]
KINDS = [*NORMS, "entries"]


def built(kind, rows, matrices):
    """The bound of one norm, or the chords of single entries alone."""
    if kind == "entries":
        return EntryChords.build(rows, matrices)
    return JointDerivatives.build(rows, matrices, kind)


def matrices_of(rng, *widths, scale=1.0):
    return [scale * rng.normal(size=(after, before)) for before, after in pairwise(widths)]


def states(rng, count, widths):
    """Random states, shape (count, width) each: off, on, unstable."""
    drawn = [rng.choice(3, size=(count, width), p=[0.3, 0.3, 0.4]) for width in widths]
    return [part == 1 for part in drawn], [part == 2 for part in drawn]


def widened(rng, on, free):
    """The same states with some neurons unstable that were on or off."""
    more = [part | (rng.random(part.shape) < 0.2) for part in free]
    return [part & ~wide for part, wide in zip(on, more, strict=True)], more


def optimum(matrices, rows, on, free):
    """The largest rows . w over a cube of directions, as linear programs in all derivatives and all
    products, reach by reach: nothing is substituted.
    """
    sizes = [matrix.shape[0] for matrix in matrices]
    inputs = matrices[0].shape[1]
    reaches = []
    for layer in range(len(matrices) + 1):
        objective_rows = rows if layer == len(matrices) else matrices[layer]
        # Variables: t, then w of each layer in front.
        starts = np.cumsum([0, inputs, *sizes[:layer]])
        above, right = [], []
        for before in range(layer):
            source = starts[before]
            for j in range(sizes[before]):
                for sign in (1.0, -1.0):
                    line = np.zeros(starts[-1])
                    line[starts[before + 1] + j] = sign
                    slope, half = 0.0, 0.0
                    if on[before][j]:
                        slope = 1.0
                    elif free[before][j]:
                        slope, half = 0.5, 0.5 * reaches[before][j]
                    width = matrices[before].shape[1]
                    line[source : source + width] -= sign * slope * matrices[before][j]
                    above.append(line)
                    right.append(half)
        found = []
        for row in objective_rows:
            objective = np.zeros(starts[-1])
            objective[starts[-2] :] = row
            answer = linprog(
                -objective,
                np.array(above) if above else None,
                np.array(right) if right else None,
                bounds=[(-1, 1)] * inputs + [(None, None)] * (starts[-1] - inputs),
            )
            assert answer.status == 0
            found.append(-answer.fun)
        reaches.append(np.array(found))
    return reaches[-1]


def chords_by_programs(matrices, gradient, on, free):
    """The largest sum of chords of |J|: linear programs over all products of slopes and gradients,
    for every range and for the sum. Nothing is substituted.
    """
    starts = np.cumsum([0, *map(len, matrices)])
    above, right, behind = [], [], None
    ends = gradient, gradient

    def most(row):
        answer = linprog(-row, np.array(above), np.array(right), bounds=[(None, None)] * starts[-1])
        assert answer.status == 0
        return -answer.fun

    for layer in range(len(matrices) - 1, -1, -1):
        for j, (low, high) in enumerate(zip(*ends, strict=True)):
            low, high = min(low, 0.0), max(high, 0.0)
            source = np.zeros(starts[-1]) if behind is None else behind[j]
            known = gradient[j] if behind is None else 0.0
            slopes, limits = (0.0, 0.0), (0.0, 0.0)
            if on[layer][j]:
                slopes, limits = (1.0, 1.0), (known, -known)
            elif free[layer][j] and behind is None:
                limits = high, -low
            elif free[layer][j]:
                share = high / (high - low) if high > low else 1.0
                slopes, limits = (share, 1.0 - share), (-share * low, -share * low)
            for sign, slope, limit in zip((1.0, -1.0), slopes, limits, strict=True):
                row = -sign * slope * source
                row[starts[layer] + j] = sign
                above.append(row)
                right.append(limit)
        behind = np.zeros((matrices[layer].shape[1], starts[-1]))
        behind[:, starts[layer] : starts[layer + 1]] = matrices[layer].T
        ends = np.array([-most(-row) for row in behind]), np.array([most(row) for row in behind])
    low, high = ends
    share = np.where(high > low, (abs(high) - abs(low)) / np.where(high > low, high - low, 1.0), 0)
    return most(share @ behind) + float((abs(high) - share * high).sum())


@pytest.mark.parametrize("hidden", [(7,), (5, 4), (4, 3, 4)])
def test_chords_of_entries_are_the_optimum_of_their_linear_program(hidden, monkeypatch):
    monkeypatch.setattr(entries, "_COARSER", 2.0**-10)
    rng = np.random.default_rng(9)
    matrices = matrices_of(rng, 5, *hidden, 2)
    on, free = states(rng, 4, hidden)
    rows = np.array([[1.0, 0.0], [1.0, -1.0]])
    found = built("entries", rows, matrices)(on, free)
    for point, k in product(range(4), range(2)):
        state = [part[point] for part in on], [part[point] for part in free]
        best = chords_by_programs(matrices[:-1], (rows @ matrices[-1])[k], *state)
        assert best * (1 - 1e-9) <= found[point, k] <= best * (1 + 1e-4)


@pytest.mark.parametrize("hidden", [(9,), (9, 8), (9, 8, 7)])
def test_sums_that_are_left_out_cannot_change_the_largest_below_a_cap(hidden):
    rng = np.random.default_rng(10)
    matrices = matrices_of(rng, 12, *hidden, 6)
    chords = EntryChords.build(np.eye(6), matrices)
    on, free = states(rng, 60, hidden)
    sums = chords(on, free)
    assert (chords.floor(on, free) < sums).all()
    caps = sums.max(axis=1) * rng.choice([0.3, 0.7, 0.9, 1.0, 2.0, np.inf], size=60)
    found = chords.capped(on, free, caps)
    assert np.array_equal(found, np.minimum(sums.max(axis=1), caps))


@pytest.mark.parametrize("hidden", [(5, 4), (4, 3, 4)])
def test_substitution_is_the_optimum_of_the_linear_program(hidden):
    rng = np.random.default_rng(0)
    matrices = matrices_of(rng, 3, *hidden, 2)
    rows = np.array([[1.0, 0.0], [1.0, -1.0]])
    on, free = states(rng, 4, hidden)
    found = JointDerivatives.build(rows, matrices, Norm.LINF)(on, free)
    for point in range(4):
        best = optimum(
            matrices[:-1], rows @ matrices[-1], [s[point] for s in on], [s[point] for s in free]
        )
        assert found[point] == pytest.approx(best, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("hidden", [(7,), (7, 6, 5)])
@pytest.mark.parametrize("norm", KINDS)
def test_at_least_every_choice_of_slopes(norm, hidden):
    rng = np.random.default_rng(1)
    matrices = matrices_of(rng, 20, *hidden, 3)
    on, free = states(rng, 5, hidden)
    found = built(norm, np.eye(3), matrices)(on, free)
    dual = Norm.L1 if norm == "entries" else norm.dual
    for _ in range(300):
        slopes = [
            s + f * rng.choice([0.0, 1.0, rng.random()], size=s.shape)
            for s, f in zip(on, free, strict=True)
        ]
        for point in range(5):
            jacobian = matrices[0]
            for slope, matrix in zip(slopes, matrices[1:], strict=True):
                jacobian = matrix @ (slope[point][:, None] * jacobian)
            assert (dual.of(jacobian, axis=1) <= found[point] * (1 + 1e-12)).all()


@pytest.mark.parametrize("hidden", [(9,), (9, 8, 7)])
@pytest.mark.parametrize("norm", KINDS)
def test_neurons_that_become_unstable_lower_nothing(norm, hidden):
    rng = np.random.default_rng(2)
    derivatives = built(norm, np.eye(4), matrices_of(rng, 30, *hidden, 4))
    strict = 0
    for _ in range(60):
        on, free = states(rng, 10, hidden)
        small, large = derivatives(on, free), derivatives(*widened(rng, on, free))
        assert (small <= large).all()
        strict += int((small < large).sum())
    assert strict > 1000


@pytest.mark.parametrize("norm", KINDS)
@pytest.mark.parametrize("by", ["fractions", "long doubles"])
@pytest.mark.parametrize("hidden", [(6,), (4, 3)])
def test_fractions_and_long_doubles_round_the_same_way(norm, by, hidden, monkeypatch):
    """With an error claimed to be most of a grid step, nearly every value is put to them."""
    rng = np.random.default_rng(4)
    derivatives = built(norm, np.eye(2), matrices_of(rng, 3, *hidden, 2))
    on, free = states(rng, 6, hidden)
    plain = derivatives(on, free)
    asked, gaps = [], []
    real = joint.rounded_up

    def doubtful(values, error, unit, exactly, closer):
        def logged(index):
            asked.append(exactly(index))
            return asked[-1]

        def seen(index):
            value, bound = closer(index)
            gaps.append(abs(float(value - values[index])) / error)
            return value, bound

        return real(values, 0.45 * unit, unit, logged, seen if by == "long doubles" else None)

    for module in (joint, entries):
        monkeypatch.setattr(module, "rounded_up", doubtful)
    assert np.array_equal(derivatives(on, free), plain)
    if by == "fractions":
        assert len(asked) > 10
        assert all(isinstance(value, Surd if norm is Norm.L2 else Fraction) for value in asked)
    else:
        assert len(gaps) > 10
        assert max(gaps) < 1


def test_scales_bound_reaches_of_small_neurons_as_they_are_rounded():
    """A grid step of the large neuron in front is far above the small one's own magnitude."""
    matrices = [np.array([[1.0], [2.0**-60]]), np.array([[0.0, 1.0]] * 2), np.ones((1, 2))]
    derivatives = JointDerivatives.build(np.eye(1), matrices, Norm.L2)
    off, free = (np.full((1, 2), value) for value in (False, True))
    assert derivatives.first[1] > 2.0**-30
    assert 0 < derivatives([off, off], [free, free])[0, 0] <= derivatives.scales[2]
