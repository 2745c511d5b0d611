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
from reticent.lipschitz import joint
from reticent.lipschitz.joint import JointDerivatives

NORMS = [Norm.LINF, Norm.L2, Norm.L1]


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


def chords_one_by_one(matrices, row, on, free):
    """The largest sum of chords of |J|, over every choice of slopes 0 and 1."""
    products = (row @ matrices[1])[:, None] * matrices[0]
    slopes = [on + np.array(choice) * free for choice in product((0, 1), repeat=len(on))]
    entries = np.array([slope @ products for slope in slopes])
    low, high = entries.min(axis=0), entries.max(axis=0)
    share = np.where(high > low, (entries - low) / np.where(high > low, high - low, 1.0), 0.0)
    return float((np.abs(low) + share * (np.abs(high) - np.abs(low))).sum(axis=1).max())


def test_behind_one_hidden_layer_chords_are_as_tight_as_their_definition():
    rng = np.random.default_rng(9)
    lower = 0
    for _ in range(5):
        matrices = matrices_of(rng, 6, 7, 2)
        on, free = states(rng, 4, (7,))
        rows = np.array([[1.0, 0.0], [1.0, -1.0]])
        found = JointDerivatives.build(rows, matrices, Norm.LINF)(on, free)
        for point, k in product(range(4), range(2)):
            state = [on[0][point]], [free[0][point]]
            (lines,) = optimum(matrices[:-1], (rows @ matrices[1])[k : k + 1], *state)
            chords = chords_one_by_one(matrices, rows[k], *state[0], *state[1])
            lower += chords < lines - 1e-3
            assert found[point, k] == pytest.approx(min(lines, chords), rel=1e-6, abs=1e-5)
    assert lower > 10


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
@pytest.mark.parametrize("norm", NORMS)
def test_at_least_every_choice_of_slopes(norm, hidden):
    rng = np.random.default_rng(1)
    matrices = matrices_of(rng, 20, *hidden, 3)
    on, free = states(rng, 5, hidden)
    found = JointDerivatives.build(np.eye(3), matrices, norm)(on, free)
    for _ in range(300):
        slopes = [
            s + f * rng.choice([0.0, 1.0, rng.random()], size=s.shape)
            for s, f in zip(on, free, strict=True)
        ]
        for point in range(5):
            jacobian = matrices[0]
            for slope, matrix in zip(slopes, matrices[1:], strict=True):
                jacobian = matrix @ (slope[point][:, None] * jacobian)
            assert (norm.dual.of(jacobian, axis=1) <= found[point] * (1 + 1e-12)).all()


@pytest.mark.parametrize("hidden", [(9,), (9, 8, 7)])
@pytest.mark.parametrize("norm", NORMS)
def test_neurons_that_become_unstable_lower_nothing(norm, hidden):
    rng = np.random.default_rng(2)
    derivatives = JointDerivatives.build(np.eye(4), matrices_of(rng, 30, *hidden, 4), norm)
    strict = 0
    for _ in range(60):
        on, free = states(rng, 10, hidden)
        small, large = derivatives(on, free), derivatives(*widened(rng, on, free))
        assert (small <= large).all()
        strict += int((small < large).sum())
    assert strict > 1000


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("by", ["fractions", "long doubles"])
@pytest.mark.parametrize("hidden", [(6,), (4, 3)])
def test_fractions_and_long_doubles_round_the_same_way(norm, by, hidden, monkeypatch):
    """With an error claimed to be most of a grid step, nearly every value is put to them."""
    rng = np.random.default_rng(4)
    derivatives = JointDerivatives.build(np.eye(2), matrices_of(rng, 3, *hidden, 2), norm)
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

    monkeypatch.setattr(joint, "rounded_up", doubtful)
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
