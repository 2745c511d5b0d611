"""Attacks get back what is there to be had; pictures are measured by their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from reticent.attacks import (
    DecoderConfig,
    picture_quality,
    train_decoder,
)

SHORT = DecoderConfig(hidden=(64,), epochs=60, batch_size=100, learning_rate=1e-2)


def _blends(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes in the unit square, and pictures that are a known function of them."""
    codes = np.random.default_rng(seed).random((rows, 2)).astype(np.float32)
    ramp = np.linspace(0, 1, 8)
    patterns = np.stack([np.tile(ramp, (8, 1)), np.tile(ramp[:, None], (1, 8))])
    return codes, np.einsum("nk,kij->nij", codes, patterns).astype(np.float32) / 2


def test_recovers_pictures_that_the_values_determine():
    codes, pictures = _blends(600, 0)
    attack = train_decoder(codes, pictures, SHORT)
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
    attack = train_decoder(
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
        attack = train_decoder(
            values,
            pictures,
            DecoderConfig(**settings, critic=critic),
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
    attack = train_decoder(codes, pictures, SHORT)
    guess = attack.reconstruct(np.array([[np.nan, np.nan], [0.5, 0.5]]))
    np.testing.assert_allclose(guess[0], pictures.mean(axis=0), atol=1e-6)
    assert not np.array_equal(guess[0], guess[1])


def test_training_finds_the_least_squares_line() -> None:
    """One affine layer and the squared error: the minimum is the solution of the normal
    equations, the oracle.
    """
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 2)).astype(np.float32)
    target = (values @ [[1.0], [-2.0]] + 3.0 + random.normal(size=(400, 1))).astype(np.float32)
    told: list[tuple[str, int, int]] = []
    decoder = train_decoder(
        values,
        target,
        DecoderConfig(hidden=(), epochs=60, batch_size=100, learning_rate=0.1),
        report=lambda *step: told.append(step[:3]),
    )
    design = np.concatenate([values, np.ones((400, 1))], axis=1)
    oracle = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    np.testing.assert_allclose(decoder.reconstruct(values), oracle, atol=0.02)
    assert not decoder.training
    assert told[-1] == ("decoder", 60, 60)


def _ssim(first: np.ndarray, second: np.ndarray) -> float:
    """Wang et al. 2004 on one picture: Gaussian window of 11 x 11, sigma 1.5, reflected edges,
    peak 1.
    """
    offsets = np.arange(-5, 6)
    line = np.exp(-(offsets**2) / (2 * 1.5**2))
    window = np.outer(line, line) / np.outer(line, line).sum()

    def smooth(picture: np.ndarray) -> np.ndarray:
        padded = np.pad(picture, 5, mode="reflect")
        height, width = picture.shape
        return np.array(
            [
                [(padded[i : i + 11, j : j + 11] * window).sum() for j in range(width)]
                for i in range(height)
            ]
        )

    mean_1, mean_2 = smooth(first), smooth(second)
    variance_1, variance_2 = smooth(first**2) - mean_1**2, smooth(second**2) - mean_2**2
    covariance = smooth(first * second) - mean_1 * mean_2
    luminance = (2 * mean_1 * mean_2 + 0.01**2) / (mean_1**2 + mean_2**2 + 0.01**2)
    structure = (2 * covariance + 0.03**2) / (variance_1 + variance_2 + 0.03**2)
    return float((luminance * structure).mean())


@pytest.mark.parametrize("side", [8, 16])
def test_every_measure_equals_its_formula(side):
    generator = np.random.default_rng(side)
    originals = generator.random((3, side, side))
    copies = np.clip(originals + 0.2 * generator.standard_normal(originals.shape), 0, 1)
    quality = picture_quality(originals, copies)
    squared = ((originals - copies) ** 2).mean(axis=(1, 2))
    assert quality.l1 == pytest.approx(np.abs(originals - copies).mean())
    assert quality.l2 == pytest.approx(squared.mean())
    assert quality.psnr_peak_1 == pytest.approx((-10 * np.log10(squared)).mean())
    assert quality.psnr_peak_255 == pytest.approx(quality.psnr_peak_1 + 20 * np.log10(255))
    assert quality.ssim == pytest.approx(
        np.mean([_ssim(a, b) for a, b in zip(originals, copies, strict=True)]), abs=1e-6
    )
    assert quality.pictures == 3


def test_batches_do_not_change_the_result():
    generator = np.random.default_rng(0)
    originals, copies = generator.random((2, 7, 8, 8))
    whole = picture_quality(originals, copies).to_dict()
    assert picture_quality(originals, copies, batch_size=2).to_dict() == pytest.approx(whole)
