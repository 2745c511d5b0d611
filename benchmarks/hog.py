"""Histograms of oriented gradients beside skimage's: processor time a plane, and the largest
difference.

python benchmarks/hog.py
"""

from __future__ import annotations

import time

import numpy as np
from skimage.feature import hog

from reticent.training.hog import oriented_gradients

PLANES = 2000
SETTINGS = ((8, 4), (28, 7), (28, 4), (32, 8))


def main() -> None:
    """Prints microseconds a plane for both."""
    rng = np.random.default_rng(0)
    for side, cell in SETTINGS:
        planes = rng.random((PLANES, side, side))
        start = time.process_time()
        theirs = np.stack(
            [
                hog(plane, orientations=9, pixels_per_cell=(cell, cell), cells_per_block=(2, 2))
                for plane in planes
            ]
        )
        middle = time.process_time()
        ours = oriented_gradients(planes, orientations=9, cell=cell)
        end = time.process_time()
        for plane in planes[:500]:
            oriented_gradients(plane[None], orientations=9, cell=cell)
        alone = (time.process_time() - end) / 500
        theirs_each, ours_each = (middle - start) / PLANES, (end - middle) / PLANES
        print(
            f"{side} x {side}, cell {cell}: skimage {1e6 * theirs_each:4.0f} us, all at once "
            f"{1e6 * ours_each:4.0f} us, "
            f"one by one {1e6 * alone:4.0f} us; difference {np.abs(ours - theirs).max():g}"
        )


if __name__ == "__main__":
    main()
