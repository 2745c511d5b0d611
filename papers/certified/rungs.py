"""Every simple rival at the same guarantee: ``python -m papers.certified.rungs --data imdb``.

Accuracies of labels that come out at one total, against how many there are. Private prediction is
scored by its exact expectation over its noise; trained models answer any number of queries and are
drawn from a seed. Whatever has settings is tuned on public rows, or has the settings of the other
experiments, which were chosen there. Means over seeds of the split into public and private rows.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from papers.certified.problems import xray_features
from papers.datasets import load_imdb
from papers.result_files import cached_result, write_result
from papers.seeds import combined
from papers.settings_grids import linear_vote_settings
from reticent.core.arrays import Integers
from reticent.core.errors import UnknownName
from reticent.core.guarantees import AddRemove
from reticent.datasets import load_blobs
from reticent.demos.certified import whitening
from reticent.mechanisms import SignedDistanceRelease, StabilityResponse
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.planning.rows import kind_of_rows
from reticent.systems import CertifiedClassifier, ClippedDescent, ConvexCertifiedClassifier
from reticent.systems.certified.choosing import calibrated_choice
from reticent.systems.votes.linear_vote import LinearVoteClassifier
from reticent.systems.votes.public_start import PublicStartClassifier

Array = npt.NDArray[np.float64]
Curve = Callable[[float, float, int], float]
"""From a total (epsilon, delta) and a number of answers to the expected accuracy."""

ADJACENCY = AddRemove(1)
DELTA = 1e-5
TOTALS = (0.01, 0.03, 0.1, 1.0, 10.0)
ANSWERS = (1, 10, 100, 1000, 10_000, 100_000, 200_000)
MOST = 2**24
MANY_TOTAL = 10.0
"""Total of the table of many answers."""

TRAINED = "private training: start from public models"
PUBLIC = "public rows alone"
CONSTANT = "a constant label"
RESPONSE = "certified intervals, randomised response"
GAUSSIAN = "certified intervals, signed distance"
INTERVALS = "certified intervals, by the number of answers"
CONVEX = "convex certificate, by the number of answers"
VOTE = "clipped linear vote"
PREDICTION = (INTERVALS, CONVEX, VOTE)


@dataclass(frozen=True, eq=False)
class Split:
    """Private rows, public rows and queries, with features as each rung wants them.

    Attributes:
        X, y: private records in the features of certified training, and their labels.
        queries, truth: held-out queries and their labels.
        open_rows, open_labels: public rows in the same features, and their labels.
        raw: the same three sets of rows as they are: private, public, queries.
        training: settings of certified training.
        norm_bound: of the convex certificate.
        k_max: largest certified distance of the intervals.
    """

    X: Array
    y: Integers
    queries: Array
    truth: Integers
    open_rows: Array
    open_labels: Integers
    raw: tuple[Array, Array, Array]
    training: dict[str, Any]
    norm_bound: float
    k_max: int


def _imdb(seed: int) -> Split:
    data = load_imdb()
    order = np.random.default_rng(seed).permutation(len(data.train_rows))
    public, private = order[:2000], order[2000:]
    white = whitening(data.train_rows[public], 50, floor=0.0)
    return Split(
        X=white(data.train_rows[private]),
        y=data.train_labels[private],
        queries=white(data.test_rows),
        truth=data.test_labels,
        open_rows=white(data.train_rows[public]),
        open_labels=data.train_labels[public],
        raw=(data.train_rows[private], data.train_rows[public], data.test_rows),
        training={"epochs": 3, "learning_rate": 1.0, "rate_decay": 0.5, "clip": 0.05},
        norm_bound=7.0,  # the length of a row of 50 coordinates of unit variance
        k_max=600,
    )


def _blobs(kind: str, points: int, seed: int) -> Split:
    data, other = (
        load_blobs(kind, points=points, seed=seed),
        load_blobs(kind, points=200, seed=10_000 + seed),
    )
    rows = data.train_rows, other.train_rows, data.test_rows
    return Split(
        X=rows[0],
        y=data.train_labels,
        queries=rows[2],
        truth=data.test_labels,
        open_rows=rows[1],
        open_labels=other.train_labels,
        raw=rows,
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.6, "clip": 0.06},
        norm_bound=4.0,
        k_max=600,
    )


def _pneumonia(seed: int) -> Split:
    rows, labels, queries, truth = xray_features()
    order = np.random.default_rng(seed).permutation(len(rows))
    public, private = order[:524], order[524:]
    white = whitening(rows[public], 30, floor=0.02)
    return Split(
        X=white(rows[private]),
        y=labels[private],
        queries=white(queries),
        truth=truth,
        open_rows=white(rows[public]),
        open_labels=labels[public],
        raw=(rows[private], rows[public], queries),
        training={"epochs": 4, "learning_rate": 1.0, "rate_decay": 0.0, "clip": 0.1},
        norm_bound=5.5,  # the length of a row of 30 coordinates of unit variance
        k_max=300,
    )


SPLITS: dict[str, tuple[Callable[[int], Split], str]] = {
    "imdb": (
        _imdb,
        (
            "IMDB reviews as frozen public sentence embeddings (all-MiniLM-L6-v2): 17,924 private "
            "records, 2,000 public labelled ones, 4,980 held-out queries."
        ),
    ),
    "blobs": (
        partial(_blobs, "separable", 5000),
        (
            "5,000 points, generated: two separable Gaussians; 200 public labelled points, 2,000 "
            "held-out queries."
        ),
    ),
    "blobs-close": (
        partial(_blobs, "close", 3000),
        (
            "3,000 points, generated: two Gaussians that overlap; 200 public labelled points, "
            "2,000 held-out queries."
        ),
    ),
    "pneumonia": (
        _pneumonia,
        (
            "PneumoniaMNIST: X-rays as frozen convolutions that clothing was learned from "
            "(Fashion-MNIST); of the official training and validation parts 524 are public with "
            "their labels and the others private, drawn by the seed; queries are the 624 official "
            "test pictures, of another prevalence."
        ),
    ),
}


def certified_curve(
    labels: Integers, distances: Integers, truth: Integers, mechanism: str
) -> Curve:
    """Expected accuracy of certified labels by "auto", "stability" or "signed-distance"."""
    right = labels == truth

    def curve(epsilon: float, delta: float, answers: int) -> float:
        choice = calibrated_choice(
            mechanism, classes=2, epsilon=epsilon, delta=delta, answers=answers
        )
        release = choice.mechanism(2, ADJACENCY)
        if isinstance(release, SignedDistanceRelease):
            told = release.right_probabilities(distances)
        else:
            assert isinstance(release, StabilityResponse)
            told = release.right_probabilities[np.minimum(distances, release.max_level)]
        return float(np.where(right, told, 1.0 - told).mean())

    return curve


def vote_curve(margins: Array, truth: Integers, *, noise_scale: float = 1.0) -> Curve:
    """Expected accuracy of votes of which one record moves the margin by at most 1: the response
    to the exact margin for one answer, Gaussian noise for more.

    Args:
        margins: votes for label 1 less those for label 0, in records, shape (n,).
        truth: shape (n,).
        noise_scale: what noise is multiplied by, for margins of fewer records than will vote.
    """
    labels = (margins > 0).astype(np.int64)
    levels = np.maximum(np.ceil(np.abs(margins) / noise_scale) - 1, 0).astype(np.int64)
    response = certified_curve(labels, levels, truth, "stability")

    def curve(epsilon: float, delta: float, answers: int) -> float:
        if answers == 1 or delta == 0:
            return response(epsilon, delta, answers)
        sigma = math.sqrt(answers) * analytic_sigma(sensitivity=1.0, epsilon=epsilon, delta=delta)
        told = ndtr(np.abs(margins) / (noise_scale * sigma))
        return float(np.where(labels == truth, told, 1.0 - told).mean())

    return curve


def vote_margins(
    records: Array, labels: Integers, public: Array, queries: Array, settings: dict[str, Any]
) -> Array:
    """Votes for label 1 less those for label 0, in records, without noise."""
    vote = LinearVoteClassifier(
        epsilon=10.0, delta=DELTA, classes=(0, 1), answers=1, response="gaussian", **settings
    ).fit(records, labels, public_X=public)
    scores = vote.simulate_scores(queries, seed=0, noise_scale=1e-9)
    return np.asarray(scores[:, 1] - scores[:, 0])


def tuned_vote(split: Split) -> tuple[Curve, float]:
    """The linear vote with the settings that do best on halves of the public rows at each total
    and number of answers, with noise of the effect it will have; and its best noise-free accuracy.
    """
    private, public, queries = split.raw
    half = len(public) // 2
    grid = [
        {},
        *linear_vote_settings(public.shape[1]),
    ]
    tried = [
        vote_curve(
            vote_margins(public[:half], split.open_labels[:half], public, public[half:], settings),
            split.open_labels[half:],
            noise_scale=half / len(private),
        )
        for settings in grid
    ]
    curves: dict[int, Curve] = {}

    def curve(epsilon: float, delta: float, answers: int) -> float:
        scores = [found(epsilon, delta, answers) for found in tried]
        best = int(np.argmax(scores))
        if best not in curves:
            margins = vote_margins(private, split.y, public, queries, grid[best])
            curves[best] = vote_curve(margins, split.truth)
        return curves[best](epsilon, delta, answers)

    return curve, curve(50.0, DELTA, 1)


def trained_accuracies(split: Split, seed: int) -> dict[float, tuple[float, float]]:
    """The default start from public models at each total, and the same without noise."""
    private, public, queries = split.raw
    given: dict[str, Any] = {"public_X": public, "public_y": split.open_labels}
    model = PublicStartClassifier(
        epsilon=MANY_TOTAL,
        delta=DELTA,
        classes=(0, 1),
        records=len(private),
        rows=kind_of_rows(None, public.shape[1], None),
    )
    found = []
    for scale in (1.0, 1e-9):
        fits = model.simulate_fits(
            private,
            split.y,
            totals=[(total, DELTA) for total in TOTALS],
            seeds=[seed],
            noise_scale=scale,
            **given,
        )
        found.append([float((fit.predict(queries) == split.truth).mean()) for fit in fits])
    return dict(zip(TOTALS, zip(*found, strict=True), strict=True))


def answers_until(curve: Curve, floor: float, epsilon: float) -> int:
    """The largest number of answers, up to 2^24, at which ``curve`` still reaches ``floor``.

    Example:
        >>> answers_until(lambda epsilon, delta, answers: 1.0 - answers / 1000, 0.9, 1.0)
        100
    """

    def enough(answers: int) -> bool:
        return curve(epsilon, DELTA, answers) >= floor

    if not enough(1):
        return 0
    lower, upper = 1, 2
    while upper <= MOST and enough(upper):
        lower, upper = upper, 2 * upper
    while upper - lower > max(1, lower // 1000):
        middle = (lower + upper) // 2
        lower, upper = (middle, upper) if enough(middle) else (lower, middle)
    return lower


def one_split(name: str, seed: int) -> dict[str, Any]:
    """All figures of one seed."""
    split = SPLITS[name][0](seed)
    intervals = CertifiedClassifier(
        epsilon=1.0, classes=(0, 1), k_max=split.k_max, training=ClippedDescent(**split.training)
    ).fit(split.X, split.y)
    convex = ConvexCertifiedClassifier(
        epsilon=1.0, classes=(0, 1), norm_bound=split.norm_bound
    ).fit(split.X, split.y)
    found = intervals.stable_distances(split.queries)
    curved = convex.stable_distances(split.queries)
    vote, vote_free = tuned_vote(split)
    curves = {
        RESPONSE: certified_curve(*found, split.truth, "stability"),
        GAUSSIAN: certified_curve(*found, split.truth, "signed-distance"),
        INTERVALS: certified_curve(*found, split.truth, "auto"),
        CONVEX: certified_curve(*curved, split.truth, "auto"),
        VOTE: vote,
    }
    free = {
        INTERVALS: float((found[0] == split.truth).mean()),
        CONVEX: float((curved[0] == split.truth).mean()),
        VOTE: vote_free,
    }
    public = GridSearchCV(
        LogisticRegression(max_iter=2000), {"C": np.logspace(-4, 4, 9).tolist()}, cv=5
    ).fit(split.open_rows, split.open_labels)
    majority = int(np.bincount(split.open_labels).argmax())
    fits = {str(total): found for total, found in trained_accuracies(split, seed).items()}
    trained = {total: noisy for total, (noisy, _) in fits.items()}
    free[TRAINED] = fits[str(MANY_TOTAL)][1]
    return {
        "noise-free": free,
        "median distance": {
            INTERVALS: float(np.median(found[1])),
            CONVEX: float(np.median(curved[1])),
        },
        PUBLIC: float((public.predict(split.queries) == split.truth).mean()),
        CONSTANT: float((split.truth == majority).mean()),
        TRAINED: trained,
        "one answer, pure epsilon .01": {rung: curves[rung](0.01, 0.0, 1) for rung in PREDICTION},
        "answers": {
            rung: {str(asked): curves[rung](MANY_TOTAL, DELTA, asked) for asked in ANSWERS}
            for rung in curves
        },
        "answers within a point of its own noise-free": {
            rung: answers_until(
                curve, free[INTERVALS if rung in (RESPONSE, GAUSSIAN) else rung] - 0.01, MANY_TOTAL
            )
            for rung, curve in curves.items()
        },
        "answers until noise-free certified less .00025": {
            rung: answers_until(curves[rung], free[INTERVALS] - 0.00025, MANY_TOTAL)
            for rung in (RESPONSE, GAUSSIAN)
        },
        "Q*": {
            str(total): {
                rung: answers_until(curves[rung], trained[str(total)], total) for rung in PREDICTION
            }
            for total in TOTALS
        },
    }


def markdown(name: str, means: dict[str, Any], errors: dict[str, Any], seeds: int) -> str:
    """The tables as Markdown."""

    def cell(value: float, error: float) -> str:
        return f"{value:.4f} ± {error:.4f}".replace("0.", ".")

    def whole(value: float, error: float) -> str:
        shown = f"{MOST:,} or more" if value >= MOST else f"{value:,.0f} ± {error:,.0f}"
        return shown

    lines = [
        f"# Every rung at the same guarantee: {name}",
        "",
        (
            f"{SPLITS[name][1]} Means over {seeds} splits and their standard errors. Neighbours "
            "have one record more or less."
        ),
        "",
        "## Many answers at a total of (10, 1e-5)",
        "",
        "| | "
        + " | ".join(f"{asked:,}" for asked in ANSWERS)
        + " | within a point of noise-free |",
        "|---" * (len(ANSWERS) + 2) + "|",
    ]
    within = "answers within a point of its own noise-free"
    for rung, row in means["answers"].items():
        cells = [cell(row[key], errors["answers"][rung][key]) for key in row]
        lines.append(
            f"| {rung} | {' | '.join(cells)} | {whole(means[within][rung], errors[within][rung])} |"
        )
    every = len(ANSWERS)
    for rung, value, error in (
        (TRAINED, means[TRAINED][str(MANY_TOTAL)], errors[TRAINED][str(MANY_TOTAL)]),
        (PUBLIC, means[PUBLIC], errors[PUBLIC]),
        (CONSTANT, means[CONSTANT], errors[CONSTANT]),
    ):
        lines.append(f"| {rung} | {' | '.join([cell(value, error)] * every)} | any number |")
    lost = means["noise-free"][TRAINED] - means[TRAINED][str(MANY_TOTAL)]
    lines += [
        "",
        (
            f"A trained model answers any number of queries for one total: here noise takes "
            f"{100 * lost:.1f} points of its own noise-free accuracy, at 200,000 answers as at one."
        ),
    ]
    lines += ["", "Without noise: "]
    lines[-1] += ", ".join(
        f"{rung} {cell(value, errors['noise-free'][rung])}"
        for rung, value in means["noise-free"].items()
    )
    lines[-1] += ". Median certified distance: " + ", ".join(
        f"{rung} {value:.0f}" for rung, value in means["median distance"].items()
    )
    key = "answers until noise-free certified less .00025"
    lines[-1] += (
        f". Answers from the same intervals until .00025 is lost: {RESPONSE} "
        f"{whole(means[key][RESPONSE], errors[key][RESPONSE])}, {GAUSSIAN} "
        f"{whole(means[key][GAUSSIAN], errors[key][GAUSSIAN])}."
    )
    lines += ["", "## One answer at epsilon .01, delta 0", "", "| | accuracy |", "|---|---|"]
    one = "one answer, pure epsilon .01"
    lines += [
        f"| {rung} | {cell(value, errors[one][rung])} |" for rung, value in means[one].items()
    ]
    lines += [
        "",
        "## Private prediction against private training",
        "",
        (
            "Q* is the number of answers up to which private prediction is right at least as "
            f"often as a start from public models at the same total (delta {DELTA:g})."
        ),
        "",
        "| total epsilon | private training | " + " | ".join(f"Q*, {r}" for r in PREDICTION) + " |",
        "|---" * (2 + len(PREDICTION)) + "|",
    ]
    for total in TOTALS:
        numbers = [
            whole(means["Q*"][str(total)][rung], errors["Q*"][str(total)][rung])
            for rung in PREDICTION
        ]
        accuracy = cell(means[TRAINED][str(total)], errors[TRAINED][str(total)])
        lines.append(f"| {total:g} | {accuracy} | {' | '.join(numbers)} |")
    return "\n".join([*lines, ""])


def _kept(name: str, seed: int, cache: Path) -> dict[str, Any]:
    """``one_split``, from ``cache`` where it is there."""
    return cached_result(cache / f"rungs-{name}-{seed}.json", lambda: one_split(name, seed))


def run(name: str, folder: Path, *, seeds: int, cache: Path) -> Path:
    """All tables of one data set: JSON and Markdown in ``folder``; the path of the Markdown. Every
    split is kept in ``cache``, so that an interrupted run goes on where it was.

    Raises:
        UnknownName: no such data.
    """
    if name not in SPLITS:
        raise UnknownName(f"data={name!r}: expected one of {', '.join(SPLITS)}")
    means, errors = combined([_kept(name, seed, cache) for seed in range(seeds)])
    content = {"means": means, "standard errors": errors, "seeds": seeds}
    write_result(folder / f"rungs-{name}.json", json.dumps(content, indent=1))
    write_result(folder / f"rungs-{name}.md", markdown(name, means, errors, seeds))
    return folder / f"rungs-{name}.md"


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, write the tables, print where they are."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", choices=tuple(SPLITS), default="blobs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/certified"))
    parser.add_argument("--cache", type=Path, default=Path("runs/certified/cache"))
    chosen = parser.parse_args(arguments)
    print(run(chosen.data, chosen.out, seeds=chosen.seeds, cache=chosen.cache))


if __name__ == "__main__":
    main()
