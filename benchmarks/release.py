"""Throughput of the whole release path: embeddings in, noisy values and receipt out, one thread.

Prints points per second for every law on both paths with an 8-32-8 obfuscator, and two ratios from the same run:
a batch against one call per point, and the enumeration certificate against intervals.

    python benchmarks/release.py
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import nn

from reticent.systems import PosthocEncoder

POINTS = 4000
LAWS = ("laplace", "k-norm-linf", "k-norm-l2", "gaussian")


def best_rate(action: Callable[[], object], points: int, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return points / min(times)


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    embeddings = random.normal(size=(POINTS, 8))
    obfuscator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))

    def fitted(law: str, path: str, certificate: str) -> PosthocEncoder:
        encoder = PosthocEncoder(
            epsilon=5.0,
            delta=0.05,
            radius=0.1,
            embedder="identity",
            obfuscator=obfuscator,
            law=law,
            path=path,
            certificate=certificate,
            random_state=0,
        )
        return encoder.fit(embeddings)

    print(f"release of {POINTS} embeddings, 8-32-8 obfuscator, one thread, points per second (best of 5)")
    print(f"{'law':<12} {'path':<7} {'enumeration':>12} {'interval':>12} {'ratio':>6}")
    for law in LAWS:
        for path in ("global", "local"):
            rates = [
                best_rate(partial(fitted(law, path, kind).release, embeddings), POINTS) for kind in ("enumeration", "interval")
            ]
            print(f"{law:<12} {path:<7} {rates[0]:>12.0f} {rates[1]:>12.0f} {rates[0] / rates[1]:>6.2f}")
    encoder = fitted("laplace", "local", "enumeration")
    whole = best_rate(lambda: encoder.release(embeddings), POINTS)
    single = best_rate(lambda: [encoder.release(embeddings[i : i + 1]) for i in range(200)], 200, repeats=2)
    print(f"one batch against one call per point: {whole:.0f} / {single:.0f} = {whole / single:.1f} times faster")


if __name__ == "__main__":
    main()
