"""How long certified training takes, for every number of changed records in one pass, beside plain
training in the same run.

    python benchmarks/certified.py          # n = 3,000, k = 0 .. 100, 4 epochs: linear with 2
                                            # and 20 features, and 128 hidden units
    python benchmarks/certified.py --where  # the same networks: which part takes how much
    python benchmarks/certified.py --imdb   # 16,000 review embeddings (384), 100 hidden units,
                                            # 3 epochs, k = 0 .. 50

Claims: one thread, processor time, for all 101 values of k. Linear with 2 features: at most 20
plain trainings, 128 hidden units: fewer than one for each k. The peer is ``plain_training``, the
same run in float64 without certificates. "First plain" is the first run, which has yet to be given
its memory by the system; ratios are to the median of a second's worth. "k = 0": plain trainings
that a certificate of that one k takes. Last column: plain trainings that the bare arithmetic takes
box by box, with two ends for one number and for every k. It is done in float32, in the cache and
for weights that stand still, and nothing is certified. Memory is the peak of the process before
plain training, which holds a gradient of every record. The reviews need their data file
(RETICENT_DATA) and have no peer: its gradients of single records would fill 6 GiB.

Then a hidden layer that is certified by a ball (64 features, 128 units, 14 steps), beside the same
descent written down in NumPy. Claim: fewer than 5 plain trainings.

Last line: the same training with ``counting="replace"`` and "add-remove" in one run. Claim:
replacements cost at most twice as much.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import statistics
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from figures import Figure, processor_seconds
from threadpoolctl import threadpool_limits

from papers.certified.plain_training import plain_training
from papers.datasets import load_imdb
from reticent.datasets import load_blobs
from reticent.retraining import HiddenSettings, hidden_model
from reticent.retraining.stability import stable_distances
from reticent.retraining.training import parameter_intervals
from reticent.retraining.training_settings import RECORDS_AT_ONCE, TrainingSettings

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

_REVIEWS = 16_000


def seconds_of(work: Callable[[], object], repeats: int) -> float:
    """Median processor time of one call."""
    return statistics.median(processor_seconds(work, runs=repeats))


def sweep(
    name: str,
    X: Array,
    y: Labels,
    queries: Array,
    settings: TrainingSettings,
    k_max: int,
    repeats: int,
) -> None:
    """One line of the table: certified training and its queries; beside plain training where
    ``repeats`` is above 1.
    """
    initial = settings.initial(0 if settings.hidden else None)
    runs = processor_seconds(
        lambda: parameter_intervals(X, y, settings, k_max=k_max, initial=initial), runs=repeats
    )
    certified = statistics.median(runs)
    intervals = parameter_intervals(X, y, settings, k_max=min(k_max, 10), initial=initial)
    query = (
        1e6
        * seconds_of(lambda: stable_distances(intervals, queries), repeats)
        / (len(queries) * (intervals.k_max + 1))
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:<34}{certified:9.2f} s{query:10.2f} us{memory:8.2f} GiB", end="", flush=True)
    if repeats > 1:

        def train() -> object:
            return plain_training(X, y, settings, initial=initial)

        first = seconds_of(train, 1)
        theirs = processor_seconds(train, runs=max(3, min(1000, round(1.0 / first))))
        plain = statistics.median(theirs)
        alone = seconds_of(
            lambda: parameter_intervals(X, y, settings, k_max=0, initial=initial), repeats
        )
        print(
            f"{first:10.4f} s{plain:10.4f} "
            f"s{certified / plain:9.0f}{certified / plain / (k_max + 1):9.2f}{alone / plain:9.1f}"
            f"{seconds_of(lambda: both_ends(X, settings, k_max), 2) / plain:9.0f}"
        )
        Figure.of(f"certified training, {name}", runs, peer="plain training", theirs=theirs).keep()
    else:
        print()


def both_ends(X: Array, settings: TrainingSettings, k_max: int) -> None:
    """Logits, signals and sums of clipped gradients, once for each end of the weights of each k."""
    ends = 2 * (k_max + 1)
    weights = [layer.astype(np.float32) for layer in settings.initial(0)]
    if not settings.hidden:  # all boxes in one product
        weights, ends = [np.repeat(weights[0], ends, axis=0)], 1
    inputs = np.column_stack([X, np.ones(len(X))]).astype(np.float32).T
    for _ in range(ends * settings.steps):
        for start in range(0, len(X), RECORDS_AT_ONCE):
            entering = [inputs[:, start : start + RECORDS_AT_ONCE]]
            for layer in weights[:-1]:
                units = layer @ entering[-1]
                np.maximum(units, 0.0, out=units)
                entering.append(np.concatenate([units, entering[0][-1:]]))
            signal = 1.0 / (1.0 + np.exp(-(weights[-1] @ entering[-1])))
            for place, layer in reversed(list(enumerate(weights))):
                for row in entering[place]:
                    gradients = signal * row
                    np.clip(gradients, -settings.clip, settings.clip, out=gradients).sum(axis=1)
                if place:
                    signal = (layer[:, :-1].T @ signal) * (entering[place][:-1] > 0)


PARTS = {
    "bounds of weights times records": "factors",
    "sums of both ends of clipped gradients": "block_sums",
    "the records worth removing at some k": "add",
    "the k changes that move a mean most": "mean_bound",
}
"""What is printed, and the function that does it; none of them calls another one."""


def where(name: str, X: Array, y: Labels, settings: TrainingSettings, k_max: int) -> None:
    """One line: shares of the parts of certified training in its time, by Python's profiler."""
    initial = settings.initial(0 if settings.hidden else None)
    profile = cProfile.Profile(time.process_time)
    profile.runcall(parameter_intervals, X, y, settings, k_max=k_max, initial=initial)
    found = pstats.Stats(profile)
    within = {
        part: sum(one[3] for (_, _, called), one in found.stats.items() if called == function)  # type: ignore[attr-defined]
        for part, function in PARTS.items()
    }
    whole = found.total_tt  # type: ignore[attr-defined]
    shares = "; ".join(f"{part} {100 * each / whole:.0f} %" for part, each in within.items())
    print(f"{name}: {shares}; the rest {100 * (1 - sum(within.values()) / whole):.0f} %")


