"""A start from public models beside the other released models: ``python -m
papers.choose.public_start``.

Of each data set 10,000 records are private, a twentieth as many rows are public with labels, and
8,000 others are scored. They come from training parts. Every method has the same total and the same
public rows. The start has its default settings. Rivals have those of their grids that did best on
the public rows, of which each half in turn stands in for private records, with noise that has the
effect it will have, and is scored on the other. A split is a draw of the rows and has three draws
of the noise. The standard error is that over splits. *From the constant* sees public rows without
labels; its rivals' labels serve the choice of settings alone. Those with *no public rows* see the
ends of every column alone, and have their default settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from papers.datasets import covertype_schema, load, load_adult, load_covertype, load_imdb
from papers.settings_grids import descent_settings
from reticent.core.arrays import Integers
from reticent.systems.features import Features
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.tables import adult_schema
from reticent.training.hog import oriented_gradients

Array = npt.NDArray[np.float64]

DELTA = 1e-5
PRIVATE, PUBLIC, SCORED = 10_000, 500, 8000
SEEDS = (0, 1, 2)
START, ALONE = "start from public models", "no public rows"
CASES = {
    "adult": (0.5, "table"),
    "covertype": (0.5, "table"),
    "imdb": (1.0, "embedding"),
    "mnist": (2.0, "picture"),
}
"""By data set: epsilon, and the kind of its rows."""


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


Maker = Callable[[int], ReleasedClassifier]


def candidates(
    total: dict[str, Any], *, rows: str, ends: tuple[Array, Array]
) -> dict[str, tuple[list[Maker], bool]]:
    """Return the settings of each method, as makers that are given a stated number of records, and
    whether it is given public labels.

    Args:
        total: arguments that all of them have.
        rows: the kind of rows.
        ends: lower and upper ends of the columns, which methods that see no public rows are given.
    """
    alone = {**total, "features": Features(range=ends)}

    def start(records: int) -> ReleasedClassifier:
        return PublicStartClassifier(**total, rows=rows, records=records)

    descents = descent_settings(len(ends[0]))
    return {
        START: ([start], True),
        "start from the constant": ([start], False),
        "descent": ([partial(_descent, total | one) for one in descents], False),
        f"descent, {ALONE}": ([partial(_descent, alone)], False),
    }


def _descent(given: dict[str, Any], records: int) -> ReleasedClassifier:
    return NoisyGradientClassifier(**given, records=records)


def chosen(
    makers: list[Maker], public: Array, told: Integers, *, labelled: bool, records: int
) -> ReleasedClassifier:
    """Return the method whose settings give the likeliest labels of public rows.

    Args:
        makers: of the same method with other settings.
        public: shape (m, d), public rows.
        told: shape (m,), their labels.
        labelled: whether the method is given public labels.
        records: the stated number of private records.
    """
    if len(makers) == 1:
        return makers[0](records)
    halves = [np.arange(at, len(public), 2) for at in (0, 1)]
    worth = np.zeros(len(makers))
    for place, maker in enumerate(makers):
        for there, away in (halves, halves[::-1]):
            model = maker(len(there))
            given: dict[str, Any] = {"public_y": told[there]} if labelled else {}
            for fit in model.simulate_fits(
                public[there],
                told[there],
                public_X=public[there],
                totals=[(model.epsilon, model.delta)],
                seeds=SEEDS[:2],
                noise_scale=len(there) / records,
                **given,
            ):
                found: Array = np.asarray(fit.predict_proba(public[away]))
                shares = found[np.arange(len(away)), told[away]]
                worth[place] += np.log(np.maximum(shares, 1e-6)).mean()
    return makers[int(worth.argmax())](records)


def scored(model: ReleasedClassifier, rows: Array, truth: Integers) -> tuple[float, float]:
    """Return accuracy and, for two labels, the area under the curve."""
    return measured(np.log(np.maximum(model.predict_proba(rows), 1e-300)), truth)


def measured(scores: Array, truth: Integers) -> tuple[float, float]:
    """Return the same of log probabilities."""
    right = float((scores.argmax(axis=1) == truth).mean())
    if scores.shape[1] != 2:
        return right, float("nan")
    return right, float(roc_auc_score(truth, scores[:, 1] - scores[:, 0]))


def runs(data: str, split: int, only: list[str] | None) -> Iterator[tuple[str, Array]]:
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
    for name, (makers, labelled) in candidates(total, rows=kind, ends=ends).items():
        if only and name not in only:
            continue
        model = chosen(makers, public, told, labelled=labelled, records=PRIVATE)
        given: dict[str, Any] = {} if ALONE in name else {"public_X": public}
        if labelled:
            given["public_y"] = told
        fits = model.simulate_fits(private, labels, totals=[(epsilon, DELTA)], seeds=SEEDS, **given)
        found = []
        for fit in fits:
            found.append(scored(fit, test, truth))
        yield name, np.mean(found, axis=0)
        if name == START:
            start: Any = fit.space_
            offsets = start.pools[0].offsets(start.row_details.scaled(test))
            yield "public models alone", np.array(measured(offsets, truth))
    constant = np.bincount(told, minlength=len(classes)) + 0.0
    yield "constant", np.array(measured(np.tile(np.log(constant + 1.0), (SCORED, 1)), truth))


def table(names: list[str], splits: int, only: list[str] | None) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| data | epsilon | method | accuracy | standard error | AUC | standard error |"
    yield "|---|---|---|---|---|---|---|"
    for data in names:
        found: dict[str, list[Array]] = {}
        for split in range(splits):
            for name, scores in runs(data, split, only):
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
    parser.add_argument("--only", nargs="*", help="names of methods, in place of all")
    arguments = parser.parse_args()
    for line in table(arguments.data, arguments.splits, arguments.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
