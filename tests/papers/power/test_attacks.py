"""Measures of drawn rows: an open release is read, noise is worth the majority guess."""

from __future__ import annotations

import numpy as np
import pytest

from papers.power.attacks import hijacking_quality, majority_guess
from reticent.attacks import DecoderConfig, train_decoder

GROUPS = (
    ("number", slice(0, 1), False),
    ("colour", slice(1, 4), True),
    ("shape", slice(4, 6), True),
)


def rows(count: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    colour, shape = (
        random.choice(3, count, p=[0.6, 0.3, 0.1]),
        random.choice(2, count, p=[0.7, 0.3]),
    )
    return np.concatenate(
        [random.uniform(0, 1, (count, 1)), np.eye(3)[colour], np.eye(2)[shape]], axis=1
    )


def test_an_open_release_is_read_and_noise_is_worth_the_majority_guess() -> None:
    own, target = rows(3000, 0), rows(1000, 1)
    mixing = np.random.default_rng(2).normal(size=(6, 6))
    config = DecoderConfig(hidden=(64,), epochs=10)
    open_ = hijacking_quality(
        train_decoder(own @ mixing, own, config).reconstruct(target @ mixing), target, GROUPS
    )
    assert open_["all_categories"] > 0.98
    assert open_["mean_squared_error"] < 0.01
    noise = [
        np.random.default_rng(seed).normal(size=(len(part), 6))
        for seed, part in enumerate((own, target))
    ]
    blind = hijacking_quality(
        train_decoder(noise[0], own, config).reconstruct(noise[1]), target, GROUPS
    )
    floor = hijacking_quality(majority_guess(own, len(target)), target, GROUPS)
    assert blind["all_categories"] == pytest.approx(floor["all_categories"], abs=0.06)
    assert (
        blind["squared_error"] >= 0.98 * floor["squared_error"]
    )  # nothing beats the mean without information


def test_the_correlation_of_a_case_made_by_hand() -> None:
    truth = np.array([[0.0, 1, 0, 0, 1, 0], [0.5, 0, 1, 0, 0, 1]])
    found = np.array([[0.0, 1, 0, 0, 0, 1], [0.0, 0, 1, 0, 0, 1]])
    # Twelve numbers: sums 4.5 and 4, squares 4.25 and 4, products 3.
    expected = (3 - 4.5 * 4 / 12) / np.sqrt((4.25 - 4.5**2 / 12) * (4 - 4**2 / 12))
    assert hijacking_quality(found, truth, GROUPS)["correlation"] == pytest.approx(expected)
