"""Every way to label pictures from private records at one total: ``python -m
papers.private_knn.rungs --data mnist --epsilon 0.5``.

The first 2,000 pictures of the training part are public, with their labels; the others are the
private records. Features, radii, noise-free rivals and all settings come from the public ones, with
noise weighed as among the private records. Every way is scored on *all* held-out pictures. Those
that answer for good, and students, never see them beforehand; those that answer query by query get
all of them as queries. A row is the mean over seeds of the noise, with its standard error.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from papers.result_files import write_result
from reticent.datasets import load
from reticent.systems import IndividualKNNClassifier, PrivateKNNClassifier
from reticent.systems.votes.cells import CellsClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.radius_votes import RadiusVotesClassifier
from reticent.systems.votes.released_model import ReleasedModel
from reticent.training.public_features import PatchFeatures
from reticent.training.surest_student import surest_student

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DELTA = 1e-5
PUBLIC = 2000
SEEDS = (0, 1, 2)
DIMENSION = 40
ANSWERS = 600
"""Labels that the students' teachers give; a number that was fixed beforehand."""

MAPS: dict[str, dict[str, Any]] = {
    "mnist": {"image_shape": (1, 28, 28), "upright": True},
    "fashion": {"image_shape": (1, 28, 28), "mirrored": True},
    "cifar10": {"image_shape": (3, 32, 32), "mirrored": True},
    "digits": {"image_shape": (1, 8, 8), "patch": 3, "filters": 100},
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Features of the three parts."""

    private: Array
    codes: Integers
    public: Array
    public_codes: Integers
    scored: Array
    truth: Integers
    classes: int

    @cached_property
    def near(self) -> Rows:
        """The same in the first principal directions of the public rows, for distances."""
        centre = self.public.mean(axis=0)
        _, _, directions = np.linalg.svd(self.public - centre, full_matrices=False)
        kept = directions[:DIMENSION].T
        parts = [(part - centre) @ kept for part in (self.private, self.public, self.scored)]
        return Rows(
            parts[0], self.codes, parts[1], self.public_codes, parts[2], self.truth, self.classes
        )


def rows_of(data: str, folder: Path) -> Rows:
    """Features of the pictures, computed once and kept in ``folder``."""
    loaded = load(data)
    public = min(PUBLIC, len(loaded.train_rows) // 5)
    kept = folder / f"patch-features-{data}.npz"
    if not kept.is_file():
        learned = PatchFeatures(**MAPS[data]).fit(loaded.train_rows[:public])
        np.savez(
            kept,
            train=learned.features(loaded.train_rows).astype(np.float32),
            test=learned.features(loaded.test_rows).astype(np.float32),
        )
    with np.load(kept) as stored:
        train, test = (stored[name].astype(np.float64) for name in ("train", "test"))
    codes = loaded.train_labels
    return Rows(
        train[public:],
        codes[public:],
        train[:public],
        codes[:public],
        test,
        loaded.test_labels,
        loaded.classes,
    )


def public_rows_alone(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> list[float]:
    """Logistic regression on the labelled public rows; no private record, no noise."""
    spread = rows.public.std(axis=0) + 1e-6
    found = LogisticRegression(C=0.1, max_iter=500).fit(rows.public / spread, rows.public_codes)
    return [float((found.predict(rows.scored / spread) == rows.truth).mean())]


def _released(
    kind: type[ReleasedModel], rows: Rows, epsilon: float, seeds: tuple[int, ...], **more: Any
) -> list[float]:
    """A released model with the best of its grid on two halves of the public rows."""
    total: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "classes": range(rows.classes)}
    half = len(rows.public) // 2
    grid = kind.settings_grid(
        n_private=len(rows.private),
        n_public=len(rows.public),
        features=rows.public.shape[1],
        classes=rows.classes,
        epsilon=epsilon,
    )
    halves = slice(None, half), slice(half, None)

    def rehearsed(settings: dict[str, Any]) -> float:
        right = []
        for held, asked in (halves, halves[::-1]):
            model = kind(**total, **settings, **_counted(kind, half)).simulate_fit(
                rows.public[held],
                rows.public_codes[held],
                public_X=rows.public[asked],
                seed=0,
                noise_scale=half / len(rows.private),
            )
            found = model.predict(rows.public[asked])
            right.append((found == rows.public_codes[asked]).mean())
        return float(np.mean(right))

    best = max(grid, key=rehearsed)
    right = []
    for seed in seeds:
        model = kind(**total, **best, **_counted(kind, len(rows.private)), **more)
        model.simulate_fit(rows.private, rows.codes, public_X=rows.public, seed=seed)
        right.append(float((model.predict(rows.scored) == rows.truth).mean()))
    return right


def _counted(kind: type[ReleasedModel], records: int) -> dict[str, Any]:
    return {"records": records} if kind is NoisyGradientClassifier else {}


def radius_votes(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> list[float]:
    """Radius votes with a fixed cost for each of all the held-out pictures."""
    near, half = rows.near, len(rows.public) // 2
    total: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "classes": range(rows.classes),
        "answers": len(rows.scored),
    }

    def rehearsed(share: float) -> float:
        model = RadiusVotesClassifier(**total, share=share).fit(
            near.public[:half], rows.public_codes[:half], public_X=near.public[:half]
        )
        found = model.simulate(near.public[half:], seed=0, noise_scale=half / len(rows.private))
        return float((found.values == rows.public_codes[half:]).mean())

    share = max((0.005, 0.01, 0.02, 0.05, 0.1, 0.2), key=rehearsed)
    model = RadiusVotesClassifier(**total, share=share)
    model.fit(near.private, rows.codes, public_X=near.public)
    return [
        float((model.simulate(near.scored, seed=seed).values == rows.truth).mean())
        for seed in seeds
    ]


def individual_filters(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> list[float]:
    """Votes of records with a budget each, on all the held-out pictures."""
    near = rows.near
    model = IndividualKNNClassifier.tuned(
        near.public,
        rows.public_codes,
        epsilon=epsilon,
        delta=DELTA,
        classes=range(rows.classes),
        records=len(rows.private),
        queries=len(rows.scored),
    ).fit(near.private, rows.codes, public_X=near.public)
    return [
        float((model.simulate(near.scored, seed=seed).values == rows.truth).mean())
        for seed in seeds
    ]


def private_knn(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> list[float]:
    """Labels of public pictures by Private-kNN, and a support vector machine on the surest."""
    near = rows.near
    asked = np.random.default_rng(0).permutation(len(rows.public))[:ANSWERS]
    model = PrivateKNNClassifier.tuned(
        near.public,
        rows.public_codes,
        epsilon=epsilon,
        delta=DELTA,
        classes=range(rows.classes),
        records=len(rows.private),
        queries=len(asked),
        feature_range=_box(near.public),
    ).fit(near.private, rows.codes)
    return [
        _taught(rows, asked, model.simulate(near.public[asked], seed=seed).values, seed)
        for seed in seeds
    ]


def _box(points: Array) -> tuple[Array, Array]:
    return points.min(axis=0) - 1e-6, points.max(axis=0) + 1e-6


def _taught(rows: Rows, asked: Integers, labels: Integers, seed: int) -> float:
    student = surest_student(rows.public[asked], labels, classes=rows.classes, seed=seed)
    return float((student.predict(rows.scored) == rows.truth).mean())


WAYS: dict[str, tuple[str, Callable[[Rows, float, tuple[int, ...]], list[float]]]] = {
    "public rows alone": ("no private record", public_rows_alone),
    "cells": ("for good", lambda *given: _released(CellsClassifier, *given)),
    "noisy gradient descent": (
        "for good",
        lambda *given: _released(NoisyGradientClassifier, *given),
    ),
    "noisy gradient descent, support vector machine on the surest labels": (
        "for good",
        lambda *given: _released(NoisyGradientClassifier, *given, student_share=0.88),
    ),
    "radius votes": ("query by query", radius_votes),
    "individual filters": ("query by query, without limit", individual_filters),
    "Private-kNN, support vector machine on the surest labels": ("for good", private_knn),
}


def table(data: str, epsilon: float, found: dict[str, list[float]], scored: int) -> str:
    """The results as Markdown."""
    lines = [
        f"# Ways to label pictures: {data} at epsilon {epsilon:g}",
        "",
        f"`python -m papers.private_knn.rungs --data {data} --epsilon {epsilon:g}`",
        "",
        f"Delta {DELTA:g}; one record more or less; scored on all {scored} held-out pictures.",
        "Labelled public rows: the first 2,000 of the training part (a fifth of smaller ones).",
        "",
        "| way | answers | right | standard error | seeds |",
        "|---|---|---|---|---|",
    ]
    for name, right in sorted(found.items(), key=lambda item: -float(np.mean(item[1]))):
        error = np.std(right, ddof=1) / len(right) ** 0.5 if len(right) > 1 else 0.0
        shown = f"{100 * error:.2f}" if len(right) > 1 else "no noise"
        lines.append(
            f"| {name} | {WAYS[name][0]} | {100 * float(np.mean(right)):.2f} % | {shown} | "
            f"{len(right)} |"
        )
    return "\n".join(lines) + "\n"


def run(data: str, epsilon: float, ways: list[str], *, folder: Path, seeds: tuple[int, ...]) -> str:
    """The page; each way is kept in ``folder`` once it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"rungs-{data}-{epsilon:g}.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    rows = rows_of(data, folder)
    for name in ways:
        if name not in found:
            found[name] = WAYS[name][1](rows, epsilon, seeds)
            kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return table(data, epsilon, {name: found[name] for name in ways}, len(rows.scored))


def main(arguments: list[str] | None = None) -> None:
    """Runs the ways that were asked for and writes the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", choices=sorted(MAPS), default="digits")
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--out", type=Path, default=Path("runs/knn"))
    read = parser.parse_args(arguments)
    text = run(read.data, read.epsilon, read.ways, folder=read.out, seeds=SEEDS)
    write_result(read.out / f"rungs-{read.data}-{read.epsilon:g}.md", text)
    print(text)


if __name__ == "__main__":
    main()
