"""Heads: learn from released values, mark withheld rows, refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.heads import HeadConfig, train_head

CONFIG = HeadConfig(hidden=(16,), epochs=8, batch_size=100)


def blobs(rows: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, rows)
    return random.normal(size=(rows, 2)) + 4.0 * np.eye(3)[labels][:, :2] * 1.0 + 100.0, labels


def test_learns_and_repeats() -> None:
    values, labels = blobs()
    first, second = (train_head(values, labels, CONFIG, noise=None) for _ in range(2))
    assert (first.predict(values) == labels).mean() > 0.9
    np.testing.assert_array_equal(first.predict(values), second.predict(values))


def test_withheld_rows_are_left_out_and_predicted_as_minus_one() -> None:
    values, labels = blobs()
    values[::4] = np.nan
    head = train_head(values, labels, CONFIG, noise=None)
    predicted = head.predict(values)
    assert (predicted[::4] == -1).all()
    assert (predicted[1::4] == labels[1::4]).mean() > 0.9


def test_fresh_noise_is_asked_for_every_batch() -> None:
    values, labels = blobs()
    calls = []

    def noise(batch: torch.Tensor) -> torch.Tensor:
        calls.append(len(batch))
        return batch + torch.randn_like(batch)

    train_head(values, labels, CONFIG, noise=noise)
    assert sum(calls) == 1000 + 8 * 1000


def test_bad_input() -> None:
    values, labels = blobs(10)
    with pytest.raises(InvalidInput, match="every row is withheld"):
        train_head(values * np.nan, labels, CONFIG, noise=None)
    with pytest.raises(InvalidInput, match="labels"):
        train_head(values, labels[:5], CONFIG, noise=None)
    with pytest.raises(InvalidInput, match=r"shape \(n, 2\)"):
        train_head(values, labels, CONFIG, noise=None).predict(np.zeros((3, 4)))
    with pytest.raises(InvalidParameter, match="epochs"):
        HeadConfig(epochs=0)
