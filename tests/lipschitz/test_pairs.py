"""The search over pairs: its screen, its maximum by brute force, its exact rounding, its answers
to "at most".
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from reticent.core.norms import sign_patterns
from reticent.lipschitz.directional import Slopes, largest
from reticent.lipschitz.pairs import Pairs, _relaxed_values
from tests.lipschitz.test_directional import slope_choices


def pairs_of(rng, *widths, scale=1.0):
    matrices = [
        scale * rng.normal(size=(after, before)) for before, after in itertools.pairwise(widths)
    ]
    rows, directions = (sign_patterns(width, up_to_sign=True) for width in (widths[-1], widths[0]))
    return matrices, Pairs.build(rows, directions, matrices)


def random_slopes(rng, *widths):
    states = [rng.choice(3, size=width, p=[0.25, 0.15, 0.6]) for width in widths]
    return Slopes(tuple(s == 1 for s in states), tuple(s == 2 for s in states))


def everything(pairs, slopes):
    """The rows of all pairs, in the order of the screen."""
    places = pairs._places(np.arange(2 * len(pairs.functionals) * len(pairs.along)))
    return pairs._rows(slopes, *places)


def largest_norm(matrices, slopes):
    """The l-infinity to l1 norm of the Jacobian, the worst over every choice of slopes, one by
    one.
    """
    signs = sign_patterns(matrices[0].shape[1])
    best = 0.0
    for chosen in slope_choices(slopes):
        jacobian = matrices[0]
        for slope, matrix in zip(chosen, matrices[1:], strict=True):
            jacobian = matrix @ (np.array(slope)[:, None] * jacobian)
        best = max(best, float(np.abs(signs @ jacobian.T).sum(axis=1).max()))
    return best


@pytest.mark.parametrize("hidden", [(5,), (4, 4), (3, 3, 3)])
def test_narrow_networks_get_the_maximum_over_all_slopes(hidden):
    rng = np.random.default_rng(0)
    for _ in range(15):
        matrices, pairs = pairs_of(rng, 3, *hidden, 2)
        slopes = random_slopes(rng, *hidden)
        assert pairs.searched
        found, exact = (
            pairs.largest(slopes),
            0.0 if slopes.silent else largest_norm(matrices, slopes),
        )
        assert exact * (1 - 1e-12) <= found <= exact + pairs.grid * pairs.unit * (1 + 1e-9)


def test_wide_networks_get_the_largest_relaxed_value():
    rng = np.random.default_rng(1)
    for _ in range(5):
        _, pairs = pairs_of(rng, 4, 20, 18, 3)
        slopes = random_slopes(rng, 20, 18)
        assert not pairs.searched
        value = _relaxed_values(everything(pairs, slopes), pairs.inner, slopes).max() * pairs.unit
        assert (
            value * (1 - 1e-12)
            <= pairs.largest(slopes)
            <= value + pairs.grid * pairs.unit * (1 + 1e-9)
        )


@pytest.mark.parametrize("hidden", [(12,), (20, 9), (7, 8, 9)])
def test_screen_is_above_every_value(hidden):
    rng = np.random.default_rng(2)
    _, pairs = pairs_of(rng, 5, *hidden, 3)
    slopes = random_slopes(rng, *hidden)
    screen = pairs._screen(slopes)
    values = largest(everything(pairs, slopes), pairs.inner, slopes).value
    assert (screen.ravel() >= values - pairs.screen_error).all()
    assert np.abs(screen.max() / values.max()) < 2


@pytest.mark.parametrize(
    ("widths", "count"), [((5, 12, 3), 20), ((6, 40, 30, 3), 20), ((5, 20, 18, 17, 3), 12)]
)
def test_what_the_screen_leaves_out_changes_no_bit(widths, count, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(8)
    _, pairs = pairs_of(rng, *widths)
    slopes = [random_slopes(rng, *widths[1:-1]) for _ in range(count)]
    pruned = [pairs.largest(each) for each in slopes]
    limits = [value * factor for value in pruned for factor in (0.9, 1.0, 1.1)]
    answers = [pairs.at_most(each, limits[1]) for each in slopes]
    shape = 2, len(pairs.functionals), len(pairs.along)
    monkeypatch.setattr(Pairs, "_screen", lambda *_: np.full(shape, 1e30, dtype=np.float32))
    assert [pairs.largest(each) for each in slopes] == pruned
    assert [pairs.at_most(each, limits[1]) for each in slopes] == answers
    assert len(set(pruned)) > count // 2


@pytest.mark.parametrize("widths", [(8, 64, 64, 8), (5, 30, 30, 30, 3), (4, 200, 300, 2)])
def test_screen_error_covers_float32(widths):
    """The same screen in float64 lies within it, and not for want of an error."""
    rng = np.random.default_rng(9)
    _, pairs = pairs_of(rng, *widths)
    worst = 0.0
    for _ in range(3):
        slopes = random_slopes(rng, *widths[1:-1])
        found, true = pairs._screen(slopes), double_screen(pairs, slopes)
        worst = max(worst, float(np.abs(found - true).max()))
    assert 1e-6 * pairs.screen_error < worst < pairs.screen_error


def double_screen(pairs, slopes):
    """The screen's formula in float64: half an unstable neuron's derivative and half its reach."""
    keep = [on + 0.5 * free for on, free in zip(slopes.on, slopes.unstable, strict=True)]
    low, high = pairs.along * slopes.on[0], pairs.along * slopes.on[0]
    low = low + np.minimum(pairs.along, 0) * slopes.unstable[0]
    high = high + np.maximum(pairs.along, 0) * slopes.unstable[0]
    reach = [0.5 * np.abs(pairs.along) * slopes.unstable[0]]
    for layer, weight in enumerate(pairs.inner, start=1):
        up, down = np.maximum(weight, 0).T, np.minimum(weight, 0).T
        low, high = low @ up + high @ down, high @ up + low @ down
        on, free = slopes.on[layer], slopes.unstable[layer]
        reach.append(0.5 * free * np.maximum(np.abs(low), np.abs(high)))
        low = np.where(free, np.minimum(low, 0), low * on)
        high = np.where(free, np.maximum(high, 0), high * on)
    gradient, loss = pairs.functionals, 0.0
    for layer in range(len(pairs.inner), 0, -1):
        loss = loss + np.abs(gradient) @ reach[layer].T
        gradient = (gradient * keep[layer]) @ pairs.inner[layer - 1]
    loss = loss + np.abs(gradient) @ reach[0].T
    steady = gradient @ (pairs.along * keep[0]).T
    return np.stack([loss + steady, loss - steady])


@pytest.fixture
def asked(monkeypatch):
    """One entry for each question that was put to fractions."""
    questions = []
    real = Pairs._exceeds

    def logged(self, *given):
        questions.append(given[-1])
        return real(self, *given)

    monkeypatch.setattr(Pairs, "_exceeds", logged)
    return questions


@pytest.mark.parametrize("hidden", [(4,), (4, 4), (3, 17), (3, 3, 3)])
def test_fractions_round_the_same_way(hidden, asked):
    """Told that floating point is good for a fifth of a grid step only, the search must ask
    fractions, and agree.
    """
    rng = np.random.default_rng(3)
    for _ in range(6):
        _, pairs = pairs_of(rng, 2, *hidden, 2)
        slopes = random_slopes(rng, *hidden)
        doubtful = replace(pairs, error=0.2 * pairs.grid)
        value = pairs.largest(slopes)
        assert doubtful.largest(slopes) == value
        assert np.array_equal(doubtful.per_direction(slopes), pairs.per_direction(slopes))
        for limit in value + pairs.grid * pairs.unit * np.arange(-2, 3):
            assert (
                doubtful.at_most(slopes, limit) == pairs.at_most(slopes, limit) == (value <= limit)
            )
    assert asked


@pytest.mark.parametrize(("nudge", "steps"), [(0.0, 2), (np.inf, 3), (-np.inf, 2)])
def test_values_on_a_grid_point_and_an_ulp_off(nudge, steps, asked):
    """On the grid with a step of 0.25 of 4, the value (2 + 51/128) stays; an ulp above it goes
    to the next point.
    """
    value = 2.0 + 51.0 / 128.0
    weight = np.nextafter(value, nudge) if nudge else value
    pairs = replace(
        Pairs.build(np.ones((1, 1)), np.ones((1, 1)), [np.array([[weight]]), np.array([[1.0]])]),
        grid=0.25,
    )
    slopes = Slopes((np.array([True]),), (np.array([False]),))
    assert pairs.unit == 4.0
    assert pairs.largest(slopes) == steps + 51.0 / 128.0
    assert asked
    assert pairs.at_most(slopes, value) == (steps == 2)


def test_at_most_is_the_comparison_with_the_bound():
    rng = np.random.default_rng(4)
    for hidden in [(6,), (6, 6), (9, 20)]:
        _, pairs = pairs_of(rng, 3, *hidden, 2)
        slopes = random_slopes(rng, *hidden)
        value = pairs.largest(slopes)
        for limit in [
            0.0,
            0.5 * value,
            np.nextafter(value, 0),
            value,
            np.nextafter(value, 1e9),
            2 * value,
            1e-300,
            1e300,
        ]:
            assert pairs.at_most(slopes, limit) == (value <= limit)
