"""Private prediction that starts from public models: ``python -m papers.certified.beside_public``.

Each way stands beside the public models alone on the same split: a distance that is reached by
ignoring the records is none. Settings are those of the estimators' defaults, or were chosen on
Forest Cover (the vote's clip). Weight and regularization are shown as curves. Means over splits
and their standard errors. Answers are counted at a total of (10, 1e-5), until a point is lost.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from typing_extensions import override

from papers.certified.rungs import answers_until, certified_curve
from papers.result_files import cached_result, write_result
from papers.seeds import combined
from reticent.core.arrays import Array, Integers
from reticent.datasets import load_covertype, load_digits, load_fashion, load_imdb
from reticent.demos.certified import whitening
from reticent.release.fits import not_counted
from reticent.systems import ConvexCertifiedClassifier, LinearVoteClassifier, PublicReference
from reticent.training.public_start import PublicStart

CLIP = 0.8
"""Share of public rows whose vote is not cut: .8 before .5 on Forest Cover."""

WEIGHTS = (0.25, 0.5, 1.0, 2.0)
TOTAL = 10.0
NETWORK = "a network of 100 units on public rows alone"
ALONE = "public models alone"
VOTE = "linear vote beside them"


class Split(NamedTuple):
    """Public, private and asked rows with their labels; what rows are, components, and lambdas."""

    public: tuple[Array, Integers]
    private: tuple[Array, Integers]
    asked: tuple[Array, Integers]
    rows: str
    components: int | None
    strengths: tuple[float, ...]


class Kept(PublicReference):
    """A reference whose public models are made once, for all that take it."""

    @override
    def start(self, rows: Array, codes: Integers, classes: int) -> tuple[PublicStart, Array]:
        kept: dict[str, Any] = vars(self)
        if "_started" not in kept:
            object.__setattr__(self, "_started", super().start(rows, codes, classes))
        return kept["_started"]  # type: ignore[no-any-return]


def _imdb(seed: int) -> Split:
    data = load_imdb()
    order = np.random.default_rng(seed).permutation(len(data.train_rows))
    public, private = order[:2000], order[2000:]
    rows, labels = data.train_rows, data.train_labels
    return Split(
        (rows[public], labels[public]),
        (rows[private], labels[private]),
        (data.test_rows, data.test_labels),
        "embedding",
        200,
        (10.0, 100.0, 1000.0),
    )


def _covertype(seed: int) -> Split:
    data = load_covertype()
    order = np.random.default_rng(seed).permutation(len(data.train_rows))[:60_000]
    rows = data.train_rows[order].astype(np.float64)
    labels = (data.train_labels[order] == np.bincount(data.train_labels).argmax()).astype(np.int64)
    asked = np.random.default_rng(seed).permutation(len(data.test_rows))[:4000]
    truth = (data.test_labels[asked] == np.bincount(data.train_labels).argmax()).astype(np.int64)
    return Split(
        (rows[:5000], labels[:5000]),
        (rows[5000:], labels[5000:]),
        (data.test_rows[asked].astype(np.float64), truth),
        "table",
        None,
        (10.0, 100.0, 1000.0),
    )


SPLITS: dict[str, Callable[[int], Split]] = {"imdb": _imdb, "covertype": _covertype}


def _scores(labels: Integers, distances: Integers, truth: Integers) -> dict[str, float]:
    curve = certified_curve(labels, distances, truth, "signed-distance")
    accuracy = float((labels == truth).mean())
    return {
        "accuracy": accuracy,
        "median distance": float(np.median(distances)),
        "answers": answers_until(curve, accuracy - 0.01, TOTAL),
    }


def one_split(name: str, seed: int) -> dict[str, Any]:
    """Return all figures of one seed, of two labels."""
    split = SPLITS[name](seed)
    public: dict[str, Any] = {"public_X": split.public[0], "public_y": split.public[1]}
    queries, truth = split.asked
    reference = Kept(rows=split.rows, components=split.components, records=len(split.private[1]))
    found: dict[str, Any] = {}
    with not_counted("a comparison on a public data set"):
        vote = LinearVoteClassifier(
            epsilon=TOTAL,
            delta=0.0,
            classes=(0, 1),
            answers=1,
            clip_quantile=CLIP,
            features=reference,
        ).fit(*split.private, **public)
        table, opening = vote.vote_table(queries), vote.opening(vote.asked(vote.checked(queries)))
        for weight in WEIGHTS:  # what public models add to the table is linear in it
            sums = table + np.rint((weight - 1.0) * opening)
            levels = vote.response_.levels(sums)  # type: ignore[attr-defined]
            found[f"{VOTE}, weight {weight:g}"] = _scores(sums.argmax(axis=1), levels, truth)
        for strength in split.strengths:
            convex = ConvexCertifiedClassifier(
                epsilon=1.0, classes=(0, 1), regularization=strength, features=reference
            ).fit(*split.private, **public)
            found[f"convex certificate beside them, lambda {strength:g}"] = _scores(
                *convex.stable_distances(queries), truth
            )
    logs = convex.extractor_.embed(queries)[:, -2:]
    found[ALONE] = {"accuracy": float((logs.argmax(axis=1) == truth).mean())}
    scaled, asked = (
        reference.start(*split.public, 2)[0].row_details.scaled(x)
        for x in (split.public[0], queries)
    )
    network = MLPClassifier((100,), alpha=10.0, learning_rate_init=2e-3, random_state=0)
    network.fit(scaled, split.public[1])
    found[NETWORK] = {"accuracy": float((network.predict(asked) == truth).mean())}
    return found


def several(name: str, seed: int) -> dict[str, Any]:
    """Return figures of ten labels, one against one, without public models."""
    data = load_digits() if name == "digits" else load_fashion()
    rows = data.train_images.reshape(len(data.train_images), -1).astype(np.float64)
    asked = data.test_images.reshape(len(data.test_images), -1).astype(np.float64)
    order = np.random.default_rng(seed).permutation(len(rows))
    known, kept, size = (200, len(rows), 20) if name == "digits" else (2000, 11_000, 30)
    white = whitening(rows[order[:known]], size, floor=0.05)
    bound = float(np.quantile(np.linalg.norm(white(rows[order[:known]]), axis=1), 0.8))
    private = order[known:kept]
    queries, truth = white(asked[:1000]), data.test_labels[:1000]
    public = order[:known]
    alone = LogisticRegression(max_iter=1000).fit(white(rows[public]), data.train_labels[public])
    found: dict[str, Any] = {}
    with not_counted("a comparison on a public data set"):
        for strength in (1.0, 10.0, 20.0, 100.0):
            labels, distances = (
                ConvexCertifiedClassifier(
                    epsilon=1.0, classes=range(10), regularization=strength, norm_bound=bound
                )
                .fit(white(rows[private]), data.train_labels[private])
                .stable_distances(queries)
            )
            found[f"one against one, lambda {strength:g}"] = {
                "accuracy": float((labels == truth).mean()),
                "median distance": float(np.median(distances)),
                "share at 6": float((distances >= 6).mean()),
                "share at 12": float((distances >= 12).mean()),
            }
    found["the public rows alone, with labels"] = {"accuracy": float(alone.score(queries, truth))}
    return found


def markdown(name: str, means: dict[str, Any], errors: dict[str, Any], seeds: int) -> str:
    """Return the table as Markdown."""
    columns = list(dict.fromkeys(column for row in means.values() for column in row))
    lines = [
        f"## {name}, {seeds} splits",
        "",
        f"| | {' | '.join(columns)} |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for way, row in means.items():
        cells = [
            ""
            if column not in row
            else f"{row[column]:.4f} ± {errors[way][column]:.4f}"
            if column == "accuracy" or "share" in column
            else f"{row[column]:,.0f} ± {errors[way][column]:,.0f}"
            for column in columns
        ]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=(*SPLITS, "digits", "fashion"), default="imdb")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/certified"))
    parser.add_argument("--cache", type=Path, default=Path("runs/certified/cache"))
    chosen = parser.parse_args(arguments)
    compute = one_split if chosen.data in SPLITS else several
    runs = [
        cached_result(
            chosen.cache / f"beside-{chosen.data}-{seed}.json",
            partial(compute, chosen.data, seed),
        )
        for seed in range(chosen.seeds)
    ]
    means, errors = combined(runs)
    text = markdown(chosen.data, means, errors, chosen.seeds)
    content = {"means": means, "standard errors": errors, "seeds": chosen.seeds}
    write_result(chosen.out / f"beside-{chosen.data}.json", json.dumps(content, indent=1))
    write_result(chosen.out / f"beside-{chosen.data}.md", text)
    print(text)


if __name__ == "__main__":
    main()
