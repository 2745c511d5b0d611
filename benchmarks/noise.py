"""What exact noise costs: ``python benchmarks/noise.py``.

One core, processor time, the best of seven runs, all in one process. Draws of each sampler
against numpy's float64 draws of the continuous mechanism (``Generator.laplace``,
``standard_normal``), which are no release noise, and against OpenDP's exact ones, at the scale
that a mechanism of epsilon 1 uses (about 2^20 grid steps). For K-norm noise, which neither has,
the peer is numpy's Laplace draw for each coordinate.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from reticent.core import Norm
from reticent.noise import OpenDPSampler, SecureSampler, k_norm
from reticent.noise.geometric import GeometricDigits

COUNT = 1 << 20
FEW = 8
OPENDP_COUNT = 20_000
COLUMNS = 8
SCALE = 1.3 * 2**20


def nanoseconds(task: Callable[[], object], draws: int, repeats: int = 7) -> float:
    """Least processor time of ``repeats`` runs, per draw."""
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        task()
        times.append(time.process_time_ns() - start)
    return min(times) / draws


def line(name: str, ours: float, numpy: float, opendp: float | None) -> None:
    others = (
        "" if opendp is None else f"   OpenDP {opendp:8.0f} ns, {opendp / ours:5.0f} times ours"
    )
    print(
        f"{name:26s} ours {ours:6.1f} ns   numpy {numpy:5.1f} ns, ours is {ours / numpy:4.1f} "
        f"times that{others}"
    )


def main() -> None:
    rng, ours, theirs = np.random.default_rng(0), SecureSampler(), OpenDPSampler()
    with threadpool_limits(1):
        laplace = nanoseconds(lambda: rng.laplace(size=COUNT), COUNT)
        normal = nanoseconds(lambda: rng.standard_normal(size=COUNT), COUNT)
        theirs.discrete_laplace(1, scale=SCALE)
        theirs.discrete_gaussian(1, sigma=SCALE)
        line(
            "discrete Laplace",
            nanoseconds(lambda: ours.discrete_laplace(COUNT, scale=SCALE), COUNT),
            laplace,
            nanoseconds(
                lambda: theirs.discrete_laplace(OPENDP_COUNT, scale=SCALE), OPENDP_COUNT, 3
            ),
        )
        line(
            "discrete Gaussian",
            nanoseconds(lambda: ours.discrete_gaussian(COUNT, sigma=SCALE), COUNT),
            normal,
            nanoseconds(
                lambda: theirs.discrete_gaussian(OPENDP_COUNT, sigma=SCALE), OPENDP_COUNT, 3
            ),
        )
        for norm in (Norm.LINF, Norm.L2):
            rows = 2**14
            ns = nanoseconds(
                lambda norm=norm, rows=rows: k_norm(
                    rows, COLUMNS, scale=SCALE, norm=norm, sampler=ours
                ),
                rows * COLUMNS,
                3,
            )
            slow = nanoseconds(
                lambda norm=norm: k_norm(
                    OPENDP_COUNT // 40, COLUMNS, scale=SCALE, norm=norm, sampler=theirs
                ),
                OPENDP_COUNT // 40 * COLUMNS,
                3,
            )
            line(f"K-norm {norm.value}, {COLUMNS} coordinates", ns, laplace, slow)
        chances = rng.random(COUNT)
        line(
            "coins of given doubles",
            nanoseconds(lambda: ours.bernoulli(chances), COUNT),
            nanoseconds(lambda: rng.random(COUNT) < chances, COUNT),
            None,
        )
        few = nanoseconds(
            lambda: [ours.discrete_laplace(FEW, scale=SCALE) for _ in range(500)], 500
        )
        slow = nanoseconds(
            lambda: [theirs.discrete_laplace(FEW, scale=SCALE) for _ in range(500)], 500
        )
        print(f"{FEW} Laplace draws at a time: {few / 1e3:.0f} us, OpenDP {slow / 1e3:.0f} us")
        print(
            "tables of a new scale: "
            f"{nanoseconds(lambda: GeometricDigits(SCALE), 1) / 1e6:.1f} ms, once"
        )


if __name__ == "__main__":
    main()
