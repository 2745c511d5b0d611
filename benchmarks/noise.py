"""What exact noise costs: ``python benchmarks/noise.py [--draws 1048576]``.

One core, processor time, the median of seven runs (OpenDP: three), in one process. Draws of each
sampler against numpy's float64 draws of the continuous mechanism (``Generator.laplace``,
``standard_normal``), which are no release noise, and against OpenDP's exact ones, at the scale
that a mechanism of epsilon 1 uses (about 2^20 grid steps). For K-norm noise, which neither has,
the peer is numpy's Laplace draw for each coordinate.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import numpy as np
from figures import Figure, processor_seconds
from opendp_sampler import OpenDPSampler
from threadpoolctl import threadpool_limits

from reticent.core import Norm
from reticent.noise import SecureSampler, k_norm
from reticent.noise.geometric import GeometricDigits

FEW = 8
OPENDP_SHARE = 50
"""OpenDP draws a fiftieth of the numbers."""

COLUMNS = 8
SCALE = 1.3 * 2**20


def seconds(task: Callable[[], object], draws: int, repeats: int = 7) -> list[float]:
    """Processor time of ``repeats`` runs, per draw."""
    return processor_seconds(task, runs=repeats, each=draws)


def line(name: str, ours: list[float], numpy: list[float], opendp: list[float] | None) -> None:
    """One draw beside numpy's, and the figure beside OpenDP's."""
    mine, theirs = 1e9 * statistics.median(ours), 1e9 * statistics.median(numpy)
    print(
        f"{name:26s} ours {mine:6.1f} ns   numpy {theirs:5.1f} ns, ours is {mine / theirs:4.1f} "
        "times that"
    )
    if opendp is not None:
        Figure.of(f"{name}, a number", ours, peer="OpenDP", theirs=opendp).keep()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1 << 20, help="a multiple of 4,096")
    draws = parser.parse_args().draws
    fewer = draws // OPENDP_SHARE
    rng, ours, theirs = np.random.default_rng(0), SecureSampler(), OpenDPSampler()
    with threadpool_limits(1):
        laplace = seconds(lambda: rng.laplace(size=draws), draws)
        normal = seconds(lambda: rng.standard_normal(size=draws), draws)
        theirs.discrete_laplace(1, scale=SCALE)
        theirs.discrete_gaussian(1, sigma=SCALE)
        line(
            "discrete Laplace",
            seconds(lambda: ours.discrete_laplace(draws, scale=SCALE), draws),
            laplace,
            seconds(lambda: theirs.discrete_laplace(fewer, scale=SCALE), fewer, 3),
        )
        line(
            "discrete Gaussian",
            seconds(lambda: ours.discrete_gaussian(draws, sigma=SCALE), draws),
            normal,
            seconds(lambda: theirs.discrete_gaussian(fewer, sigma=SCALE), fewer, 3),
        )
        for norm in (Norm.LINF, Norm.L2):
            rows = draws // 64
            ns = seconds(
                lambda norm=norm, rows=rows: k_norm(
                    rows, COLUMNS, scale=SCALE, norm=norm, sampler=ours
                ),
                rows * COLUMNS,
                3,
            )
            slow = seconds(
                lambda norm=norm: k_norm(
                    max(1, fewer // 40), COLUMNS, scale=SCALE, norm=norm, sampler=theirs
                ),
                max(1, fewer // 40) * COLUMNS,
                3,
            )
            line(f"K-norm {norm.value}, {COLUMNS} coordinates", ns, laplace, slow)
        chances = rng.random(draws)
        line(
            "coins of given doubles",
            seconds(lambda: ours.bernoulli(chances), draws),
            seconds(lambda: rng.random(draws) < chances, draws),
            None,
        )
        few = 1e6 * statistics.median(
            seconds(lambda: [ours.discrete_laplace(FEW, scale=SCALE) for _ in range(500)], 500)
        )
        slow = 1e6 * statistics.median(
            seconds(lambda: [theirs.discrete_laplace(FEW, scale=SCALE) for _ in range(500)], 500)
        )
        print(f"{FEW} Laplace draws at a time: {few:.0f} us, OpenDP {slow:.0f} us")
        print(
            "tables of a new scale: "
            f"{1e3 * statistics.median(seconds(lambda: GeometricDigits(SCALE), 1)):.1f} ms, once"
        )


if __name__ == "__main__":
    main()
