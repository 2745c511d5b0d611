"""What five ordinary calls take beside the bare arithmetic of their results:
``python benchmarks/essentials.py [--rows 200000] [--pairs 800] [--runs 3]``.

The calls: a release of a table of words and numbers by a code, a fit of Private-kNN, fits of a
classifier and of a regressor by noisy gradients, and a charge to a ledger. Each stands beside what
its result cannot do without, by NumPy, pyarrow, SHA-256 and SQLite on the same data: words as codes
and numbers in their range, sums of trees, coins; whole numbers, digests, their order and the matrix
of a search; products, exponentials and cuts of every step; SQL statements. No checks, and float64
in place of exact sums. The *essential share* is the bare time over that of the call: a half is
asked, and a quarter of the ledger. Processor time of one thread. Trees are summed by the package's
own code on both sides, since scikit-learn's takes longer.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from figures import Figure, processor_seconds
from threadpoolctl import threadpool_limits

from ledger import bare_rate, pace_of
from reticent import (
    Ledger,
    NoisyGradientClassifier,
    NoisyGradientRegressor,
    PowerEncoder,
    PrivateKNNClassifier,
)
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import PrivacyWarning
from reticent.datasets.adult import load_adult_sample
from reticent.systems import Features, Neighbours
from reticent.tables import Categorical, Numeric, adult_schema

Array = npt.NDArray[np.float64]

KNN_FEATURES, FEATURES, CLASSES, STEPS = 64, 50, 10, 20
AT_ONCE = 4096
ASKED = {"a charge": 0.25}


def release(rows: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A release of Adult's rows, and the same without anything around it."""
    sample, schema = load_adult_sample(), adult_schema()
    columns = dict(zip(schema.column_names, sample.train_rows.T, strict=True))
    table = pa.table({name: pa.array(cells.tolist()) for name, cells in columns.items()})
    encoder = PowerEncoder(
        epsilon=1.0, delta=0.0, radius=None, schema=schema, mechanism="code", random_state=0
    ).fit(table, sample.train_labels)
    table = pa.concat_tables([table] * (rows // len(table) + 1)).slice(0, rows)
    query: Any = encoder.query_
    channel, (model,) = query.mechanism, [source.model for source in query.sources]
    cuts = np.cumsum(channel.shares[:-1].astype(np.uint64), axis=0)

    def bare() -> Array:
        numbers, codes, places = [], [], []
        for attribute, (_, part, _) in zip(schema.attributes, schema.groups, strict=True):
            column = table.column(attribute.name).combine_chunks()
            if isinstance(attribute, Numeric):
                values = np.asarray(column)
                span = attribute.upper - attribute.lower
                inside = np.clip(values, attribute.lower, attribute.upper) - attribute.lower
                log = attribute.scale == "log"
                numbers.append(np.log1p(inside) / np.log1p(span) if log else inside / span)
                places.append(part.start)
                continue
            assert isinstance(attribute, Categorical)
            coded = column.dictionary_encode()
            known = {str(value): place for place, value in enumerate(attribute.categories)}
            other = known.get(str(attribute.other), 0)
            words = [known.get(word, other) for word in coded.dictionary.to_pylist()]
            codes.append(np.array(words)[np.asarray(coded.indices)] + part.start)
        given = CodedRows(
            np.stack(numbers, axis=1),
            np.array(places, dtype=np.int32),
            np.stack(codes, axis=1).astype(np.int32),
            0.5**0.5,
            schema.dimension,
        )
        share = 1.0 / (1.0 + np.exp(-model.scores(given)[:, 0]))
        coins = np.frombuffer(os.urandom(4 * rows), dtype=np.uint32)
        told = np.zeros(rows, dtype=np.int64)
        for start in range(0, rows, AT_ONCE):
            some = slice(start, start + AT_ONCE)
            worth = query.logs[:, :1] + (query.logs[:, 1:] - query.logs[:, :1]) * share[some]
            for cut in cuts[:, worth.argmax(axis=0)]:
                told[some] += coins[some] >= cut
        return np.eye(channel.classes)[told]

    return lambda: encoder.release(table), bare


def neighbours(rows: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A fit of Private-kNN."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(rows, KNN_FEATURES)), random.integers(CLASSES, size=rows)
    model = PrivateKNNClassifier(
        epsilon=1.0,
        delta=1e-8,
        queries=100,
        classes=range(CLASSES),
        neighbours=Neighbours(number=300, sampling_probability=0.15),
        features=Features(range=(-6.0, 6.0)),
    )

    def bare() -> object:
        whole = np.empty(X.shape, dtype=np.int16)
        digests = []
        for start in range(0, rows, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            whole[part] = np.rint(X[part] * 40.0)
            bits = [array[part].view(np.uint8) for array in (whole, y[:, None])]
            keys = np.concatenate(bits, axis=1).view(f"V{2 * KNN_FEATURES + 8}").ravel().tolist()
            digests.append(b"".join([hashlib.sha256(key).digest() for key in keys]))
        order = np.argsort(np.frombuffer(b"".join(digests), dtype=">u8")[::4].astype(np.uint64))
        columns = np.empty((KNN_FEATURES + 1, rows), dtype=np.float32)
        for start in range(0, rows, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            points = whole[order[part]].astype(np.float32)
            columns[:-1, part] = points.T
            np.einsum("ij,ij->i", points, points, out=columns[-1, part])
        return columns, y[order]

    return lambda: model.fit(X, y), bare


def gradients(rows: int, kind: type[Any]) -> tuple[Callable[[], object], Callable[[], object]]:
    """A fit by noisy gradients, of a softmax or of squares."""
    random = np.random.default_rng(0)
    X, public = random.normal(size=(rows, FEATURES)), random.normal(size=(2000, FEATURES))
    squares = kind is NoisyGradientRegressor
    y = random.random(rows) if squares else random.integers(CLASSES, size=rows)
    labels: Any = {"target_range": (0.0, 1.0)} if squares else {"classes": range(CLASSES)}
    turn = np.linalg.eigh(public.T @ public)[1]

    def ours() -> object:
        model = kind(epsilon=1.0, delta=1e-8, steps=STEPS, records=rows, **labels)
        return model.fit(X, y, public_X=public)

    def bare() -> Array:
        points = np.rint(np.column_stack([np.rint(X * 1e5) @ turn, np.ones(rows)]))
        points *= (2.0**14 / np.sqrt(np.einsum("ij,ij->i", points, points)))[:, None]
        truth = y[:, None] if squares else np.eye(CLASSES)[y]
        weights = np.zeros((points.shape[1], truth.shape[1]))
        for _ in range(STEPS):
            total = np.zeros_like(weights)
            for start in range(0, rows, AT_ONCE):
                some = points[start : start + AT_ONCE]
                guess = some @ weights
                if not squares:
                    guess = np.exp(guess - guess.max(axis=1, keepdims=True))
                    guess /= guess.sum(axis=1, keepdims=True)
                guess -= truth[start : start + AT_ONCE]
                length = np.sqrt(np.einsum("ij,ij->i", guess, guess))
                guess *= np.minimum(1.0, 1.0 / np.maximum(length, 1e-300))[:, None]
                total += some.T @ np.rint(guess * 2.0**13)
            weights -= 1e-9 * (total + random.normal(size=total.shape)) / rows
        return weights

    return ours, bare


def charges(pairs: int) -> tuple[float, float]:
    """Seconds of a reservation with its commit, and those of its SQL statements alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        ledger = Ledger.create(path)
        ours = 1.0 / pace_of(ledger, pairs).rate
        return ours, 1.0 / bare_rate(ledger, path, "FULL", pairs)


def show(what: str, ours: list[float], bare: list[float]) -> None:
    """The figure of one call, and its share."""
    Figure.of(what, ours, peer="the bare arithmetic", theirs=bare).keep()
    share = statistics.median(bare) / statistics.median(ours)
    asked = next((share for start, share in ASKED.items() if what.startswith(start)), 0.5)
    print(f"  essential share {share:.2f}, {asked:g} asked")


def main() -> None:
    """Prints the five calls."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--pairs", type=int, default=800)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    rows = options.rows
    calls = {
        f"a release of {rows:,} rows of Adult by a code": lambda: release(rows),
        f"a fit of Private-kNN, {rows:,} x {KNN_FEATURES}": lambda: neighbours(rows),
        f"{STEPS} noisy gradients of {rows:,} x {FEATURES}, {CLASSES} labels": lambda: gradients(
            rows, NoisyGradientClassifier
        ),
        f"{STEPS} noisy gradients of {rows:,} x {FEATURES}, squares": lambda: gradients(
            rows, NoisyGradientRegressor
        ),
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # of fits on the same records
        for what, made in calls.items():
            ours, bare = made()
            ours(), bare()  # what is loaded once
            sides: tuple[list[float], list[float]] = ([], [])
            for _ in range(options.runs):
                for side, task in zip(sides, (ours, bare), strict=True):
                    side += processor_seconds(task, runs=1)
            show(what, *sides)
    found = [charges(options.pairs) for _ in range(options.runs)]
    show("a charge to a ledger on SQLite", *(list(side) for side in zip(*found, strict=True)))


if __name__ == "__main__":
    main()
