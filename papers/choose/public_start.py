"""A start from public models beside the other released models: ``python -m
papers.choose.public_start``.

Of each data set 10,000 records are private, a twentieth as many rows are public with labels, and
8,000 others are scored. They come from training parts. Every method has its default settings, the
same total and the same public rows. A split is a draw of the rows and has three draws of the
noise. The standard error is that over splits. *Naive Bayes* is of the same noisy counts as the
histograms, and of public labels. *From the constant*, *descent*, *moments* and *histograms, no
public labels* see public rows without labels; those with *no public rows* see the ends of every
column alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score
from typing_extensions import override

from reticent.core.arrays import Integers
from reticent.datasets import load, load_adult, load_covertype, load_imdb
from reticent.systems.features import Features
from reticent.systems.votes.additive_histogram import AdditiveHistogramClassifier
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.moment import MomentClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.tables import adult_schema, covertype_schema
from reticent.training.hog import oriented_gradients

Array = npt.NDArray[np.float64]

DELTA = 1e-5
PRIVATE, PUBLIC, SCORED = 10_000, 500, 8000
SEEDS = (0, 1, 2)
CASES = {
    "adult": (0.5, "table"),
    "covertype": (0.5, "table"),
    "imdb": (1.0, "embedding"),
    "mnist": (2.0, "picture"),
}
"""By data set: epsilon, and the kind of its rows."""


class NaiveBayes(AdditiveHistogramClassifier):
    """Naive Bayes of the same noisy counts: no public row says how columns depend on others."""

    @override
    def prepare(self, public: PublicRows | None) -> None:
        super().prepare(public)
        self._public = None


def source_of(data: str) -> tuple[Callable[[Integers], Array], Integers]:
    """Return a data set: rows by place, and labels. Of Forest Cover the second class is told from
    all others.
    """
    if data == "mnist":
        pictures = load("mnist")

        def gradients(places: Integers) -> Array:
            planes = oriented_gradients(pictures.train_images[places], orientations=8, cell=4)
            return planes.reshape(len(places), -1)

        return gradients, pictures.train_labels
    loader = {"adult": load_adult, "covertype": load_covertype, "imdb": load_imdb}[data]
    table = loader()
    if data == "imdb":
        return lambda places: table.train_rows[places].astype(np.float64), table.train_labels
    schema = adult_schema() if data == "adult" else covertype_schema()
    labels = table.train_labels
    if data == "covertype":
        labels = (labels == 1).astype(np.int64)
    return lambda places: schema.encode(table.train_rows[places]), labels


def methods(
    total: dict[str, Any], *, rows: str, records: int, ends: tuple[Array, Array] | None = None
) -> dict[str, tuple[ReleasedClassifier, bool]]:
    """Return each method, and whether it is given public labels.

    Args:
        total: arguments that all of them have.
        rows: the kind of rows.
        records: the stated number of private records.
        ends: lower and upper ends of the columns, public, for those with no public rows; or None.
    """
    found: dict[str, tuple[ReleasedClassifier, bool]] = {
        "start from public models": (
            PublicStartClassifier(**total, rows=rows, records=records),
            True,
        ),
        "start from the constant": (
            PublicStartClassifier(**total, rows=rows, records=records),
            False,
        ),
        "histograms": (AdditiveHistogramClassifier(**total), True),
        "histograms, no public labels": (AdditiveHistogramClassifier(**total), False),
        "naive Bayes": (NaiveBayes(**total), True),
        "descent": (NoisyGradientClassifier(**total, records=records), False),
        "moments": (MomentClassifier(**total), False),
    }
    if ends is None:
        return found
    alone = {**total, "features": Features(range=ends)}
    return found | {
        "descent, no public rows": (NoisyGradientClassifier(**alone, records=records), False),
        "moments, no public rows": (MomentClassifier(**alone), False),
        "histograms, no public rows": (AdditiveHistogramClassifier(**alone), False),
    }


def scored(model: ReleasedClassifier, rows: Array, truth: Integers) -> tuple[float, float]:
    """Return accuracy and, for two labels, the area under the curve."""
    return measured(np.log(np.maximum(model.predict_proba(rows), 1e-300)), truth)


def measured(scores: Array, truth: Integers) -> tuple[float, float]:
    """Return the same of log probabilities."""
    right = float((scores.argmax(axis=1) == truth).mean())
    if scores.shape[1] != 2:
        return right, float("nan")
    return right, float(roc_auc_score(truth, scores[:, 1] - scores[:, 0]))


def runs(data: str, split: int) -> Iterator[tuple[str, Array]]:
    """Yield each method's name with its accuracy and AUC, means over draws of the noise."""
    (epsilon, kind), (rows_at, all_labels) = CASES[data], source_of(data)
    order = np.random.default_rng([split, 77]).permutation(len(all_labels))
    places = np.split(order, [SCORED, SCORED + PRIVATE, SCORED + PRIVATE + PUBLIC])[:3]
    test, private, public = (rows_at(part) for part in places)
    truth, labels, told = (all_labels[part] for part in places)
    classes = tuple(range(int(all_labels.max()) + 1))
    total = {"epsilon": epsilon, "delta": DELTA, "classes": classes}
    lower, upper = public.min(axis=0), public.max(axis=0)
    ends = lower, np.where(upper > lower, upper, lower + 1.0)
    for name, (model, labelled) in methods(total, rows=kind, records=PRIVATE, ends=ends).items():
        given: dict[str, Any] = {} if "no public rows" in name else {"public_X": public}
        if labelled:
            given["public_y"] = told
        fits = model.simulate_fits(private, labels, totals=[(epsilon, DELTA)], seeds=SEEDS, **given)
        found = []
        for fit in fits:
            found.append(scored(fit, test, truth))
        yield name, np.mean(found, axis=0)
        if name == "start from public models":
            start: Any = fit.space_
            offsets = start.pools[0].offsets(start.row_details.scaled(test))
            yield "public models alone", np.array(measured(offsets, truth))
    constant = np.bincount(told, minlength=len(classes)) + 0.0
    yield "constant", np.array(measured(np.tile(np.log(constant + 1.0), (SCORED, 1)), truth))


def table(names: list[str], splits: int) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| data | epsilon | method | accuracy | standard error | AUC | standard error |"
    yield "|---|---|---|---|---|---|---|"
    for data in names:
        found: dict[str, list[Array]] = {}
        for split in range(splits):
            for name, scores in runs(data, split):
                found.setdefault(name, []).append(scores)
        for name, values in found.items():
            errors = np.full(2, np.nan)
            if splits > 1:
                errors = np.std(values, axis=0, ddof=1) / splits**0.5
            cells = [
                f"{mean:.4f} | {error:.4f}"
                for mean, error in zip(np.mean(values, axis=0), errors, strict=True)
            ]
            yield f"| {data} | {CASES[data][0]:g} | {name} | {' | '.join(cells)} |"


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
