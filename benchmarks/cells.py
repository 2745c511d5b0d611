"""What a partition of the public box is worth: ``python benchmarks/cells.py``.

Networks trained on digits (``networks``), 100 held-out points, l-infinity to l1. For each radius,
the bound over cells divided by the direct one (``LayeredBound``, ``EnumerationBound`` for one
hidden layer), which it is never above; how long the cells took to search, and what a point takes
with and without them, in processor time of one thread.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np
from figures import Figure, processor_seconds
from threadpoolctl import threadpool_limits

from networks import centers, domain, trained_network
from reticent.core import Norm
from reticent.lipschitz import CellBound
from reticent.lipschitz.layered import direct_bound

NETWORKS = ("3-16-16-4", "4-16-16-4", "5-16-5")
RADII = (0.25, 0.5, 1.0, 2.0, 3.0)


def compare(name: str, points: int, number: int) -> None:
    """Prints one line for each radius, of a partition of at most ``number`` cells."""

    class Cells(CellBound):
        kind, cells = "cells of a benchmark", number

    network, box = trained_network(name, 0), domain(name)
    given = {"domain": box, "input_norm": Norm.LINF, "output": Norm.L1}
    begun = time.process_time()
    cells = Cells(network, **given)
    searched = time.process_time() - begun
    direct = direct_bound(network, **given)
    at = centers(name, points)
    print(f"{name}: {cells.cells} cells searched in {searched:.1f} s")
    for radius in RADII:
        values, times = [], []
        for bound in (cells, direct):
            values.append(bound.bound(at, radius))
            times.append(processor_seconds(partial(bound.bound, at, radius), runs=3, each=len(at)))
        low, middle, high = np.quantile(values[0] / values[1], (0.1, 0.5, 0.9))
        print(
            f"  radius {radius:4}: {middle:.2f} of the direct bound ({low:.2f} to {high:.2f}), "
            f"{1e3 * times[0][0]:.2f} ms a point; direct {1e3 * times[1][0]:.2f} ms"
        )
        if radius == 1.0:
            Figure.of(
                f"bound over {cells.cells} cells of {name}, a point",
                times[0],
                peer="without cells",
                theirs=times[1],
            ).keep()


def main() -> None:
    """Every network in turn."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--cells", type=int, default=CellBound.cells)
    chosen = parser.parse_args()
    with threadpool_limits(1):
        for name in chosen.networks:
            compare(name, chosen.points, chosen.cells)


if __name__ == "__main__":
    main()
