"""How fast noise is added on the release path: ``python benchmarks/additive_release.py [--rows
1000]``.

Vectors of 8 numbers by each additive mechanism with ``SecureSampler``, against OpenDP
called once per number (the obvious way to use it), measured in the same run on one core,
processor time of five runs each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import opendp.prelude as opendp
from figures import Figure, processor_seconds
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

COLUMNS = 8


def main() -> None:
    """Prints one line per mechanism: seconds, and how many times one call per number takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    rows = parser.parse_args().rows
    opendp.enable_features("contrib")
    near = Neighborhood(Norm.LINF, 0.5, "embedding")
    settings = {"sensitivity": 1.0, "epsilon": 1.0, "dimension": COLUMNS, "adjacency": near}
    mechanisms: dict[str, AdditiveMechanism] = {
        "Laplace": LaplaceMechanism(**settings),
        "K-norm, l-infinity": KNormMechanism(output_norm=Norm.LINF, **settings),
        "K-norm, l2": KNormMechanism(output_norm=Norm.L2, **settings),
        "Gaussian": GaussianMechanism(delta=1e-5, **settings),
    }
    values = np.random.default_rng(0).normal(size=(rows, COLUMNS))
    levels = np.arange(rows) % 6
    sampler = SecureSampler()
    scalar = opendp.m.make_laplace(
        opendp.atom_domain(T="i64"),
        opendp.absolute_distance(T="i64"),
        scale=mechanisms["Laplace"].steps_scale,
    )
    with threadpool_limits(1):
        single = processor_seconds(lambda: [scalar(0) for _ in range(rows * COLUMNS)])

        def show(name: str, task: Callable[[], object]) -> None:
            task()  # makes the tables of its scale
            Figure.of(
                f"{name} noise on {rows:,} vectors of {COLUMNS}",
                processor_seconds(task),
                peer="OpenDP, one call a number",
                theirs=single,
            ).keep()

        for name, mechanism in mechanisms.items():
            show(name, partial(mechanism.release, values, sampler=sampler))
        test = ProposeTestRelease(
            radius=0.5,
            proposal=2.0,
            epsilon_test=0.5,
            delta_test=1e-2,
            inner=mechanisms["K-norm, l-infinity"],
        )
        show("propose-test-release, K-norm", partial(test.release, values, levels, sampler=sampler))


if __name__ == "__main__":
    main()
