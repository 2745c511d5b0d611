"""The whole release path of posthoc embeddings on one core: points per CPU second, one call, and
two peers in the same run.

For an 8-32-8 obfuscator with random weights, every mechanism, the global and the local path (P at
the median of local bounds, so that the test has to look at most points), and two kinds of
certificate. Columns:

- released: points per CPU second, everything included;
- but noise: the same without drawing (snap, forward, levels, rounding, receipt);
- one call: CPU milliseconds of a release of one row, and of the same without drawing;
- numpy: CPU time of the release over that of ``Generator.laplace`` drawing as many numbers;
- OpenDP: the same over one vector call of OpenDP's discrete Laplace measurement on as many numbers
  at the same scale.

    python benchmarks/release.py [--points 10000] [--mechanisms laplace]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import statistics
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import opendp.prelude as opendp
import torch
from figures import Figure, processor_seconds
from torch import nn

from reticent.mechanisms import AdditiveMechanism
from reticent.systems import Calibration, PosthocEncoder

CALLS = 100
MECHANISMS = ("laplace", "k-norm-linf", "k-norm-l2", "gaussian")
RADIUS = 0.1


def seconds(action: Callable[[], object], *, repeats: int = 3) -> float:
    """The median CPU time of some runs."""
    return statistics.median(processor_seconds(action, runs=repeats))


@contextmanager
def no_noise(mechanism: AdditiveMechanism) -> Any:
    """``mechanism`` draws zeros, which costs nothing."""
    with patch.object(
        type(mechanism),
        "draw",
        lambda self, rows, *, sampler: np.zeros((rows, self.dimension), dtype=np.int64),
    ):
        yield


def fitted(
    mechanism: str, path: str, certificate: str, embeddings: np.ndarray, obfuscator: nn.Module
) -> PosthocEncoder:
    encoder = PosthocEncoder(
        epsilon=5.0,
        delta=0.05,
        radius=RADIUS,
        embedder="identity",
        obfuscator=obfuscator,
        mechanism=mechanism,
        calibration=Calibration(path=path, certificate=certificate),
        random_state=0,
    ).fit(embeddings)
    if path == "local":
        query = encoder.query_
        proposal = float(np.median(query.bound.bound(embeddings[:1000], 3 * RADIUS)))
        encoder.query_ = replace(query, plan=replace(query.plan, proposal=proposal))
    return encoder


def row(name: str, encoder: PosthocEncoder, points: np.ndarray) -> str:
    mechanism = encoder.query_.mechanism
    mechanism = mechanism if isinstance(mechanism, AdditiveMechanism) else mechanism.inner  # type: ignore[union-attr]
    assert isinstance(mechanism, AdditiveMechanism)
    one = points[:1]
    runs = processor_seconds(lambda: encoder.release(points))
    whole = statistics.median(runs)
    single = seconds(lambda: [encoder.release(one) for _ in range(CALLS)]) / CALLS
    with no_noise(mechanism):
        rest = seconds(lambda: encoder.release(points))
        single_rest = seconds(lambda: [encoder.release(one) for _ in range(CALLS)]) / CALLS
    shape = (len(points), mechanism.dimension)
    random = np.random.default_rng(0)
    by_numpy = seconds(lambda: random.laplace(scale=mechanism.scale, size=shape))
    opendp.enable_features("contrib")
    measure = opendp.m.make_laplace(
        opendp.vector_domain(opendp.atom_domain(T="i64")),
        opendp.l1_distance(T="i64"),
        mechanism.steps_scale,
    )
    zeros = np.zeros(points.shape[0] * mechanism.dimension, dtype=np.int64)
    theirs = processor_seconds(lambda: measure(zeros), runs=2)
    by_opendp = statistics.median(theirs)
    if "interval" not in name:
        Figure.of(
            f"release of {len(points):,} embeddings, {name}",
            runs,
            peer="OpenDP, its noise alone",
            theirs=theirs,
        ).keep()
    return (
        f"{len(points) / whole:>10.0f} {len(points) / rest:>10.0f} {1e3 * single:>8.3f} "
        f"{1e3 * single_rest:>8.3f} "
        f"{whole / by_numpy:>8.1f} {whole / by_opendp:>8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=10_000, help="at least 1,000")
    parser.add_argument("--mechanisms", nargs="+", default=MECHANISMS, choices=MECHANISMS)
    options = parser.parse_args()
    number = options.points
    torch.set_num_threads(1)
    torch.manual_seed(0)
    embeddings = np.random.default_rng(0).normal(size=(number, 8))
    obfuscator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
    print(f"release of {number} embeddings, 8-32-8 obfuscator, one thread, CPU time (medians)")
    print(
        f"{'mechanism':<12} {'path':<7} {'certificate':<12}   released  but noise one call    "
        "noise-     numpy   OpenDP"
    )
    for mechanism in options.mechanisms:
        for path, kind in (
            ("global", "layered"),
            ("local", "layered"),
            ("local", "interval"),
        ):
            encoder = fitted(mechanism, path, kind, embeddings, obfuscator)
            name = f"{mechanism}, {path}, {kind}"
            shown = row(name, encoder, embeddings)
            print(f"{mechanism:<12} {path:<7} {kind:<12} {shown}", flush=True)


if __name__ == "__main__":
    main()
