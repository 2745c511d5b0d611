"""Histograms of oriented gradients, of many planes at once and each as if it were alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput

_SMALL = 1e-5
"""A number added to a block's length before it is divided by it."""

_CLIP = 0.2

_PIXELS = 2**19
"""Pixels that are worked on at a time."""

_LARGEST_EXPONENT = 100
"""Brighter planes are scaled down to 2^100: float32 then holds their sums, and _SMALL is nothing
beside them in either case.
"""


def oriented_gradients(planes: npt.ArrayLike, *, orientations: int, cell: int) -> Array:
    """Return normalised histograms of gradient directions, as ``skimage.feature.hog`` computes them
    with blocks of 2 x 2 cells.

    Gradients are central differences, 0 at the edges. Each adds its length to the bin of its
    direction, out of ``orientations`` in [0, 180) degrees, in the histogram of its cell. Pixels
    beyond the last whole cell are left out. Blocks of 2 x 2 cells, one for each corner inside, are
    scaled to length 1, cut at 0.2 and scaled again ("L2-Hys").

    Args:
        planes: shape (n, height, width), finite.
        orientations: bins of a histogram, at least 1.
        cell: pixels a side of a cell, at most half of height and width.

    Returns:
        Shape (n, (height // cell - 1) (width // cell - 1) 4 orientations), float64, each in [0, 1]:
        blocks by rows, in each the histograms of its cells by rows. A row is the same, to the bit,
        in every batch.

    Raises:
        InvalidInput: planes have another shape, are too small for 2 x 2 cells, or hold NaN or
            infinity. Values are never shown.
        InvalidParameter: ``orientations`` or ``cell`` is no integer of at least 1.

    Edge cases: a plane of one colour has the features 0. Values up to the largest double give
    finite features. A gradient that points at 180 degrees to rounding, just below 0, is left out,
    as in skimage.

    Reference: Dalal and Triggs 2005.

    Example:
        >>> features = oriented_gradients(np.eye(8)[None], orientations=9, cell=4)
        >>> features.shape, round(float(features.max()), 4)
        ((1, 36), 0.4575)
    """
    pictures = finite_array(planes, name="planes", ndim=3, allow_empty=True)
    orientations, cell = count(orientations, name="orientations"), count(cell, name="cell")
    rows, columns = (side // cell for side in pictures.shape[1:])
    if min(rows, columns) < 2:
        raise InvalidInput(
            f"planes: expected at least {2 * cell} pixels a side for cell={cell}, got "
            f"shape={pictures.shape}"
        )
    found = np.empty((len(pictures), (rows - 1) * (columns - 1) * 4 * orientations))
    at_once = max(1, _PIXELS // max(1, pictures[0].size)) if len(pictures) else 1
    for start in range(0, len(pictures), at_once):
        part = slice(start, start + at_once)
        histograms = _histograms(_scaled(pictures[part]), orientations, cell, rows, columns)
        corners = [
            histograms[:, top : rows - 1 + top, left : columns - 1 + left]
            for top in (0, 1)
            for left in (0, 1)
        ]
        blocks = np.minimum(_unit(np.concatenate(corners, axis=-1)), _CLIP)
        found[part] = _unit(blocks).reshape(len(histograms), -1)
    return found


def _scaled(pictures: Array) -> Array:
    """Return each plane times a power of two that leaves ordinary ones as they are."""
    _, exponents = np.frexp(np.abs(pictures).max(axis=(1, 2), initial=0.0))
    return np.asarray(
        np.ldexp(pictures, np.minimum(_LARGEST_EXPONENT - exponents, 0)[:, None, None])
    )


def _histograms(pictures: Array, orientations: int, cell: int, rows: int, columns: int) -> Array:
    """Return the mean length of gradient in each bin of each cell, shape (n, rows, columns,
    orientations).
    """
    down, right = np.zeros_like(pictures), np.zeros_like(pictures)
    down[:, 1:-1] = pictures[:, 2:] - pictures[:, :-2]
    right[:, :, 1:-1] = pictures[:, :, 2:] - pictures[:, :, :-2]
    whole = (slice(None), slice(rows * cell), slice(columns * cell))
    down, right = down[whole], right[whole]
    angles = np.rad2deg(np.arctan2(down, right)) % 180
    # The last bin of every histogram takes directions that rounding puts at 180 degrees, and is
    # dropped.
    bins = np.searchsorted(
        180.0 / orientations * np.arange(1, orientations + 1), angles, side="right"
    )
    bins += (orientations + 1) * _cells(cell, rows, columns) + rows * columns * (
        orientations + 1
    ) * np.arange(len(bins))[:, None, None]
    sums = np.zeros(len(bins) * rows * columns * (orientations + 1), dtype=np.float32)
    # bit-exact: one pixel of every cell at a time, by rows, rounded to float32 after each, as
    # skimage adds them up.
    for places, lengths in zip(
        _by_pixel(bins, cell), _by_pixel(np.hypot(right, down), cell), strict=True
    ):
        sums[places] += lengths
    means = sums / np.float32(cell * cell)
    return means.reshape(len(bins), rows, columns, orientations + 1)[..., :-1].astype(np.float64)


def _cells(cell: int, rows: int, columns: int) -> npt.NDArray[np.int64]:
    """Return the number of the cell that each pixel lies in, shape (rows cell, columns cell)."""
    return (np.arange(rows * cell) // cell * columns)[:, None] + np.arange(columns * cell) // cell


def _by_pixel(values: npt.NDArray[Any], cell: int) -> npt.NDArray[Any]:
    """Return ``values`` of shape (n, rows cell, columns cell) as one row for each of the pixels of
    a cell.
    """
    n, height, width = values.shape
    split = values.reshape(n, height // cell, cell, width // cell, cell)
    return np.ascontiguousarray(split.transpose(2, 4, 0, 1, 3)).reshape(cell * cell, -1)


def _unit(blocks: Array) -> Array:
    lengths = np.sqrt(np.sum(blocks**2, axis=-1, keepdims=True) + _SMALL**2)
    return np.asarray(blocks / lengths)
