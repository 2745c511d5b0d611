"""Every way to label pictures from private records at one total: ``python -m
papers.private_knn.rungs --data mnist --epsilon 0.5``.

The first 2,000 pictures of the training part are public, with their labels; the others are the
private records. Features, radii, noise-free rivals and all settings come from the public ones, with
noise weighed as among the private records. Every way is scored on *all* held-out pictures. Those
that answer for good, and students, never see them beforehand; those that answer query by query get
all of them as queries, and pay for each. So no row is transductive: nothing learns from a picture
that is scored. A row is the mean over seeds of the noise, with its standard error.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression

from papers.datasets import load
from papers.private_knn.pate_rung import pate
from papers.private_knn.rung_rows import (
    DELTA,
    MAPS,
    Found,
    Rows,
    ScaledAlready,
    asked_places,
    rows_of,
    taught_right,
)
from papers.result_files import write_result
from papers.settings_grids import descent_settings
from reticent.core.settings import plain
from reticent.systems import Features, IndividualKNNClassifier, PrivateKNNClassifier
from reticent.systems.votes.noisy_gradient import NoisyGradientClassifier
from reticent.systems.votes.released_model import ReleasedModel

Array = npt.NDArray[np.float64]

SEEDS = (0, 1, 2)
Way = Callable[[Rows, float, tuple[int, ...]], Found]


def public_rows_alone(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> Found:
    """Logistic regression on the labelled public rows; no private record, no noise."""
    spread = rows.public.std(axis=0) + 1e-6
    found = LogisticRegression(C=0.1, max_iter=500).fit(rows.public / spread, rows.public_codes)
    return Found([float((found.predict(rows.scored / spread) == rows.truth).mean())])


def descent(
    rows: Rows,
    epsilon: float,
    seeds: tuple[int, ...],
    *,
    student_share: float | None = None,
) -> Found:
    """Gradient descent with the settings that do best on two halves of the public rows; with a
    share, the student of each model in its place.
    """
    rows = rows.scaled
    models, settings = _models(rows, epsilon, seeds)
    if student_share is not None:
        models = [model.with_student(rows.public, student_share) for model in models]
        settings = {**settings, "student_share": student_share}
    right = [float((model.predict(rows.scored) == rows.truth).mean()) for model in models]
    return Found(right, settings)


@lru_cache(maxsize=1)
def _models(
    rows: Rows, epsilon: float, seeds: tuple[int, ...]
) -> tuple[list[ReleasedModel], dict[str, Any]]:
    """A model for each seed, and the settings of all of them; kept for the row of the student."""
    total: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "classes": range(rows.classes),
    }
    half = len(rows.public) // 2
    halves = slice(None, half), slice(half, None)

    def made(settings: dict[str, Any], records: int) -> ReleasedModel:
        features = replace(settings["features"], map=ScaledAlready())
        given = {**total, **settings, "records": records, "features": features}
        return NoisyGradientClassifier(**given)

    def rehearsed(settings: dict[str, Any]) -> float:
        right = []
        for held, asked in (halves, halves[::-1]):
            records = len(rows.public[held])
            for model in made(settings, records).simulate_fits(
                rows.public[held],
                rows.public_codes[held],
                public_X=rows.public[asked],
                totals=[(epsilon, DELTA)],
                seeds=seeds,
                noise_scale=records / len(rows.private),
            ):
                found = model.predict(rows.public[asked])
                right.append((found == rows.public_codes[asked]).mean())
        return float(np.mean(right))

    best = max(descent_settings(rows.public.shape[1]), key=rehearsed)
    model = made(best, len(rows.private))
    fits = model.simulate_fits(
        rows.private, rows.codes, public_X=rows.public, totals=[(epsilon, DELTA)], seeds=seeds
    )
    return list(fits), plain(best)


def individual_filters(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> Found:
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
    right = [
        float((model.simulate(near.scored, seed=seed).values == rows.truth).mean())
        for seed in seeds
    ]
    chosen = plain({"ball": model.ball, "votes": model.votes, "looks": model.looks})
    return Found(right, chosen)


def private_knn(rows: Rows, epsilon: float, seeds: tuple[int, ...]) -> Found:
    """Labels of public pictures by Private-kNN, and a support vector machine on the surest."""
    near, asked = rows.near, asked_places(rows)
    model = PrivateKNNClassifier.tuned(
        near.public,
        rows.public_codes,
        epsilon=epsilon,
        delta=DELTA,
        classes=range(rows.classes),
        records=len(rows.private),
        queries=len(asked),
        features=Features(range=_box(near.public)),
    ).fit(near.private, rows.codes)
    right = [
        taught_right(rows, asked, model.simulate(near.public[asked], seed=seed).values, seed)
        for seed in seeds
    ]
    voting = plain({"neighbours": model.neighbours})
    chosen = {
        "neighbours": voting["number"],
        "sampling_probability": voting["sampling_probability"],
    }
    return Found(right, chosen)


def _box(points: Array) -> tuple[Array, Array]:
    return points.min(axis=0) - 1e-6, points.max(axis=0) + 1e-6


WAYS: dict[str, tuple[str, Way]] = {
    "public rows alone": ("no private record", public_rows_alone),
    "noisy gradient descent": ("for good", descent),
    "noisy gradient descent, support vector machine on the surest labels": (
        "for good",
        lambda *given: descent(*given, student_share=0.88),
    ),
    "Private-kNN, support vector machine on the surest labels": ("for good", private_knn),
    "PATE, support vector machine on the surest labels": ("for good", pate),
    "individual filters": ("query by query, without limit", individual_filters),
}


def table(data: str, epsilon: float, found: dict[str, Found], scored: int) -> str:
    """The results as Markdown; ways that were not run are named."""
    lines = [
        f"# Ways to label pictures: {data} at epsilon {epsilon:g}",
        "",
        f"`python -m papers.private_knn.rungs --data {data} --epsilon {epsilon:g}`",
        "",
        f"Delta {DELTA:g}; one record more or less; scored on all {scored} held-out pictures.",
        "Nothing learned from these, so no row is transductive. Labelled public rows: the first",
        "2,000 of the training part (a fifth of smaller ones).",
        "Standard errors are those of the noise.",
        "",
        "| way | answers | right | standard error | seeds | settings, from public rows |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in sorted(found.items(), key=lambda item: -float(np.mean(item[1].right))):
        seeds = len(row.right)
        error = 100 * float(np.std(row.right, ddof=1)) / seeds**0.5 if seeds > 1 else None
        shown = "no noise" if error is None else f"{error:.2f}"
        settings = ", ".join(f"{key} {_shown(value)}" for key, value in row.settings.items()) or "-"
        lines.append(
            f"| {name} | {WAYS[name][0]} | {100 * float(np.mean(row.right)):.2f} % | {shown} | "
            f"{seeds} | {settings} |"
        )
    if missing := [name for name in WAYS if name not in found]:
        lines += ["", f"Not run: {'; '.join(missing)}."]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def run(data: str, epsilon: float, ways: list[str], *, folder: Path, seeds: tuple[int, ...]) -> str:
    """The page of all ways that are known by now; each is kept in ``folder`` once it is done."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"rungs-{data}-{epsilon:g}.json"
    written = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() else {}
    found = {name: Found(**row) for name, row in written.items()}
    if missing := [name for name in ways if name not in found]:
        rows = rows_of(data, folder)
        for name in missing:
            found[name] = WAYS[name][1](rows, epsilon, seeds)
            write_result(
                kept,
                json.dumps({way: asdict(row) for way, row in found.items()}, indent=1) + "\n",
            )
    return table(data, epsilon, found, len(load(data).test_labels))


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
