"""Votes and Private-kNN over records in memory-mapped shards: time, and the most memory used.

    python benchmarks/shards.py [--records 300000 1000000] [--features 64] [--queries 64]
        [--folder FOLDER]

Claim: 10^7 records of 64 features under 4 GiB, private records included. Every size and method
runs in a process of its own, whose largest resident set is printed, with the slope between sizes.
The peer is scikit-learn's exact search (``NearestNeighbors``, brute force) on the same records in
one table, without sampling, votes or noise; it is run up to 10^6 records.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 10
SHARDS = 4
METHODS = ("private k-nn", "linear votes", "noisy descent", "scikit-learn, one table")
LARGEST_PEER = 10**6


def write(folder: Path, records: int, features: int) -> list[tuple[Path, Path]]:
    """Shards of ten Gaussian classes, written a block at a time."""
    rng = np.random.default_rng(records)
    centers = rng.standard_normal((CLASSES, features))
    paths = []
    for number, size in enumerate(np.diff(np.linspace(0, records, SHARDS + 1).astype(int))):
        rows, labels = folder / f"x{records}-{number}.npy", folder / f"y{records}-{number}.npy"
        table = np.lib.format.open_memmap(
            rows, mode="w+", dtype=np.float32, shape=(int(size), features)
        )
        column = rng.integers(0, CLASSES, size=size).astype(np.int8)
        for start in range(0, int(size), 2**16):
            mine = column[start : start + 2**16]
            noise = rng.standard_normal((len(mine), features), dtype=np.float32)
            table[start : start + 2**16] = centers[mine] + noise
        table.flush()
        np.save(labels, column)
        paths.append((rows, labels))
    return paths


def run(method: str, paths: list[tuple[Path, Path]], queries: int, features: int) -> None:
    from reticent import LinearVoteClassifier, NoisyGradientClassifier, PrivateKNNClassifier
    from reticent.systems import Features, Neighbours
    from reticent.tables import Shards

    rng = np.random.default_rng(1)
    public = rng.standard_normal((2000, features)) * 1.4
    shards = Shards.of_files([rows for rows, _ in paths], [labels for _, labels in paths])
    common: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-8, "classes": range(CLASSES)}
    asked = public[:queries]
    if method == "private k-nn":
        model: Any = PrivateKNNClassifier(
            queries=queries,
            neighbours=Neighbours(number=300, sampling_probability=0.05),
            features=Features(range=(-6.0, 6.0)),
            **common,
        )
        model.fit(shards).release(asked)
    elif method == "linear votes":
        votes = LinearVoteClassifier(answers=queries, **common)
        votes.fit(shards, public_X=public).release(asked)
    elif method == "noisy descent":
        NoisyGradientClassifier(steps=3, **common).fit(shards, public_X=public).predict(asked)
    else:
        from sklearn.neighbors import NearestNeighbors

        table = np.concatenate(shards.rows)
        NearestNeighbors(n_neighbors=300, algorithm="brute").fit(table).kneighbors(
            asked.astype(np.float32)
        )


def _measured(work: Callable[..., None], arguments: tuple[Any, ...], out: Any) -> None:
    start = time.perf_counter(), time.process_time()
    work(*arguments)
    wall, busy = time.perf_counter() - start[0], time.process_time() - start[1]
    # Without the imports' share, which is the same for all.
    out.put((wall, busy, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def measured(work: Callable[..., None], *arguments: Any) -> tuple[float, float, float]:
    """Seconds by the clock, of CPU time, and the largest resident set in bytes, of a new process.

    Pages of mapped files count as resident while the system has room for them.
    """
    spawn = multiprocessing.get_context("spawn")
    out = spawn.SimpleQueue()
    child = spawn.Process(target=_measured, args=(work, arguments, out))
    child.start()
    found = out.get()
    child.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, nargs="+", default=[300_000, 1_000_000])
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--queries", type=int, default=64)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--folder", help="where the shards are written: 260 bytes a record")
    options = parser.parse_args()
    before: dict[str, tuple[int, float, float]] = {}
    for records in options.records:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            paths = write(Path(name), records, options.features)
            for method in options.methods:
                if method == METHODS[-1] and records > LARGEST_PEER:
                    continue
                wall, busy, memory = measured(run, method, paths, options.queries, options.features)
                line = (
                    f"{method:<24}{records:>10} records, {options.queries} queries: "
                    f"{wall:7.1f} s ({busy:.1f} s CPU), {memory / 2**30:.2f} GiB"
                )
                if method in before:
                    fewer, less, smaller = before[method]
                    million = 1e6 / (records - fewer)
                    line += (
                        f"; each further million {(busy - less) * million:.1f} s CPU, "
                        f"{(memory - smaller) * million / 2**30:.2f} GiB"
                    )
                before[method] = (records, busy, memory)
                print(line, flush=True)


if __name__ == "__main__":
    main()
