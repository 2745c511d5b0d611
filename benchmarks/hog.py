"""Histograms of oriented gradients beside skimage's: processor time a plane, and the largest
difference.

python benchmarks/hog.py [--planes 1000]
"""

from __future__ import annotations

import argparse
import statistics
from functools import partial

import numpy as np
from figures import Figure, processor_seconds
from skimage.feature import hog

from reticent.training.hog import oriented_gradients

SETTINGS = ((8, 4), (28, 7), (28, 4), (32, 8))


def theirs(planes: np.ndarray, cell: int) -> np.ndarray:
    """skimage's histograms, plane by plane."""
    return np.stack(
        [
            hog(plane, orientations=9, pixels_per_cell=(cell, cell), cells_per_block=(2, 2))
            for plane in planes
        ]
    )


def main() -> None:
    """Prints the time of a plane for both, and the largest difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planes", type=int, default=1000)
    number = parser.parse_args().planes
    rng = np.random.default_rng(0)
    for side, cell in SETTINGS:
        planes = rng.random((number, side, side))
        ours = partial(oriented_gradients, planes, orientations=9, cell=cell)
        Figure.of(
            f"gradient histograms of {side} x {side}, cell {cell}, a plane",
            processor_seconds(ours, each=number),
            peer="scikit-image",
            theirs=processor_seconds(partial(theirs, planes, cell), runs=3, each=number),
        ).keep()
        few = planes[:100]
        alone = processor_seconds(
            lambda few=few, cell=cell: [
                oriented_gradients(plane[None], orientations=9, cell=cell) for plane in few
            ],
            each=len(few),
        )
        difference = np.abs(oriented_gradients(few, orientations=9, cell=cell) - theirs(few, cell))
        print(
            f"  one by one {1e6 * statistics.median(alone):.0f} us; difference {difference.max():g}"
        )


if __name__ == "__main__":
    main()
