"""Picture measures against their formulas, written again in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from reticent.attacks import picture_quality


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
