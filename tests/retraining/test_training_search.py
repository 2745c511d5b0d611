"""A search for neighbouring sets of records whose certified intervals do not nest, over settings
that strain every shortcut.

Clips far below and far above the gradients, records on a coarse grid (ties), all records alike,
blocks of a few records, more changes than records, empty batches. Before a change of the
training's arithmetic is kept, run it longer: ``search(seed=..., pairs=20_000)`` takes some
twenty minutes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from reticent.retraining import (
    ParameterIntervals,
    TrainingSettings,
    parameter_intervals,
    stable_distances,
    training,
)

Records = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Inputs, labels, batches."""


def drawn_settings(random: np.random.Generator) -> TrainingSettings:
    hidden = [(), (), (3,), (4, 3)][random.integers(4)]
    classes = int(random.choice([2, 2, 3, 6]))
    weights = (1.0, *(10 ** random.uniform(-2, 0, classes - 1)).tolist())
    return TrainingSettings(
        features=int(random.integers(1, 4)),
        classes=classes,
        class_weights=weights if random.random() < 0.25 else None,
        hidden=hidden,
        epochs=int(random.integers(1, 4)),
        batches=int(random.choice([1, 1, 2, 3])),
        learning_rate=float(10 ** random.uniform(-1, 1.5)),
        clip=float(10 ** random.uniform(-5, 1.5)),
        momentum=float(random.choice([0.0, 0.0, 0.9])),
        weight_decay=float(random.choice([0.0, 0.0, 0.01])),
        input_bound=float(random.choice([1.0, 0.3, 16.0])),
        counting="replace" if random.random() < 0.25 else "add-remove",
    )


def drawn_records(random: np.random.Generator, settings: TrainingSettings, records: int) -> Records:
    X = random.normal(size=(records, settings.features)) * settings.input_bound
    if random.random() < 0.6:
        X = np.round(X / settings.input_bound) * settings.input_bound
    labels = random.integers(settings.classes, size=records)
    if records and random.random() < 0.3:
        X, labels = np.repeat(X[:1], records, axis=0), np.repeat(labels[:1], records)
    return X, labels, random.integers(settings.batches, size=records)


def neighbour(random: np.random.Generator, settings: TrainingSettings, data: Records) -> Records:
    """One record more, or another one in the place of one; in another order."""
    new = drawn_records(random, settings, 1)
    kept = np.arange(len(data[0]))
    if settings.counting == "replace":
        kept = np.delete(kept, random.integers(len(kept)))
    X, labels, batch = (
        np.concatenate([old[kept], more]) for old, more in zip(data, new, strict=True)
    )
    order = random.permutation(len(X))
    return X[order], labels[order], batch[order]


def nested(inner: ParameterIntervals, outer: ParameterIntervals) -> bool:
    """T_(k - 1) of one lies in T_k of the other, for all k."""
    ends = zip(inner.lower, inner.upper, outer.lower, outer.upper, strict=True)
    return all(
        bool((low[:-1] >= least[1:]).all() and (high[:-1] <= most[1:]).all())
        for low, high, least, most in ends
    )


def search(*, seed: int, pairs: int) -> int:
    """Draws ``pairs`` pairs of neighbours, and returns how many changed an interval; fails at
    the first that does not nest.
    """
    random, changed = np.random.default_rng(seed), 0
    for pair in range(pairs):
        settings, k_max = drawn_settings(random), int(random.integers(1, 8))
        least = 1 if settings.counting == "replace" else 0
        data = drawn_records(random, settings, int(random.integers(least, 30)))
        other = neighbour(random, settings, data)
        initial = settings.initial(pair) if settings.hidden or random.random() < 0.3 else None

        def certified(
            records: Records, at_once: int, settings=settings, k_max=k_max, initial=initial
        ) -> ParameterIntervals:
            X, labels, batch = records
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(training, "RECORDS_AT_ONCE", at_once)
                return parameter_intervals(
                    X, labels, settings, k_max=k_max, initial=initial, batch=batch
                )

        first, second = certified(data, 512), certified(other, int(random.choice([1, 3, 7, 512])))
        shown = f"pair {pair} of seed {seed}: {settings}"
        assert nested(first, second), shown
        assert nested(second, first), shown
        queries = random.normal(size=(200, settings.features)) * settings.input_bound
        (one, near), (two, far) = (
            stable_distances(first, queries),
            stable_distances(second, queries),
        )
        assert (np.abs(near - far) <= 1).all(), shown
        assert ((one == two) | ((near == 0) & (far == 0))).all(), shown
        changed += any(
            (low != least).any() for low, least in zip(first.lower, second.lower, strict=True)
        )
    return changed


@pytest.mark.parametrize("pairs", [80, pytest.param(1000, marks=pytest.mark.soak)])
def test_no_neighbours_fall_out_of_their_intervals(pairs: int) -> None:
    assert search(seed=0, pairs=pairs) > 0.8 * pairs


def test_the_search_finds_a_bound_that_forgets_one_change(monkeypatch: pytest.MonkeyPatch) -> None:
    honest: Any = training.mean_bound
    monkeypatch.setattr(
        training,
        "mean_bound",
        lambda ends, k, *more, **counting: honest(ends, np.maximum(k - 1, 0), *more, **counting),
    )
    with pytest.raises(AssertionError, match="pair"):
        search(seed=0, pairs=100)
