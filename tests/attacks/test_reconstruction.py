"""The attack gets back what is there to be had, and no more."""

from __future__ import annotations

import numpy as np
import torch

from reticent.attacks import ReconstructionConfig, train_reconstructor

SHORT = ReconstructionConfig(hidden=(64,), epochs=60, batch_size=100, learning_rate=1e-2)


def _blends(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes in the unit square, and pictures that are a known function of them."""
    codes = np.random.default_rng(seed).random((rows, 2)).astype(np.float32)
    ramp = np.linspace(0, 1, 8)
    patterns = np.stack([np.tile(ramp, (8, 1)), np.tile(ramp[:, None], (1, 8))])
    return codes, np.einsum("nk,kij->nij", codes, patterns).astype(np.float32) / 2


def test_recovers_pictures_that_the_values_determine():
    codes, pictures = _blends(600, 0)
    attack = train_reconstructor(codes, pictures, SHORT, noise=None)
    unseen, truth = _blends(200, 1)
    error = ((attack.reconstruct(unseen) - truth) ** 2).mean()
    assert error < 0.05 * truth.var()


def test_comes_close_to_the_best_possible_guess_under_noise():
    """One picture of two, a bit behind Gaussian noise: the posterior mean has a closed form, the
    oracle.
    """
    bits = np.random.default_rng(0).integers(0, 2, 4000)
    pictures = np.zeros((len(bits), 6, 6), np.float32) + bits[:, None, None].astype(np.float32)
    values = (2.0 * bits - 1.0)[:, None]
    attack = train_reconstructor(
        values, pictures, SHORT, noise=lambda batch: batch + torch.randn_like(batch)
    )
    seen = np.linspace(-2.5, 2.5, 21)
    posterior = 1 / (1 + np.exp(-2 * seen))
    guess = attack.reconstruct(seen[:, None])
    assert np.abs(guess - posterior[:, None, None]).max() < 0.06


def test_a_critic_makes_pictures_sharper_and_further_from_the_true_ones() -> None:
    """One picture of two behind noise: the posterior mean is a blend, which no real picture is."""
    bits = np.random.default_rng(0).integers(0, 2, 1500)
    halves = np.zeros((2, 8, 8), np.float32)
    halves[0, :4], halves[1, 4:] = 1.0, 1.0
    pictures = halves[bits]
    values = (2.0 * bits - 1.0)[:, None]
    seen = values + np.random.default_rng(1).normal(size=values.shape)
    settings = {
        "architecture": "convolutional",
        "channels": 4,
        "hidden": (32,),
        "epochs": 12,
        "batch_size": 100,
        "learning_rate": 1e-2,
    }
    drawn = {}
    for critic in (0.0, 0.3):
        attack = train_reconstructor(
            values,
            pictures,
            ReconstructionConfig(**settings, critic=critic),
            noise=lambda batch: batch + torch.randn_like(batch),
        )
        drawn[critic] = attack.reconstruct(seen)
    error = {critic: ((found - pictures) ** 2).mean() for critic, found in drawn.items()}
    blend = {critic: (found * (1 - found)).mean() for critic, found in drawn.items()}
    assert blend[0.3] < 0.8 * blend[0.0]
    assert error[0.3] > error[0.0]


def test_withheld_rows_teach_nothing_and_get_the_mean():
    codes, pictures = _blends(100, 0)
    codes[::3] = np.nan
    attack = train_reconstructor(codes, pictures, SHORT, noise=None)
    guess = attack.reconstruct(np.array([[np.nan, np.nan], [0.5, 0.5]]))
    np.testing.assert_allclose(guess[0], pictures.mean(axis=0), atol=1e-6)
    assert not np.array_equal(guess[0], guess[1])
