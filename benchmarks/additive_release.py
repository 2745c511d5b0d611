"""How fast noise is added on the release path: ``python benchmarks/additive_release.py``.

1,000 vectors of 8 numbers by each additive mechanism with ``SecureSampler``, against OpenDP
called once per number (the obvious way to use it), measured in the same run on one core. The
best of five runs counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as opendp
from threadpoolctl import threadpool_limits

from reticent.core import Neighborhood, Norm
from reticent.mechanisms import (
    AdditiveMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    ProposeTestRelease,
)
from reticent.noise import SecureSampler

ROWS, COLUMNS = 1000, 8


def best_of_five(task: Callable[[], object]) -> float:
    """Shortest of five runs, in seconds."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Prints one line per mechanism: seconds, and how many times faster than one call per
    number.
    """
    near = Neighborhood(Norm.LINF, 0.5, "embedding")
    settings = {"sensitivity": 1.0, "epsilon": 1.0, "dimension": COLUMNS, "adjacency": near}
    mechanisms: dict[str, AdditiveMechanism] = {
        "Laplace": LaplaceMechanism(**settings),
        "K-norm, l-infinity": KNormMechanism(output_norm=Norm.LINF, **settings),
        "K-norm, l2": KNormMechanism(output_norm=Norm.L2, **settings),
        "Gaussian": GaussianMechanism(delta=1e-5, **settings),
    }
    values = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
    levels = np.arange(ROWS) % 6
    sampler = SecureSampler()
    scalar = opendp.m.make_laplace(
        opendp.atom_domain(T="i64"),
        opendp.absolute_distance(T="i64"),
        scale=mechanisms["Laplace"].steps_scale,
    )
    with threadpool_limits(1):
        single = best_of_five(lambda: [scalar(0) for _ in range(ROWS * COLUMNS)])
        print(f"{'OpenDP, one call per number':32s} {single:7.3f} s")
        for name, mechanism in mechanisms.items():
            seconds = best_of_five(
                lambda mechanism=mechanism: mechanism.release(values, sampler=sampler)
            )
            print(f"{name:32s} {seconds:7.3f} s   {single / seconds:5.1f} times")
        test = ProposeTestRelease(
            radius=0.5,
            proposal=2.0,
            epsilon_test=0.5,
            delta_test=1e-2,
            inner=mechanisms["K-norm, l-infinity"],
        )
        seconds = best_of_five(lambda: test.release(values, levels, sampler=sampler))
        print(
            f"{'propose-test-release, K-norm':32s} {seconds:7.3f} s   {single / seconds:5.1f} times"
        )


if __name__ == "__main__":
    main()
