"""Forest Cover end to end through the published encoder, and what client and server pay: one
thread, process time.

Prints seconds, floating-point operations and peak memory of every stage for all 464,810 training
rows (or the first ROWS): encoding, training, density scores, log-det gradients, release; then of
the default mode's release and of the servers.

    RETICENT_DATA=... python benchmarks/power.py [ROWS]
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from figures import Figure

from papers.datasets import covertype_schema, load_covertype
from reticent.published.power import PublishedPowerEncoder
from reticent.published.power_network import PowerConfig, log_det_gradients
from reticent.systems import PowerEncoder, VectorTraining, train_server

SERVER_ROWS = 50_000


def stage(
    name: str, action: Callable[[], Any], operations: float = float("nan")
) -> tuple[Any, float]:
    start = time.process_time()
    result = action()
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{name:<44} {seconds:>8.1f} s {operations / 1e9:>12.1f} GFLOP {peak:>6.2f} GiB peak",
        flush=True,
    )
    return result, seconds


def power_operations(rows: int, dimension: int, width: int) -> float:
    """Forward map and Jacobian, its factorisation, and the backward pass at twice their cost."""
    matrices = 2 * width * dimension**2 * 3
    return 3.0 * rows * (matrices + 2 / 3 * dimension**3 + 2 * dimension**3)


def main() -> None:
    torch.set_num_threads(1)
    table, schema = load_covertype(), covertype_schema()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else len(table.train_rows)
    rows, labels = table.train_rows[:count], table.train_labels[:count]
    print(f"covertype, {count} rows, one thread")
    encoded, encoding = stage("encode by the public schema", lambda: schema.encode(rows))
    dimension, config = schema.dimension, PowerConfig(steps=100, batch_size=512, learning_rate=3e-4)
    encoder = PublishedPowerEncoder(
        epsilon=1.0, alpha=0.05, schema=schema, training=config, random_state=0
    )
    training = power_operations(config.steps * config.batch_size, dimension, config.hidden[0])
    _, fitting = stage(
        "fit the published encoder (client)", lambda: encoder.fit(rows, labels), training
    )
    network, estimate = encoder.training_.network, encoder.density_
    pairs = 4.0 * count * len(estimate.centers) * dimension
    _, density = stage("  density scores alone", lambda: estimate.evaluate(encoded), pairs)
    operations = power_operations(count, dimension, config.hidden[0])
    _, gradients = stage(
        "  log-det gradients alone", lambda: log_det_gradients(network, encoded), operations
    )
    answer, releasing = stage(
        "release, scores included (client)", lambda: encoder.transform(rows), pairs + operations
    )
    print(
        f"released {1 - np.isnan(answer[:, 0]).mean():.1%}; end to end "
        f"{encoding + fitting + releasing:.0f} s; goal: 600 s, 6 GB"
    )
    print(f"of which scores {density:.0f} s and gradients {gradients:.0f} s")
    released, targets = network.embed(encoded[:SERVER_ROWS]), labels[:SERVER_ROWS]
    for name in ("network", "forest", "boosted"):
        stage(
            f"server: {name} on {len(released)} rows",
            lambda name=name: train_server(name, released, targets, seed=0),
        )
    default = PowerEncoder(
        epsilon=1.0,
        delta=0.0,
        radius=0.1,
        schema=schema,
        random_state=0,
        training=VectorTraining(outputs=4, epochs=10),
    )
    public = slice(0, min(SERVER_ROWS, count))
    stage(
        "fit the default encoder on public rows", lambda: default.fit(rows[public], labels[public])
    )
    private, noisy = stage("release with noise (client)", lambda: default.release(rows))
    for name, seconds in (("published", releasing), ("default", noisy)):
        Figure.of(f"release of {count:,} rows of covertype, {name} mode", [seconds]).keep()
    print(
        f"payload per row: published {dimension} values, default {private.values.shape[1]}; "
        f"rows {len(np.atleast_1d(targets))}"
    )


if __name__ == "__main__":
    main()
