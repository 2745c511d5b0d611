"""How long exact search takes: ``python benchmarks/exact_search.py [--quick]``.

Processor time a point, one thread, on networks trained on digits: the local constant at three
settings. The mixed-integer solver is compared in ``benchmarks/lipschitz.py``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import networks

sys.path.append(str(Path(__file__).parents[1]))  # the papers, which no installation has

from papers.posthoc.exact.constants import lipschitz_constant

CONSTANTS = [
    ("8-16-8", 0.5, 1e-6, 100),
    ("8-32-16-8", 0.1, 1e-6, 100),
    ("8-32-16-8", 0.5, 1e-4, 15),
]
"""Network, radius, relative tolerance, points."""

NAMES = ("8-16-8", "8-32-16-8")


def constants(name: str, radius: float, relative: float, points: int) -> None:
    """Print the times of local constants."""
    network, domain = networks.trained_network(name, 0), networks.domain(name)
    seconds, nodes = [], []
    for center in networks.centers(name, points):
        start = time.process_time()
        found = lipschitz_constant(network, center, radius, domain=domain, relative=relative)
        seconds.append(time.process_time() - start)
        nodes.append(found.nodes)
    low, half, high, most = 1e3 * np.quantile(seconds, [0.1, 0.5, 0.9, 1.0])
    print(
        f"  {name:10s} radius {radius:<5} to {relative:.0e}  median {half:8.1f} ms  10 % "
        f"{low:7.1f}  90 % {high:8.1f}"
        f"  most {most:8.1f}  nodes {np.median(nodes):.0f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    parser.add_argument("--networks", nargs="+", default=NAMES, choices=NAMES)
    chosen = parser.parse_args()
    fraction = 10 if chosen.quick else 1
    with threadpool_limits(1):
        print("local Lipschitz constants, l-infinity to l1, processor time")
        for name, radius, relative, points in CONSTANTS:
            if name in chosen.networks:
                constants(name, radius, relative, max(3, points // fraction))


if __name__ == "__main__":
    main()
