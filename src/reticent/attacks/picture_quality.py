"""Measures of the closeness of reconstructed pictures to the originals, as papers report them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.core.extras import require

SMALLEST_SIDE = 6
"""Fewest pixels a side for structural similarity: its window reflects 5 pixels at each edge."""


_PIXELS_AT_ONCE = 2**16
"""Numbers for each pixel in structural similarity: five windows of 121."""


@dataclass(frozen=True)
class PictureQuality:
    """Means over pictures. Higher ssim and psnr, lower l1 and l2 mean a better reconstruction.

    Attributes:
        ssim: structural similarity, in [-1, 1], Gaussian window of 11 x 11 pixels with sigma 1.5.
        l1: absolute difference per pixel, in [0, 1].
        l2: squared difference per pixel, in [0, 1].
        psnr_peak_1: peak signal-to-noise ratio in dB for a peak of 1, the true one of pixels in
            [0, 1]. It is infinite if a picture is exact.
        psnr_peak_255: ratio for a peak of 255, which is 48.13 dB more. Papers that report about
            60 dB on pixels in [0, 1] used this one.
        pictures: number of pictures.
    """

    ssim: float
    l1: float
    l2: float
    psnr_peak_1: float
    psnr_peak_255: float
    pictures: int

    def to_dict(self) -> dict[str, float | int]:
        """Return plain values for JSON."""
        return asdict(self)


def picture_quality(
    originals: npt.ArrayLike, reconstructions: npt.ArrayLike, *, batch_size: int | None = None
) -> PictureQuality:
    """Return how close ``reconstructions`` are to ``originals``, averaged over pictures.

    Args:
        originals: finite pictures in [0, 1], shape (n, height, width).
        reconstructions: finite pictures of the same shape. Values outside [0, 1] are clipped.
        batch_size: number of pictures at a time, or None for as many as keep the similarity's
            windows within a few hundred megabytes.

    Raises:
        InvalidInput: shapes that differ, no picture, pictures below 6 pixels a side, or values that
            are not finite.
        MissingExtra: torchmetrics is not installed.

    Example:
        >>> black = np.zeros((2, 8, 8))
        >>> picture_quality(black, black + 0.5).l1
        0.5
    """
    here, there = _pictures(originals, "originals"), _pictures(reconstructions, "reconstructions")
    if here.shape != there.shape:
        raise InvalidInput(
            f"reconstructions: expected shape {here.shape} as originals, got {there.shape}"
        )
    if here.min() < 0 or here.max() > 1:
        raise InvalidInput("originals: expected values in [0, 1]; divide pixels in 0..255 by 255")
    measures = require("torchmetrics.functional.image", extra="attacks")
    torch = require("torch", extra="networks")
    first, second = (torch.from_numpy(array).unsqueeze(1) for array in (here, there))
    second = second.clamp(0.0, 1.0)
    difference = second - first
    batch_size = batch_size or max(1, _PIXELS_AT_ONCE // first[0].numel())
    parts = [
        (first[i : i + batch_size], second[i : i + batch_size])
        for i in range(0, len(first), batch_size)
    ]
    each = {"reduction": "none"}
    similarity, ratio = (
        measures.structural_similarity_index_measure,
        measures.peak_signal_noise_ratio,
    )
    ssim = [similarity(there, here, data_range=1.0, **each) for here, there in parts]
    psnr = {
        peak: torch.cat(
            [ratio(there, here, data_range=peak, dim=(1, 2, 3), **each) for here, there in parts]
        )
        for peak in (1.0, 255.0)
    }
    return PictureQuality(
        ssim=float(torch.cat([part.reshape(-1) for part in ssim]).mean()),
        l1=float(difference.abs().mean()),
        l2=float(difference.square().mean()),
        psnr_peak_1=float(psnr[1.0].mean()),
        psnr_peak_255=float(psnr[255.0].mean()),
        pictures=len(first),
    )


def _pictures(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 3 or len(array) == 0 or min(array.shape[1:]) < SMALLEST_SIDE:
        raise InvalidInput(
            f"{name}: expected shape (n, height, width), n at least 1, {SMALLEST_SIDE} pixels "
            f"a side, got shape={array.shape}"
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name}: contains values that are not finite")
    return array
