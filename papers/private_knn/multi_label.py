"""Private-kNN with several attributes per query, each record's votes clipped.

``python -m papers.private_knn.multi_label``

Every digit has attributes (even, prime, has a loop, ...). Private records are the training
pictures; the public queries are the first held-out ones, whose attributes are read for scoring
only. For each clip tau and total epsilon: how many of the released attributes are right, and how
well a student does that learned from them. The paper's own data set for this, CelebA, is not
used; what its settings cost is computed beside its published figure.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from papers.datasets import load
from papers.drawings import one_panel, png
from papers.private_knn.command import read_command, total_axis
from papers.private_knn.noisy_attributes import (
    VOTE_STEPS,
    NoisyAttributes,
    clipped_votes,
    weight_votes,
)
from papers.private_knn.reduced_features import ReducedFeatures
from papers.result_files import write_result
from reticent.accounting import PrivateKnnSteps, calibrate_private_knn, private_knn_total
from reticent.core.arrays import Integers
from reticent.datasets import Dataset
from reticent.neighbours import (
    NeighbourSearch,
    PointGrid,
    Records,
    SampledNeighbours,
)
from reticent.noise import SeededSampler
from reticent.training.features import HogFeatures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

ATTRIBUTES: dict[str, tuple[int, ...]] = {
    "even": (0, 2, 4, 6, 8),
    "at least five": (5, 6, 7, 8, 9),
    "prime": (2, 3, 5, 7),
    "has a loop": (0, 6, 8, 9),
    "square": (0, 1, 4, 9),
    "multiple of three": (0, 3, 6, 9),
    "straight strokes": (1, 4, 7),
    "Fibonacci": (0, 1, 2, 3, 5, 8),
}
"""Digits that have each attribute; a digit has one to five of them."""


@dataclass(frozen=True)
class MultiLabelSettings:
    """Settings of the experiment.

    Attributes:
        data: "mnist" or "digits".
        queries: public pictures asked about.
        neighbours: k.
        sampling_probability: of every private record.
        delta: of the total.
        epsilons: totals.
        taus: clips, whole votes of one record.
        cell, orientations, upright, dimension: of the features, histograms of oriented gradients
            along principal directions of the queries.
    """

    data: str
    queries: int
    neighbours: int
    sampling_probability: float
    delta: float
    epsilons: tuple[float, ...]
    taus: tuple[int, ...]
    cell: int
    orientations: int
    upright: bool
    dimension: int


SETTINGS = {
    "mnist": MultiLabelSettings(
        "mnist", 800, 800, 0.05, 1e-6, (0.05, 0.1, 0.2, 0.5, 1.0), (1, 2, 3, 5), 7, 9, True, 64
    ),
    "digits": MultiLabelSettings(
        "digits", 100, 30, 0.3, 1e-5, (0.5, 1.0, 2.0, 5.0), (1, 2, 3, 5), 2, 9, False, 24
    ),
}


def attributes_of(digits: Integers) -> Integers:
    """Attributes of digits, shape (n, 8), 0 or 1.

    Example:
        >>> attributes_of(np.array([7])).tolist()
        [[0, 1, 1, 0, 0, 0, 1, 0]]
    """
    table = np.array(
        [[int(digit in having) for having in ATTRIBUTES.values()] for digit in range(10)],
        dtype=np.int64,
    )
    return np.asarray(table[digits])


def run(data: Dataset, settings: MultiLabelSettings, *, seed: int) -> Results:
    """Every tau and epsilon.

    Args:
        data: digits.
        settings: fixed settings.
        seed: of noise and samples (so: not private).
    """
    private, public = data.train_rows, data.test_rows
    asked, unseen = public[: settings.queries], public[settings.queries :]
    plain = HogFeatures(
        image_shape=(1, *data.image_shape),
        cell=settings.cell,
        orientations=settings.orientations,
        upright=settings.upright,
    )
    features = ReducedFeatures.of(plain, asked, dimension=settings.dimension)
    asked_features, unseen_features = features.features(asked), features.features(unseen)
    grid = PointGrid.around(asked_features)
    points = grid.points(features.features(private))
    truth = attributes_of(data.test_labels)
    known, target = truth[: settings.queries], truth[settings.queries :]
    results: Results = {
        "settings": settings.__dict__,
        "seed": seed,
        "base_rate": float(np.maximum(known.mean(axis=0), 1 - known.mean(axis=0)).mean()),
        "student_with_true_attributes": _student(asked_features, known, unseen_features, target),
        "cells": {},
    }
    for tau in settings.taus:
        records = Records.of(points, clipped_votes(attributes_of(data.train_labels), tau=tau), None)
        voters = SampledNeighbours(
            NeighbourSearch(records),
            neighbours=settings.neighbours,
            probability=settings.sampling_probability,
        )
        sampler = SeededSampler(seed)
        lists = voters.search.lists(grid.points(asked_features), depth=voters.depth)
        # All totals of one tau see the same samples, and differ in their noise alone.
        votes = np.concatenate(
            [weight_votes(voters.draw(block, sampler=sampler), records.votes) for block in lists]
        )
        cells = {}
        for epsilon in settings.epsilons:
            mechanism, spent = _mechanism(settings, tau=tau, epsilon=epsilon)
            released = mechanism.release(votes, sampler=sampler)
            cells[f"{epsilon:g}"] = {
                "epsilon": spent,
                "sigma": mechanism.sigma,
                "attributes_right": float((released == known).mean()),
                "queries_right": float((released == known).all(axis=1).mean()),
                "student": _student(
                    asked_features, released.astype(np.int64), unseen_features, target
                ),
            }
        noise_free = 2 * votes >= settings.neighbours * VOTE_STEPS
        results["cells"][str(tau)] = {"no noise": float((noise_free == known).mean()), **cells}
    return results


def _mechanism(
    settings: MultiLabelSettings, *, tau: int, epsilon: float
) -> tuple[NoisyAttributes, float]:
    steps = calibrate_private_knn(
        epsilon=epsilon,
        delta=settings.delta,
        queries=settings.queries,
        answers=settings.queries,
        neighbours=settings.neighbours,
        sampling_probability=settings.sampling_probability,
        threshold=None,
        noise_ratio=None,
        vote_sensitivity=math.sqrt(min(2 * tau, len(ATTRIBUTES))),
        one_label=False,
    )
    mechanism = NoisyAttributes(
        attributes=len(ATTRIBUTES),
        neighbours=settings.neighbours,
        tau=tau,
        sigma=steps.sigma_votes,
        sampling_probability=settings.sampling_probability,
        delta=settings.delta,
        steps=VOTE_STEPS,
    )
    return mechanism, private_knn_total(steps, delta=settings.delta).epsilon


def published_setting() -> Results:
    """What the published CelebA setting costs, under the sensitivity that holds and under tau
    sqrt(2).
    """
    setting = {
        "queries": 800,
        "neighbours": 800,
        "sampling_probability": 0.05,
        "sigma": 100.0,
        "tau": 10,
        "delta": 1e-6,
    }
    found = {}
    for name, sensitivity in (("proved", math.sqrt(20.0)), ("tau sqrt(2)", 10 * math.sqrt(2.0))):
        steps = PrivateKnnSteps(
            queries=800,
            answers=800,
            neighbours=800,
            sampling_probability=0.05,
            sigma_votes=100.0,
            threshold=None,
            sigma_screening=None,
            vote_sensitivity=sensitivity,
            one_label=False,
        )
        found[name] = private_knn_total(steps, delta=1e-6).epsilon
    return {"setting": setting, "published": 1.24, "epsilon": found}


def _student(features: Array, attributes: Integers, unseen: Array, target: Integers) -> float:
    """Mean accuracy of one logistic regression per attribute on pictures that were not asked
    about.
    """
    scores = []
    for column, wanted in zip(attributes.T, target.T, strict=True):
        if column.min() == column.max():
            scores.append(float((wanted == column[0]).mean()))
            continue
        model = LogisticRegression(C=10.0, max_iter=500).fit(features, column)
        scores.append(float((model.predict(unseen) == wanted).mean()))
    return float(np.mean(scores))


def markdown(results: Results, published: Results) -> str:
    """The table as Markdown."""
    settings = results["settings"]
    epsilons = [f"{epsilon:g}" for epsilon in settings["epsilons"]]
    head = f"| tau | no noise | {' | '.join(epsilons)} |"
    rule = "|---|---|" + "---|" * len(epsilons)
    lines = [
        f"# Eight attributes per query: {settings['data']}",
        "",
        f"{settings['queries']} public queries, k = {settings['neighbours']}, samples of rate",
        (
            f"{settings['sampling_probability']:g}, delta = {settings['delta']:g}; all attributes "
            "of all queries"
        ),
        (
            "together cost epsilon, under the addition or removal of one record. The noise is "
            "seeded, so that the figures repeat:"
        ),
        "these releases were not private. Command:",
        f"`python -m papers.private_knn.multi_label --data {settings['data']}`.",
        "",
        "Attributes: " + ", ".join(ATTRIBUTES) + ".",
        f"Guessing the more frequent value of each is right in {results['base_rate']:.3f}.",
        "",
        "## Released attributes that are right",
        "",
        head,
        rule,
    ]
    for tau, cells in results["cells"].items():
        row = " | ".join(f"{cells[epsilon]['attributes_right']:.3f}" for epsilon in epsilons)
        lines.append(f"| {tau} | {cells['no noise']:.3f} | {row} |")
    lines += [
        "",
        (
            "Clipping shrinks votes while the bar stays at half of k: a record with more than 2 "
            "tau attributes gives each less than"
        ),
        (
            "half a vote. A digit has at most five, so tau = 5 clips nobody; votes of 0 to 1 then "
            "move by sqrt(8), not sqrt(10)."
        ),
        "",
        "## Student on pictures that were not asked about",
        "",
        f"With true attributes of the same queries: {results['student_with_true_attributes']:.3f}.",
        "",
        "| tau | " + " | ".join(epsilons) + " |",
        "|---|" + "---|" * len(epsilons),
    ]
    for tau, cells in results["cells"].items():
        lines.append(
            f"| {tau} | "
            + " | ".join(f"{cells[epsilon]['student']:.3f}" for epsilon in epsilons)
            + " |"
        )
    found = published["epsilon"]
    lines += [
        "",
        "## The published setting",
        "",
        (
            "CelebA, gamma .05, k 800, sigma 100, tau 10, 800 queries, delta 1e-6: published "
            "epsilon 1.24. One record moves the"
        ),
        (
            f"votes by at most sqrt(20) in l2, and the setting costs {found['proved']:.3f}. The "
            "published code's noise multiplier of"
        ),
        (
            "10 / sqrt(2) stands for a sensitivity of 10 sqrt(2), which costs "
            f"{found['tau sqrt(2)']:.3f}."
        ),
    ]
    return "\n".join(lines) + "\n"


def figure(results: Results) -> Figure:
    """Student accuracy against epsilon, one line for each tau."""
    drawing, axes = one_panel()
    epsilons = results["settings"]["epsilons"]
    for tau, cells in results["cells"].items():
        axes.plot(
            epsilons,
            [cells[f"{epsilon:g}"]["student"] for epsilon in epsilons],
            marker="o",
            label=f"tau = {tau}",
        )
    axes.axhline(
        results["student_with_true_attributes"], color="0.6", linestyle=":", label="true attributes"
    )
    total_axis(axes, epsilons, delta=results["settings"]["delta"])
    axes.set_ylabel("student: attributes right")
    axes.legend()
    return drawing


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, compute, and write the page, its picture and its numbers."""
    chosen = read_command(arguments, about=__doc__, data=SETTINGS, folder="knn-multi-label")
    results, published = (
        run(load(chosen.data), SETTINGS[chosen.data], seed=chosen.seed),
        published_setting(),
    )
    name = f"multi-label-{chosen.data}"
    write_result(chosen.folder / f"{name}.png", png(figure(results), dpi=120))
    write_result(
        chosen.folder / f"{name}.json", json.dumps({**results, "published": published}, indent=1)
    )
    write_result(
        chosen.folder / f"{name}.md",
        markdown(results, published) + f"\n![Student accuracy]({name}.png)\n",
    )
    print(chosen.folder / f"{name}.md")


if __name__ == "__main__":
    main()
