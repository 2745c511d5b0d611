"""A start from public models beside the other released models: ``python -m
papers.choose.public_start``.

Of each data set 10,000 records are private, a twentieth as many rows are public with labels, and
8,000 others are scored. They come from training parts. Every method has its default settings, the
same total and the same public rows. A split is a draw of the rows and has three draws of the noise.
The standard error is that over splits.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.choose.left_out import DELTA
from papers.choose.sources import DATA
from reticent.core.arrays import Integers
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.moment import MomentClassifier
from reticent.systems.votes.noisy_counts import Pace
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.systems.votes.released_classifier import ReleasedClassifier

PRIVATE, PUBLIC, SCORED = 10_000, 500, 8000
SEEDS = (0, 1, 2)
CASES = {
    "adult": (0.5, "table"),
    "covertype": (0.5, "table"),
    "imdb": (1.0, "embedding"),
    "mnist": (2.0, "picture"),
}
"""By data set: epsilon, and the kind of its rows."""


def scores_of(data: str, split: int) -> Iterator[tuple[str, float]]:
    """Yield each method's name and its accuracy, the mean over draws of the noise."""
    (epsilon, kind), source = CASES[data], DATA[data]()
    order = np.random.default_rng([split, 77]).permutation(len(source.rows))
    scored, private, public = np.split(order, [SCORED, SCORED + PRIVATE])
    public = public[:PUBLIC]
    rows = [source.as_numbers(part) for part in (private, public, scored)]
    labels = [source.labels[part] for part in (private, public, scored)]
    classes = tuple(range(int(source.labels.max()) + 1))
    total: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "classes": classes}
    models: list[ReleasedClassifier] = [
        PublicStartClassifier(**total, rows=kind, records=PRIVATE),
        NoisyGradientClassifier(**total, pace=Pace(records=PRIVATE)),
        NoisyGradientClassifier(**total, pace=Pace(records=PRIVATE), warm_start=True),
        MomentClassifier(**total),
        CellsClassifier(**total, cells=100),
    ]
    for model in models:
        fits = model.simulate_fits(
            rows[0],
            labels[0],
            public_X=rows[1],
            public_y=labels[1],
            totals=[(epsilon, DELTA)],
            seeds=SEEDS,
        )
        right = []
        for fit in fits:
            right.append(_right(fit.predict(rows[2]), labels[2]))
        warm = ", warm" if getattr(model, "warm_start", False) else ""
        yield type(model).__name__ + warm, float(np.mean(right))
        if isinstance(fit, PublicStartClassifier):
            start = fit.space_
            offsets = start.pools[0].offsets(start.row_details.scaled(rows[2]))
            yield "public models alone", _right(offsets.argmax(axis=1), labels[2])
    constant = np.bincount(labels[1]).argmax()
    yield "constant", _right(np.full(SCORED, constant), labels[2])


def table(names: list[str], splits: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| data | epsilon | method | accuracy | standard error |"
    yield "|---|---|---|---|---|"
    for data in names:
        found: dict[str, list[float]] = {}
        for split in range(splits):
            for name, score in scores_of(data, split):
                found.setdefault(name, []).append(score)
        for name, values in found.items():
            error = np.std(values, ddof=1) / len(values) ** 0.5 if splits > 1 else np.nan
            yield f"| {data} | {CASES[data][0]:g} | {name} | {np.mean(values):.4f} | {error:.4f} |"


def _right(found: npt.NDArray[np.int64], truth: Integers) -> float:
    return float((np.asarray(found) == truth).mean())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--splits", type=int, default=3)
    arguments = parser.parse_args()
    for line in table(arguments.data, arguments.splits):
        print(line, flush=True)


if __name__ == "__main__":
    main()
