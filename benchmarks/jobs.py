"""What several workers gain: ``python benchmarks/jobs.py [--jobs 2] [--records 4000]
[--rows 40000] [--runs 3]``.

By the clock, since processor time is the same: certified training of an ensemble's members, and of
the distances of one network, by threads; and a release of embeddings on the local path by
processes, which are started before the clock runs. Each beside one worker in the same run, and
certificates have to have the same bits. On a machine with other work the gain is smaller than its
cores.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import torch
from figures import Figure
from torch import nn

from reticent import CertifiedClassifier, CertifiedEnsemble, PosthocEncoder
from reticent.systems import Calibration, ClippedDescent


def clock(task: Callable[[], object]) -> float:
    """Seconds of one call by the clock."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def show(what: str, jobs: int, task: Callable[[int], object], runs: int) -> None:
    """The figure of ``jobs`` workers beside one; runs of both take turns."""
    task(jobs)
    ours, alone = [], []
    for _ in range(runs):
        ours.append(clock(lambda: task(jobs)))
        alone.append(clock(lambda: task(1)))
    Figure.of(
        f"{what}, {jobs} workers", ours, unit="s by the clock", peer="one worker", theirs=alone
    ).keep()


def training(kind: type[Any], records: int, **settings: Any) -> Callable[[int], object]:
    """A fit by a number of workers, whose certificate never changes."""
    random = np.random.default_rng(0)
    X = random.normal(size=(records, 10))
    y = (X[:, 0] + random.normal(size=records) > 0).astype(int)
    known: list[bytes] = []

    def fit(jobs: int) -> None:
        made = kind(
            epsilon=1.0,
            classes=[0, 1],
            training=ClippedDescent(hidden=(32,), random_state=0),
            **settings,
        )
        with joblib.parallel_config(backend="threading", n_jobs=jobs):
            model = made.fit(X, y)
        ends = [ends for member in model.members_ for ends in (*member.lower, *member.upper)]
        bits = b"".join(array.tobytes() for array in ends)
        known.append(bits)
        assert bits == known[0]

    return fit


def release(rows: int) -> Callable[[int], object]:
    """A release of embeddings on the local path, by a number of workers."""
    embeddings = np.random.default_rng(0).normal(size=(rows, 8))
    torch.manual_seed(0)
    encoder = PosthocEncoder(
        epsilon=5.0,
        delta=0.05,
        radius=0.1,
        embedder="identity",
        obfuscator=nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)),
        mechanism="k-norm-linf",
        calibration=Calibration(path="local", certificate="interval"),
        random_state=0,
    ).fit(embeddings[:1000])

    def released(jobs: int) -> None:
        with joblib.parallel_config(n_jobs=jobs):
            encoder.release(embeddings)

    return released


def main() -> None:
    """Prints one figure for each kind of work."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    members = training(CertifiedEnsemble, chosen.records, members=4, k_max=10)
    show(f"certified ensemble of {chosen.records:,} records", chosen.jobs, members, chosen.runs)
    distances = training(CertifiedClassifier, chosen.records, k_max=20)
    show(f"certified network of {chosen.records:,} records", chosen.jobs, distances, chosen.runs)
    show(f"release of {chosen.rows:,} embeddings", chosen.jobs, release(chosen.rows), chosen.runs)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
