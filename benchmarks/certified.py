"""How long certified training takes, for every number of changed records in one pass, beside plain training in the same run.

    python benchmarks/certified.py                 # n = 3,000, k = 0 .. 100, 4 epochs: linear and 128 hidden units
    python benchmarks/certified.py --imdb          # 20,000 x 384, 100 hidden units, 3 epochs, k = 0 .. 50; with peak memory

Claims: one thread, processor time. Linear under 0.3 s, 128 hidden units under 8 s. The peer is
``plain_training``, the same run in float64 without certificates: fewer than 2 plain trainings for each k with
hidden units, about 1 without. "First plain" is the first run in this process, which still has to be given its
memory by the system; ratios are to the fastest of a second's worth. Last column: time of one query's logits for one k.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from reticent.certify.plain_training import plain_training
from reticent.certify.stability import stable_distances
from reticent.certify.training import parameter_intervals
from reticent.certify.training_settings import TrainingSettings
from reticent.datasets import load_blobs

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


def seconds_of(work: Callable[[], object], repeats: int) -> float:
    """Least processor time of one call."""
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return float(best)


def row(name: str, X: Array, y: Labels, queries: Array, settings: TrainingSettings, k_max: int, repeats: int) -> str:
    """One line of the table."""
    initial = settings.initial(0 if settings.hidden else None)

    def train() -> object:
        return plain_training(X, y, settings, initial=initial)

    first = seconds_of(train, 1)
    certified = seconds_of(lambda: parameter_intervals(X, y, settings, k_max=k_max, initial=initial), repeats)
    plain = min(first, seconds_of(train, max(1, round(1.0 / first))))
    ratio = certified / plain
    intervals = parameter_intervals(X, y, settings, k_max=min(k_max, 10), initial=initial)
    query = seconds_of(lambda: stable_distances(intervals, queries), repeats) / len(queries)
    return (
        f"{name:<34}{certified:9.2f} s{first:10.4f} s{plain:10.4f} s{ratio:9.0f}{ratio / (k_max + 1):9.2f}"
        f"{1e6 * query / (intervals.k_max + 1):10.2f} us"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--imdb", action="store_true", help="the size of IMDB instead: minutes")
    parser.add_argument("--repeats", type=int, default=2)
    chosen = parser.parse_args()
    print(f"{'':<34}{'certified':>11}{'first plain':>12}{'plain':>12}{'ratio':>9}{'per k':>9}{'query, k':>13}")
    with threadpool_limits(1):
        if chosen.imdb:
            random = np.random.default_rng(0)
            y = random.integers(0, 2, 20_000)
            X = random.normal(size=(20_000, 384)) + 0.1 * (2 * y[:, None] - 1)
            settings = TrainingSettings(
                features=384, classes=2, hidden=(100,), epochs=3, learning_rate=0.2, rate_decay=0.5, clip=0.04
            )
            print(row("20,000 x 384, 100 hidden, k <= 50", X, y, X[:1000], settings, 50, 1))
        else:
            data = load_blobs("close", points=3000)
            for name, hidden in (("3,000 x 2, linear, k <= 100", ()), ("3,000 x 2, 128 hidden, k <= 100", (128,))):
                settings = TrainingSettings(features=2, classes=2, hidden=hidden)
                arrays = data.train_rows, data.train_labels, data.test_rows
                print(row(name, *arrays, settings, 100, chosen.repeats))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory of the process: {peak:.2f} GiB")


if __name__ == "__main__":
    main()
