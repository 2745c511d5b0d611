"""Codes: the best number of them by simulation, and the ceiling that no local answer passes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from reticent.networks import Affine
from reticent.training.power.codes import (
    CodeConfig,
    best_codes,
    best_local_accuracy,
    train_classifier,
)


def test_accuracy_is_what_a_simulated_channel_gives() -> None:
    random = np.random.default_rng(0)
    labels = random.choice(4, size=4000, p=[0.5, 0.3, 0.15, 0.05])
    logits = 2.0 * np.eye(4)[labels] + random.normal(size=(4000, 4))
    codes, accuracy = best_codes(logits, labels, epsilon=2.0)
    given = logits[:, list(codes)].argmax(axis=1)
    truth = np.exp(2.0) / (np.exp(2.0) + len(codes) - 1)
    hits = []
    for seed in range(20):
        noise = np.random.default_rng(seed)
        lie = noise.random(4000) > truth
        told = np.where(lie, (given + noise.integers(1, len(codes), 4000)) % len(codes), given)
        table = np.zeros((len(codes), 4))
        np.add.at(table, (told, labels), 1)
        hits.append(table.max(axis=1).sum() / 4000)
    # The server's best guess per code, fitted on 4000 rows: its optimism is far below the
    # tolerance.
    assert accuracy == pytest.approx(np.mean(hits), abs=0.01)


def test_few_codes_at_small_budgets_all_at_large() -> None:
    random = np.random.default_rng(1)
    labels = random.integers(5, size=3000)
    logits = 6.0 * np.eye(5)[labels] + random.normal(size=(3000, 5))
    assert len(best_codes(logits, labels, epsilon=10.0)[0]) == 5
    assert best_codes(logits, labels, epsilon=50.0)[1] > 0.95


@pytest.mark.parametrize(
    ("epsilon", "majority"), list(itertools.product([0.3, 2.5], [0.5, 0.76, 0.9]))
)
def test_no_local_channel_passes_the_ceiling(epsilon: float, majority: float) -> None:
    """Oracle: the linear program over all prediction probabilities of eight kinds of row."""
    random = np.random.default_rng(2)
    share = np.full(8, 1 / 8)
    positive = np.sort(random.beta(0.4, 0.4, 8))
    positive = np.clip(positive * (1 - majority) / positive.mean(), 0, 1)
    rate = max(positive.mean(), 1 - positive.mean())
    bayes = float((share * np.maximum(positive, 1 - positive)).sum())
    gain = share * (2 * positive - 1)  # accuracy is sum share (1 - positive) + gain q
    rows, limits = [], []
    for one, other in itertools.permutations(range(8), 2):
        up, down = np.zeros(8), np.zeros(8)
        up[one], up[other] = 1, -np.exp(epsilon)
        down[one], down[other] = -1, np.exp(epsilon)
        rows += [up, down]
        limits += [0.0, np.exp(epsilon) - 1]
    found = linprog(-gain, A_ub=rows, b_ub=limits, bounds=(0, 1))
    best = float((share * (1 - positive)).sum() - found.fun)
    assert best == pytest.approx(best_local_accuracy(epsilon, majority=rate, bayes=bayes), abs=1e-9)


def test_classifier_learns_and_is_plain_layers() -> None:
    random = np.random.default_rng(3)
    labels = np.arange(600) % 3
    rows = np.eye(3)[labels] + 0.2 * random.normal(size=(600, 3))
    network = train_classifier(rows, labels, CodeConfig(hidden=(8,), epochs=20, batch_size=50))
    assert (network.forward(rows).argmax(axis=1) == labels).mean() > 0.95


def crowded(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that fill a hundredth of the public range; the label turns three times within it."""
    random = np.random.default_rng(seed)
    place = random.random(rows)
    return np.stack([0.3 + 0.01 * place, random.random(rows)], axis=1), np.asarray(
        np.sin(12.0 * place) > 0, dtype=np.int64
    )


def test_thresholds_at_quantiles_see_what_happens_in_a_small_part_of_the_range() -> None:
    rows, labels = crowded(1500, 0)
    fresh, wanted = crowded(1500, 1)
    right = {}
    for thresholds in ("even", "quantiles"):
        config = CodeConfig(
            numeric=(0, 1), thresholds=thresholds, hidden=(16,), epochs=10, batch_size=50
        )
        right[thresholds] = (
            train_classifier(rows, labels, config).forward(fresh).argmax(axis=1) == wanted
        ).mean()
    assert right["quantiles"] > 0.95
    assert right["even"] < 0.8


def test_first_layer_of_quantile_thresholds_is_in_standard_deviations_of_the_rows() -> None:
    rows, labels = crowded(1500, 0)
    config = CodeConfig(numeric=(0,), thresholds="quantiles", hidden=(4,), epochs=1)
    first = train_classifier(rows, labels, config).layers[0]
    assert isinstance(first, Affine)
    values = rows[:, 0]
    places = -first.bias[2:] / first.weight[2:, 0]  # where each hinge starts
    assert np.median(places) == pytest.approx(np.median(values), abs=1e-4)
    assert places.min() > values.min()
    assert places.max() < values.max()
    unit = first.forward(rows)[:, 0]
    assert unit.std() == pytest.approx(1.0, rel=0.05)
    assert abs(unit.min()) < 0.05


def test_a_constant_column_has_one_place() -> None:
    rows, labels = crowded(200, 0)
    rows[:, 1] = 0.5
    network = train_classifier(
        rows, labels, CodeConfig(numeric=(0, 1), thresholds="quantiles", hidden=(4,), epochs=1)
    )
    assert np.isfinite(network.forward(rows)).all()
