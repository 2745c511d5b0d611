"""Adversarial retrainings of each certificate: ``python -m papers.certified.retrainings``.

Small random data sets are trained on, then again with a record more or less. Records that come are
the query itself, its opposite and the ends of the ball, with either label, so that they pull where
it tells. Counted are queries whose distances move by more than 1, or are not 0 where the label
changes. The largest change of a reserve is in units of what the certificate grants one record.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from copy import copy
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array, Integers
from reticent.release.fits import not_counted
from reticent.retraining import (
    ConvexSettings,
    HiddenSettings,
    convex_model,
    hidden_model,
    one_against_one,
)
from reticent.retraining.reserves import ReserveSettings
from reticent.systems import LinearVoteClassifier, PublicReference
from reticent.systems.votes.sums import VOTE
from reticent.systems.votes.voters import voters_of

Fit = Callable[[Array, Integers, Array], tuple[Integers, Array]]
"""From records and labels to labels and reserves of queries."""


class Task(NamedTuple):
    """A data set and its number of labels, what is trained on it, and how long queries are.

    ``worth`` is what one record may take from a reserve.
    """

    X: Array
    y: Integers
    classes: int
    fit: Fit
    scale: float
    worth: float

    @classmethod
    def of(cls, X: Array, y: Integers, classes: int, fit: Fit, settings: ReserveSettings) -> Task:
        """Return the task of a model with reserves."""
        return cls(X, y, classes, fit, settings.norm_bound, settings.worth)

    def distances(self, reserves: Array) -> Integers:
        """Return stable distances."""
        return np.maximum(np.ceil(reserves / self.worth) - 1.0, 0.0).astype(np.int64)


def _offsets(X: Array, settings: ReserveSettings) -> Array | None:
    bound = settings.offset_bound
    return 1.2 * bound * np.sin(50.0 * X.sum(axis=1) + X[:, 0]) if bound else None


def _records(random: np.random.Generator, classes: int) -> tuple[Array, Integers]:
    size, features = int(random.integers(0, random.choice([4, 14, 40]))), int(random.integers(1, 4))
    y = random.integers(0, classes, size)
    ways = random.normal(size=(classes, features)) * random.choice([0.0, 1.0, 3.0])
    return random.normal(size=(size, features)) + ways[y], y


def _common(random: np.random.Generator, features: int) -> dict[str, Any]:
    return {
        "features": features,
        "norm_bound": float(random.choice([0.5, 2.0])),
        "intercept": float(random.choice([0.1, 1.0])),
        "offset_bound": float(random.choice([0.0, 1.0, 8.0])),
    }


def _convex(random: np.random.Generator) -> Task:
    X, y = _records(random, 2)
    settings = ConvexSettings(
        regularization=float(10 ** random.uniform(-1.2, 1.3)), **_common(random, X.shape[1])
    )

    def fit(X: Array, y: Integers, queries: Array) -> tuple[Integers, Array]:
        model = convex_model(X, y, settings, offsets=_offsets(X, settings))
        return model.reserves(queries, _offsets(queries, settings))

    return Task.of(X, y, 2, fit, settings)


def _pairs(random: np.random.Generator) -> Task:
    X, y = _records(random, 3)
    settings = ConvexSettings(
        regularization=float(10 ** random.uniform(-1.2, 0.5)), **_common(random, X.shape[1])
    )
    kept: dict[tuple[int, bytes], tuple[Integers, Array]] = {}

    def fit(X: Array, y: Integers, queries: Array) -> tuple[Integers, Array]:
        found = []
        for place, (first, second) in enumerate(((0, 1), (0, 2), (1, 2))):
            own = (y == first) | (y == second)
            key = place, X[own].tobytes() + y[own].tobytes()
            if key not in kept:
                rows, told = X[own], (y[own] == second).astype(np.int64)
                model = convex_model(rows, told, settings, offsets=_offsets(rows, settings))
                kept[key] = model.reserves(queries, _offsets(queries, settings))
            found.append(kept[key])
        labels, reserves = zip(*found, strict=True)
        return one_against_one(np.stack(labels), np.stack(reserves), classes=3)

    return Task.of(X, y, 3, fit, settings)


def _hidden(random: np.random.Generator) -> Task:
    X, y = _records(random, 2)
    units, reach = int(2 * random.integers(1, 9)), float(10 ** random.uniform(-0.5, 1.7))
    least = math.ceil(reach * (0.25 + 0.38490085 / math.sqrt(units)) / 2)
    settings = HiddenSettings(
        records=len(X) + int(random.integers(1, 6)),
        units=units,
        reach=reach,
        steps=least + int(random.integers(0, 4)),
        spread=float(random.choice([0.05, 0.5, 3.0])),
        **_common(random, X.shape[1]),
    )

    def fit(X: Array, y: Integers, queries: Array) -> tuple[Integers, Array]:
        model = hidden_model(X, y, settings, seed=1, offsets=_offsets(X, settings))
        return model.reserves(queries, _offsets(queries, settings))

    return Task.of(X, y, 2, fit, settings)


@lru_cache(maxsize=64)
def _public(seed: int, classes: int, features: int) -> LinearVoteClassifier:
    """Return a vote beside public models of random rows, without a record."""
    random = np.random.default_rng([seed, 4])
    rows = random.normal(size=(30, features))
    codes = np.concatenate([np.arange(classes), random.integers(0, classes, 30 - classes)])
    reference = PublicReference(
        models=[LogisticRegression(C=float(random.choice([0.1, 10.0])))],
        rows="embedding",
        weight=float(random.choice([0.1, 1.0])),
        records=int(random.choice([1, 10, 40])),
    )
    vote = LinearVoteClassifier(
        epsilon=1.0,
        delta=0.0,
        classes=range(classes),
        answers=1,
        clip_quantile=float(random.choice([0.5, 0.8, 1.0])),
        features=reference,
    )
    with not_counted("a search for faults in random data sets"):
        return vote.fit(rows[:0], codes[:0], public_X=rows, public_y=codes)


def _residual(random: np.random.Generator) -> Task:
    classes = int(random.integers(2, 4))
    X, y = _records(random, classes)
    public = _public(int(random.integers(0, 10)), classes, X.shape[1])

    def fit(X: Array, y: Integers, queries: Array) -> tuple[Integers, Array]:
        vote = copy(public)
        vote._voters = voters_of(vote.space_.points(X), y, None)
        table = vote.vote_table(queries)
        ranked = np.sort(table, axis=1)
        return table.argmax(axis=1), (ranked[:, -1] - ranked[:, -2]) / VOTE

    return Task(X, y, classes, fit, 2.0, 1.0)


KINDS: dict[str, Callable[[np.random.Generator], Task]] = {
    "convex": _convex,
    "one against one": _pairs,
    "hidden layer": _hidden,
    "residual vote": _residual,
}


def _neighbours(task: Task, queries: Array) -> Iterator[tuple[Array, Integers]]:
    far = 50.0 * queries[:2]
    for row in (queries[0], -queries[0], *far, -far[0]):
        for label in range(task.classes):
            yield np.vstack([task.X, row]), np.append(task.y, label)
    for place in range(min(len(task.X), 6)):
        yield np.delete(task.X, place, axis=0), np.delete(task.y, place)


def search(kind: str, *, retrainings: int, seconds: float, seed: int = 0) -> dict[str, float]:
    """Return counts, and the largest change of a reserve, of up to ``retrainings`` in CPU time.

    Example:
        >>> found = search("hidden layer", retrainings=40, seconds=10.0)
        >>> found["retrainings"] >= 40, found["broken"]
        (True, 0)
    """
    until = time.process_time() + seconds
    done, broken, flips, largest, round_ = 0, 0, 0, 0.0, 0
    while done < retrainings and time.process_time() < until:
        random = np.random.default_rng([seed, round_])
        round_ += 1
        task = KINDS[kind](random)
        queries = random.normal(size=(12, task.X.shape[1])) * task.scale
        labels, reserves = task.fit(task.X, task.y, queries)
        distances = task.distances(reserves)
        for X, y in _neighbours(task, queries):
            others, beside = task.fit(X, y, queries)
            far = task.distances(beside)
            differ = labels != others
            broken += int((np.abs(far - distances) > 1).sum())
            broken += int((differ & ((far > 0) | (distances > 0))).sum())
            flips += int(differ.sum())
            change = float(np.abs(beside - reserves).max()) / task.worth
            largest = max(largest, change)
            done += 1
    return {"retrainings": done, "flips": flips, "largest": largest, "broken": broken}


def main(arguments: list[str] | None = None) -> None:
    """Read the command line and print a line for each certificate."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--retrainings", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600.0, help="CPU time for each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), default=tuple(KINDS))
    chosen = parser.parse_args(arguments)
    print("| | retrainings | labels that changed | largest change of a reserve | broken |")
    print("|---|---|---|---|---|")
    for kind in chosen.kinds:
        found = search(
            kind, retrainings=chosen.retrainings, seconds=chosen.seconds, seed=chosen.seed
        )
        print(
            f"| {kind} | {found['retrainings']:,} | {found['flips']:,} | {found['largest']:.4f} | "
            f"{found['broken']} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
