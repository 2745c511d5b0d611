"""The Private-kNN supplement's Figure 4, utility against privacy.

``python -m papers.private_knn.tradeoff --data mnist``

The paper shows it on Market1501, which is not here; this is the same comparison on digits.
Private-kNN and PATE (GNMax) see the same public features and answer the same public queries at
the same proved total; their labels train the same simple student. Varied are the total, the
number of queries, how many neighbours vote, and whether queries are screened. Nothing is chosen
by looking at the result: every setting is shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from papers.datasets import load
from papers.drawings import one_panel, png
from papers.private_knn.command import read_command, total_axis
from papers.private_knn.pate_teachers import PateTeachers
from papers.private_knn.reduced_features import ReducedFeatures
from papers.result_files import write_result
from reticent.accounting import PrivateKnnSteps, calibrate_private_knn
from reticent.core.arrays import Integers
from reticent.datasets import Dataset
from reticent.mechanisms import NoisyArgmax, NoisyScreening
from reticent.neighbours import NeighbourSearch, PointGrid, Records, SampledNeighbours
from reticent.noise import Sampler, SeededSampler
from reticent.systems.private_knn.plan import UNANSWERED, KnnNoise
from reticent.training.features import HogFeatures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

SCREENED_SHARE, NOISE_RATIO = 0.6, 3.0
"""Screening asks for this share of the neighbours, with this multiple of the votes' noise, as
the paper does on MNIST.
"""


@dataclass(frozen=True)
class TradeoffSettings:
    """Settings of the comparison.

    Attributes:
        data: "mnist" or "digits".
        delta: of every total.
        epsilons: totals.
        queries: numbers of public queries.
        neighbours: numbers of neighbours that vote.
        sampling_probability: of every private record.
        teachers: numbers of teachers.
        ridge: of the teachers.
        cell, orientations, upright, dimension: of the features, histograms of oriented gradients
            along principal directions of the queries.
    """

    data: str
    delta: float
    epsilons: tuple[float, ...]
    queries: tuple[int, ...]
    neighbours: tuple[int, ...]
    sampling_probability: float
    teachers: tuple[int, ...]
    ridge: float
    cell: int
    orientations: int
    upright: bool
    dimension: int


SETTINGS = {
    "mnist": TradeoffSettings(
        "mnist",
        1e-5,
        (0.1, 0.2, 0.5, 1.0, 2.0),
        (100, 300, 1000),
        (100, 300, 600),
        0.15,
        (250, 500),
        10.0,
        7,
        9,
        True,
        64,
    ),
    "digits": TradeoffSettings(
        "digits", 1e-5, (1.0, 3.0, 10.0), (50, 150), (30,), 0.3, (25,), 1.0, 2, 9, False, 24
    ),
}


@dataclass(frozen=True, eq=False)
class _Place:
    """What every method sees, and what the students are scored on."""

    private: Array
    labels: Integers
    asked: Array
    asked_truth: Integers
    unseen: Array
    unseen_truth: Integers
    classes: int

    def score(self, released: Integers) -> Results:
        """How a release did: share answered, share of the answers that are right, and the
        student's accuracy.
        """
        kept = released != UNANSWERED
        asked, truth = self.asked[: len(released)], self.asked_truth[: len(released)]
        right = float((released[kept] == truth[kept]).mean()) if kept.any() else 0.0
        return {
            "answered": float(kept.mean()),
            "labels_right": right,
            "student": self.student(asked[kept], released[kept]),
        }

    def student(self, features: Array, labels: Integers) -> float:
        """Accuracy on pictures that were not asked about, of a logistic regression on labelled
        queries.
        """
        if len(np.unique(labels)) < 2:
            return float((self.unseen_truth == labels[0]).mean()) if len(labels) else 0.0
        model = LogisticRegression(C=1.0, max_iter=300).fit(features, labels)
        return float((model.predict(self.unseen) == self.unseen_truth).mean())


def run(data: Dataset, settings: TradeoffSettings, *, seed: int) -> Results:
    """Every method at every total and number of queries.

    Args:
        data: digits.
        settings: fixed settings.
        seed: of noise and samples (so: not private).
    """
    most = max(settings.queries)
    shape = (1, *data.image_shape)
    plain = HogFeatures(
        image_shape=shape,
        cell=settings.cell,
        orientations=settings.orientations,
        upright=settings.upright,
    )
    private, public = data.train_rows, data.test_rows
    features = ReducedFeatures.of(plain, public[:most], dimension=settings.dimension)
    seen = features.features(public)
    place = _Place(
        private=features.features(private),
        labels=data.train_labels,
        asked=seen[:most],
        asked_truth=data.test_labels[:most],
        unseen=seen[most:],
        unseen_truth=data.test_labels[most:],
        classes=data.classes,
    )
    return {
        "settings": settings.__dict__,
        "seed": seed,
        "true_labels": {
            str(number): place.student(seen[:number], data.test_labels[:number])
            for number in settings.queries
        },
        "rows": [*_neighbours(place, settings, seed), *_teachers(place, settings, seed)],
    }


def _neighbours(place: _Place, settings: TradeoffSettings, seed: int) -> list[Results]:
    grid = PointGrid.around(place.asked)
    search = NeighbourSearch(Records.of(grid.points(place.private), place.labels, None))
    rows = []
    for neighbours in settings.neighbours:
        voters = SampledNeighbours(
            search, neighbours=neighbours, probability=settings.sampling_probability
        )
        for epsilon, queries, screened in _grid(settings):
            steps = _steps(
                settings,
                epsilon,
                queries,
                neighbours,
                settings.sampling_probability,
                screened=screened,
            )
            session = KnnNoise(steps, settings.delta, place.classes)
            released = session.answer(
                grid.points(place.asked[:queries]), voters, sampler=SeededSampler(seed)
            )
            rows.append(
                _row(f"Private-kNN, k = {neighbours}", epsilon, steps, place.score(released))
            )
    return rows


def _teachers(place: _Place, settings: TradeoffSettings, seed: int) -> list[Results]:
    rows = []
    for number in settings.teachers:
        teachers = PateTeachers.of(
            place.private,
            place.labels,
            None,
            teachers=number,
            classes=place.classes,
            public_features=place.asked,
            ridge=settings.ridge,
        )
        votes = teachers.votes(place.asked)
        for epsilon, queries, screened in _grid(settings):
            # A record moves one teacher's vote: the same steps as those of neighbours, without
            # sampling.
            steps = _steps(settings, epsilon, queries, number, 1.0, screened=screened)
            released = _answer(votes[:queries], steps, settings.delta, SeededSampler(seed))
            rows.append(_row(f"PATE, {number} teachers", epsilon, steps, place.score(released)))
    return rows


def _grid(settings: TradeoffSettings) -> list[tuple[float, int, bool]]:
    return [
        (epsilon, queries, screened)
        for epsilon in settings.epsilons
        for queries in settings.queries
        for screened in (False, True)
    ]


def _steps(
    settings: TradeoffSettings,
    epsilon: float,
    queries: int,
    voters: int,
    rate: float,
    *,
    screened: bool,
) -> PrivateKnnSteps:
    return calibrate_private_knn(
        epsilon=epsilon,
        delta=settings.delta,
        queries=queries,
        answers=queries,
        neighbours=voters,
        sampling_probability=rate,
        threshold=float(round(SCREENED_SHARE * voters)) if screened else None,
        noise_ratio=NOISE_RATIO if screened else None,
    )


def _answer(votes: Integers, steps: PrivateKnnSteps, delta: float, sampler: Sampler) -> Integers:
    """Labels from the votes of teachers, ``UNANSWERED`` where screening failed."""
    voters: dict[str, Any] = {
        "neighbours": steps.neighbours,
        "sampling_probability": steps.sampling_probability,
        "delta": delta,
    }
    passed = np.ones(len(votes), dtype=np.bool_)
    if steps.threshold is not None and steps.sigma_screening is not None:
        screening = NoisyScreening(threshold=steps.threshold, sigma=steps.sigma_screening, **voters)
        passed = screening.release(votes.max(axis=1), sampler=sampler)
    labels = np.full(len(votes), UNANSWERED, dtype=np.int64)
    argmax = NoisyArgmax(classes=votes.shape[1], sigma=steps.sigma_votes, **voters)
    labels[passed] = argmax.release(votes[passed], sampler=sampler)
    return labels


def _row(method: str, epsilon: float, steps: PrivateKnnSteps, scores: Results) -> Results:
    return {
        "method": method,
        "epsilon": epsilon,
        "queries": steps.queries,
        "screened": steps.threshold is not None,
        "sigma_votes": steps.sigma_votes,
        **scores,
    }


def methods(results: Results) -> list[str]:
    """The methods of ``results``, in order."""
    return list(dict.fromkeys(row["method"] for row in results["rows"]))


def best(results: Results, method: str, epsilon: float) -> Results:
    """The row with the best student of a method at a total."""
    rows = [row for row in results["rows"] if row["method"] == method and row["epsilon"] == epsilon]
    return max(rows, key=lambda row: row["student"])


def markdown(results: Results) -> str:
    """The table as Markdown."""
    settings = results["settings"]
    epsilons = settings["epsilons"]
    head = " | ".join(f"{epsilon:g}" for epsilon in epsilons)
    lines = [
        f"# Utility against privacy: {settings['data']}, in place of the supplement's Figure 4",
        "",
        (
            "Accuracy of a logistic regression on released labels, on held-out pictures that were "
            "not asked about; columns are"
        ),
        (
            f"proved totals at delta {settings['delta']:g}. Private-kNN samples at "
            f"{settings['sampling_probability']:g}. PATE's"
        ),
        (
            "teachers are ridge regressions on the same features. The noise is seeded, so that the "
            "figures repeat: these releases"
        ),
        "were not private.",
        f"Command: `python -m papers.private_knn.tradeoff --data {settings['data']}`.",
        "",
        f"![Figure 4](tradeoff-{settings['data']}.png)",
        "",
        "Students with true labels: "
        + ", ".join(
            f"{accuracy:.3f} of {number} queries"
            for number, accuracy in results["true_labels"].items()
        )
        + ".",
        "",
    ]
    for queries in settings["queries"]:
        lines += [
            f"## {queries} queries",
            "",
            f"| method | screened | {head} |",
            "|---|---|" + "---|" * len(epsilons),
        ]
        for method in methods(results):
            for screened in (False, True):
                rows = [
                    row
                    for row in results["rows"]
                    if (row["method"], row["queries"], row["screened"])
                    == (method, queries, screened)
                ]
                cells = " | ".join(f"{row['student']:.3f}" for row in rows)
                lines.append(f"| {method} | {'yes' if screened else 'no'} | {cells} |")
        lines.append("")
    lines += ["## Noise and released labels at the best number of queries", ""]
    lines += [
        "| method | epsilon | queries | screened | sigma of a vote | answered | right | student |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for method in methods(results):
        for epsilon in epsilons:
            row = best(results, method, epsilon)
            lines.append(
                f"| {method} | {epsilon:g} | {row['queries']} | "
                f"{'yes' if row['screened'] else 'no'} | {row['sigma_votes']:.1f} "
                f"| {row['answered']:.2f} | {row['labels_right']:.3f} | {row['student']:.3f} |"
            )
    return "\n".join(lines) + "\n"


def figure(results: Results) -> Figure:
    """Best student of each method against the total."""
    drawing, axes = one_panel()
    epsilons = results["settings"]["epsilons"]
    for method in methods(results):
        style = "--" if method.startswith("PATE") else "-"
        heights = [best(results, method, epsilon)["student"] for epsilon in epsilons]
        axes.plot(epsilons, heights, linestyle=style, marker="o", label=method)
    axes.axhline(
        max(results["true_labels"].values()), color="0.6", linestyle=":", label="true labels"
    )
    total_axis(axes, epsilons, delta=results["settings"]["delta"])
    axes.set_ylabel("student accuracy, best number of queries")
    axes.legend()
    return drawing


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, compute, and write the page, its picture and its numbers."""
    chosen = read_command(arguments, about=__doc__, data=SETTINGS, folder="knn-tradeoff")
    results = run(load(chosen.data), SETTINGS[chosen.data], seed=chosen.seed)
    name = f"tradeoff-{chosen.data}"
    write_result(chosen.folder / f"{name}.png", png(figure(results), dpi=120))
    write_result(chosen.folder / f"{name}.json", json.dumps(results, indent=1))
    write_result(chosen.folder / f"{name}.md", markdown(results))
    print(chosen.folder / f"{name}.md")


if __name__ == "__main__":
    main()