def normals(records: int, features: int) -> tuple[Array, Labels]:
    """Normal inputs, and labels that follow a linear score and noise."""
    random = np.random.default_rng(0)
    X = random.normal(size=(records, features))
    y = (X @ random.normal(size=features) + random.normal(size=records) > 0).astype(np.int64)
    return X, y


def replacements(records: int, features: int, k_max: int) -> None:
    """What distances in replaced records cost, beside distances in added and removed ones."""
    X, y = normals(records, features)
    seconds = {}
    for counting in ("add-remove", "replace"):
        settings = TrainingSettings(features=features, classes=2, epochs=2, counting=counting)
        initial = settings.initial(None)

        def train(settings: TrainingSettings = settings, initial: list[Array] = initial) -> object:
            return parameter_intervals(X, y, settings, k_max=k_max, initial=initial)

        seconds[counting] = seconds_of(train, 2)
    ratio = seconds["replace"] / seconds["add-remove"]
    print(
        f"{records:,} x {features}, linear, k <= {k_max}: add-remove "
        f"{seconds['add-remove']:.2f} s, "
        f"replace {seconds['replace']:.2f} s, {ratio:.1f} times"
    )


def ball(records: int, repeats: int) -> None:
    """What a hidden layer with a ball takes, beside plain descent from the same start."""
    random = np.random.default_rng(0)
    X = random.normal(size=(records, 64)) / 8.0
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    settings = HiddenSettings(features=64, records=records, reach=48.0, steps=14)
    points, signs = np.column_stack([X, np.ones(records)]) / 2.0**0.5, settings.signs

    def plain() -> Array:
        weights = settings.start(0)
        for _ in range(settings.steps):
            units = np.tanh(points @ weights.T)
            wrong = y - 1.0 / (1.0 + np.exp(-(units @ signs)))
            pull = (1.0 - units**2) * (wrong[:, None] * signs)
            weights = weights + settings.rate * (pull.T @ points)
        return weights

    theirs = processor_seconds(plain, runs=repeats)
    ours = processor_seconds(lambda: hidden_model(X, y, settings, seed=0), runs=repeats)
    what = f"hidden layer of 128 units with its ball, {records:,} x 64"
    Figure.of(what, ours, peer="plain training", theirs=theirs).keep()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--imdb", action="store_true", help="review embeddings instead; once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--distances", type=int, default=100)
    parser.add_argument("--where", action="store_true", help="which part takes how much")
    chosen = parser.parse_args()
    if not chosen.where:
        print(
            f"{'':<34}{'certified':>11}{'query, k':>13}{'memory':>12}{'first plain':>12}"
            f"{'plain':>12}{'ratio':>9}{'per k':>9}{'k = 0':>9}{'bare':>9}"
        )
    with threadpool_limits(1):
        if chosen.imdb:
            reviews = load_imdb()
            settings = TrainingSettings(
                features=384,
                classes=2,
                hidden=(100,),
                epochs=3,
                learning_rate=0.2,
                rate_decay=0.5,
                clip=0.04,
            )
            rows, labels = reviews.train_rows[:_REVIEWS], reviews.train_labels[:_REVIEWS]
            sweep(
                f"{_REVIEWS:,} x 384, 100 hidden, k <= 50",
                rows,
                labels,
                reviews.test_rows[:1000],
                settings,
                50,
                1,
            )
            return
        data = load_blobs("close", points=chosen.records)
        blobs = data.train_rows, data.train_labels
        wide = normals(chosen.records, 20)
        for (rows, labels), model, hidden in (
            (blobs, "linear", ()),
            (wide, "linear", ()),
            (blobs, "128 hidden", (128,)),
        ):
            features = rows.shape[1]
            name = f"{chosen.records:,} x {features}, {model}, k <= {chosen.distances}"
            settings = TrainingSettings(features=features, classes=2, hidden=hidden)
            if chosen.where:
                where(name, rows, labels, settings, chosen.distances)
                continue
            queries = data.test_rows if features == 2 else rows
            sweep(name, rows, labels, queries, settings, chosen.distances, max(2, chosen.repeats))
        if not chosen.where:
            ball(10 * chosen.records // 3, max(2, chosen.repeats))
            replacements(100 * chosen.records // 3, 20, min(20, chosen.distances))


if __name__ == "__main__":
    main()
