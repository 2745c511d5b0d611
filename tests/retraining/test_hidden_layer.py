"""The certificate of a hidden layer: neighbours by brute force, what rounding adds, and where it
ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

from reticent.core import Replace
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.retraining import HiddenModel, HiddenSettings, hidden_model
from tests.retraining.test_convex import offsets

Pair = tuple[np.ndarray, np.ndarray]


def fit(X: np.ndarray, y: np.ndarray, settings: HiddenSettings) -> HiddenModel:
    return hidden_model(X, y, settings, seed=5, offsets=offsets(X, settings))


def data(seed: int) -> tuple[np.ndarray, np.ndarray, HiddenSettings]:
    """Few records of wild settings: hardly any units, long reaches, steps at their largest."""
    random = np.random.default_rng(seed)
    size, features = int(random.integers(0, 30)), int(random.integers(1, 4))
    labels = random.integers(0, 2, size)
    rows = random.normal(size=(size, features)) + np.where(labels == 1, 1.0, -1.0)[:, None]
    units, reach = int(2 * random.integers(1, 8)), float(10 ** random.uniform(-0.5, 1.5))
    settings = HiddenSettings(
        features=features,
        records=size + int(random.integers(1, 4)),
        units=units,
        reach=reach,
        steps=math.ceil(reach * (0.25 + 0.38490085 / math.sqrt(units)) / 2) + seed % 2,
        spread=float(random.choice([0.01, 0.5, 3.0])),
        norm_bound=float(random.choice([0.5, 1.0, 4.0])),
        intercept=float(random.choice([0.1, 1.0])),
        class_weights=[(1.0, 1.0), (1.0, 0.2), (0.05, 1.0)][int(random.integers(3))],
        offset_bound=float(random.choice([0.0, 0.0, 1.0, 8.0])),
    )
    return rows, labels, settings


def neighbours(X: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Iterator[Pair]:
    """All with a record less, and those with one more at the end of the ball or anywhere."""
    for place in range(len(X)):
        yield np.delete(X, place, axis=0), np.delete(y, place)
    for _ in range(4):
        row = random.normal(size=(1, X.shape[1])) * 10.0 ** random.integers(-1, 3)
        for label in (0, 1):
            yield np.concatenate([X, row]), np.append(y, label)


def test_neighbouring_data_sets_by_brute_force() -> None:
    looked, flips, largest, moved = 0, 0, 0.0, 0.0
    for seed in range(60):
        X, y, settings = data(seed)
        model = fit(X, y, settings)
        random = np.random.default_rng([seed, 1])
        queries = random.normal(size=(60, settings.features)) * settings.norm_bound
        given = offsets(queries, settings)
        labels, distances = model.stable_distances(queries, given)
        reserve = model.reserves(queries, given)[1]
        for rows, truth in neighbours(X, y, random):
            other = fit(rows, truth, settings)
            others, far = other.stable_distances(queries, given)
            looked += 1
            assert np.abs(distances - far).max() <= 1
            differ = labels != others
            flips += int(differ.sum())
            assert not distances[differ].any()
            assert not far[differ].any()
            change = np.abs(other.reserves(queries, given)[1] - reserve).max()
            largest = max(largest, float(change))
            gone = float(np.linalg.norm(other.weights - model.weights))
            moved = max(moved, gone / settings.radius)
    assert looked > 1000
    assert flips > 50
    assert 0.7 < largest <= 1.0
    assert 0.9 < moved <= 1.0


def test_the_radius_holds_what_rounding_moves() -> None:
    """One step from almost no weights, where the bound without rounding is tight, and sums so long
    that it is passed.
    """
    settings = HiddenSettings(features=1, records=2**17, units=2, reach=0.5, steps=1, spread=1e-8)
    ideal = settings.rate / 2  # the first step starts where all data sets are alike
    rows, longest = np.ones((settings.records, 1)), 0.0
    for size in range(settings.records - 6, settings.records):
        fewer, more = (
            fit(rows[:end], np.ones(end, dtype=int), settings).weights for end in (size, size + 1)
        )
        longest = max(longest, float(np.linalg.norm(more - fewer)))
    assert ideal < longest <= settings.radius < ideal * 1.001


def test_steps_stretch_what_a_record_moves() -> None:
    """Two kinds of records whose pulls cancel where tanh bends most; offsets hold the slopes."""
    X, y = np.repeat([1.0, 0.5], [40, 59])[:, None], np.repeat([1, 0], [40, 59])
    settings = HiddenSettings(
        features=1, records=100, units=2, reach=30.0, steps=8, intercept=1e-3, offset_bound=64.0
    )
    seed = next(seed for seed in range(2000) if abs(settings.start(seed)[0, 0] - 0.66) < 0.01)
    given = np.where(y == 1, -64.0, 64.0)
    model = hidden_model(X, y, settings, seed=seed, offsets=given)
    other = hidden_model(
        np.vstack([X, [[1.0]]]), np.append(y, 1), settings, seed=seed, offsets=np.append(given, -64)
    )
    moved = float(np.linalg.norm(other.weights - model.weights))
    assert 1.4 * settings.steps * settings.rate / 2 < moved <= settings.radius


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_errors_are_within_what_is_proved(seed: int) -> None:
    """The weights of one step and the reserves, against 40 digits."""
    X, y, wild = data(seed)
    settings = replace(wild, reach=1.5, steps=1)
    model = fit(X, y, settings)
    own = settings.cut_offsets(offsets(X, settings), len(X))
    rows, shares = settings.points(X), settings.class_weights
    with mpmath.workdps(40):
        step = mpmath.zeros(*settings.start(5).shape)
        start = mpmath.matrix(settings.start(5).tolist())
        signs = [mpmath.sign(sign) / mpmath.sqrt(settings.units) for sign in settings.signs]
        for point, label, offset in zip(rows.tolist(), y.tolist(), own.tolist(), strict=True):
            units = [mpmath.tanh(value) for value in start * mpmath.matrix(point)]
            margin = (2 * label - 1) * (offset + mpmath.fdot(units, signs))
            pull = (2 * label - 1) * shares[label] * min(1 / (1 + mpmath.exp(margin)), 0.5)
            for unit, (value, sign) in enumerate(zip(units, signs, strict=True)):
                for column, entry in enumerate(point):
                    step[unit, column] += pull * sign * (1 - value**2) * entry
        exact = start + mpmath.mpf(settings.rate) * step
        error = mpmath.norm(mpmath.matrix(model.weights.tolist()) - exact)
    assert 2 * error <= settings.radius - settings.rate / 2
    queries = np.random.default_rng(seed).normal(size=(10, settings.features))
    given = offsets(queries, settings)
    points = settings.points(queries)
    found, cut = model.reserves(queries, given)[1], settings.cut_offsets(given, len(queries))
    with mpmath.workdps(40):
        for point, offset, reserve in zip(points, cut, found, strict=True):
            z = [mpmath.mpf(value) for value in point.tolist()]
            units = [
                mpmath.tanh(mpmath.fdot(map(mpmath.mpf, row), z)) for row in model.weights.tolist()
            ]
            half = len(units) // 2
            f = (mpmath.fsum(units[:half]) - mpmath.fsum(units[half:])) / mpmath.sqrt(len(units))
            exact = abs(f + mpmath.mpf(float(offset))) / mpmath.sqrt(mpmath.fdot(z, z))
            assert abs(exact / settings.radius - reserve) <= settings.proved_error


def test_the_bend_is_no_less_than_that_of_tanh() -> None:
    z = np.linspace(-3.0, 3.0, 20_001)
    steepest = float(np.abs(2.0 * np.tanh(z) / np.cosh(z) ** 2).max())
    for units in (2, 128):
        bend = HiddenSettings(features=1, records=9, units=units).bend
        assert steepest <= bend * math.sqrt(units) <= 1.0001 * steepest


def test_a_replaced_record_counts_for_two() -> None:
    X, y, _ = data(8)
    assert len(X) > 5
    fields: dict[str, Any] = {"features": X.shape[1], "records": len(X)}
    both = [HiddenSettings(**fields, counting=c) for c in ("add-remove", "replace")]
    assert both[1].adjacency == Replace(1)
    queries = np.random.default_rng(0).normal(size=(80, X.shape[1])) * 3
    model = fit(X, y, both[1])
    labels, here = model.stable_distances(queries)
    assert np.abs(here - fit(X, y, both[0]).stable_distances(queries)[1] / 2).max() <= 1
    for place in range(len(X)):
        for label in (0, 1):
            rows, truth = X.copy(), y.copy()
            rows[place], truth[place] = -50.0 * X[place], label
            others, there = fit(rows, truth, both[1]).stable_distances(queries)
            assert np.abs(here - there).max() <= 1
            assert not here[labels != others].any()


def test_no_records_and_too_many() -> None:
    settings = HiddenSettings(features=2, records=3)
    nobody = hidden_model(np.zeros((0, 2)), np.zeros(0, int), settings, seed=0)
    assert nobody.stable_distances([[1.0, 1.0]])[1].tolist() == [0]
    rows, labels = np.eye(4)[:, :2], np.array([0, 1, 0, 1])
    hidden_model(rows[:3], labels[:3], settings, seed=0)
    with pytest.raises(InvalidInput, match="at most records=3"):
        hidden_model(rows, labels, settings, seed=0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"units": 3},
        {"units": 0},
        {"records": 2**22 + 1},
        {"reach": 0.0},
        {"reach": 100.0, "steps": 4},  # a step that overshoots
        {"steps": 2000},
        {"spread": 65.0},
        {"intercept": 1e-9, "features": 384},
        {"counting": "remove"},
    ],
)
def test_refusals(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"features": 2, "records": 100}
    with pytest.raises((InvalidParameter, UnknownName)):
        HiddenSettings(**{**fields, **wrong})
