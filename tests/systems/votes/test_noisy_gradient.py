"""Noisy gradient descent against plain gradient descent in doubles, where noise is nearly none."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.special import softmax

from reticent.systems.votes.linear_model import RESIDUAL, cut_weights
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier, residual_steps
from reticent.training.public_space import LENGTH, directions_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = (X[:, 0] + 0.3 * RNG.normal(size=400) > 0).astype(int) + (X[:, 1] > 1)
PUBLIC = RNG.normal(size=(100, 4))


def test_descent_without_noise_is_that_of_doubles() -> None:
    model = NoisyGradientClassifier(
        epsilon=1.0,
        delta=1e-5,
        classes=(0, 1, 2),
        steps=12,
        learning_rate=2.0,
        records=400,
    )
    model.simulate_fit(X, Y, public_X=PUBLIC, seed=0, noise_scale=1e-9)
    unit = directions_of(model._points(X), intercept=0.3) / LENGTH
    weights, momentum, kept = np.zeros((5, 3)), np.zeros((5, 3)), []
    for _ in range(12):
        residuals = softmax(unit @ weights, axis=1) - np.eye(3)[Y]
        residuals /= np.maximum(np.linalg.norm(residuals, axis=1, keepdims=True), 1.0)
        momentum = 0.9 * momentum + unit.T @ residuals / 400
        weights = weights - 2.0 * momentum
        kept.append(weights)
    expected = np.mean(kept[6:], axis=0)
    found = model.weights_ - model.weights_.mean(axis=1, keepdims=True)
    # Residuals have 13 bits, and cutting them makes their sum over labels differ from 0.
    expected -= expected.mean(axis=1, keepdims=True)
    assert np.abs(found - expected).max() < 2e-3 * np.abs(expected).max()


def test_residuals_are_those_of_each_record_alone() -> None:
    directions = directions_of(np.rint(RNG.normal(size=(500, 4)) * 2.0**16), intercept=0.3)
    codes, weights = RNG.integers(0, 3, 500), RNG.normal(size=(5, 3)) * 20
    together = residual_steps(directions, codes, weights)
    alone = [residual_steps(directions[i : i + 1], codes[i : i + 1], weights) for i in range(500)]
    assert np.array_equal(together, np.concatenate(alone))
    assert np.linalg.norm(together, axis=1).max() <= RESIDUAL
    shares = softmax(directions @ weights / LENGTH, axis=1)
    shares[np.arange(500), codes] -= 1
    near = np.linalg.norm(shares, axis=1) < 0.99
    assert np.abs(together[near] / RESIDUAL - shares[near]).max() < 2 / RESIDUAL


def test_weights_that_run_away_are_cut() -> None:
    far = cut_weights(np.array([[1e12, 1.0], [0.0, 2.0]]))
    assert far.tolist() == [[2.0**16, 1.0], [0.0, 2.0]]
    model = NoisyGradientClassifier(
        epsilon=1e-3, delta=1e-5, classes=(0, 1, 2), learning_rate=1e9, steps=5
    )
    model.fit(X, Y, public_X=PUBLIC)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("counting", ["add-remove", "replace"])
def test_a_mean_over_no_records_is_a_number(counting: str) -> None:
    model = NoisyGradientClassifier(
        epsilon=4.0, delta=1e-5, classes=(0, 1, 2), steps=2, counting=counting
    ).fit(X[:0], Y[:0], public_X=PUBLIC)
    assert np.isfinite(model.decision_function(PUBLIC)).all()


def test_points_do_not_lie_beside_the_records_of_a_fit() -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 50))
    model = NoisyGradientClassifier(
        epsilon=1.0, delta=1e-8, classes=(0, 1), steps=1, records=len(X)
    )
    tracemalloc.start()
    model.fit(X, (X[:, 0] > 0).astype(int), public_X=X[:100])
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert highest < X.nbytes  # two thirds; 1.7 times with them


def test_all_columns_of_several_labels_are_learned() -> None:
    rows = RNG.normal(size=(3000, 5))
    signs = np.column_stack([rows[:, 0] > 0, rows[:, 1] + 0.3 * rows[:, 0] > 0]).astype(int)
    words = np.where(rows[:, 2] > 0.5, "high", np.where(rows[:, 2] < -0.5, "low", "middle"))
    y = np.array([[int(a), int(b), str(c)] for (a, b), c in zip(signs, words, strict=True)], object)
    classes = [(0, 1), (0, 1), ("low", "middle", "high")]
    model = NoisyGradientClassifier(epsilon=4.0, delta=1e-5, classes=classes, steps=10)
    model.fit(rows[:2000], y[:2000], public_X=rows[2000:2400], public_y=y[2000:2400])
    asked, truth = rows[2400:], y[2400:]
    found = model.predict(asked)
    assert found.shape == (600, 3)
    assert (found == truth).mean(axis=0).min() > 0.75
    assert model.score(asked, truth) > 0.85
    chances, scores = model.predict_proba(asked), model.decision_function(asked)
    assert [part.shape for part in chances] == [(600, 2), (600, 2), (600, 3)]
    assert [part.shape for part in scores] == [(600,), (600,), (600, 3)]
    for at, part in enumerate(chances):
        assert np.allclose(part.sum(axis=1), 1)
        assert np.array_equal(model.classes_[at][part.argmax(axis=1)], found[:, at])
    assert np.array_equal((scores[0] > 0).astype(int), found[:, 0])
