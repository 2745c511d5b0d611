"""Local differential privacy of any two pictures, the paper's comparison: ``python -m
papers.posthoc.local_privacy_table --data mnist``.

Noise on the picture, on its embedding, and on the live coordinates of that, each scaled to a public
unit cube, and randomised response on a classifier's label: all private for *any two* pictures.
Last, what protecting only pictures within R of each other buys. K-norm and Laplace noise are both
tried and chosen between on calibration rows. Every cell is cached in the folder.
On one core a seed takes about three minutes, and its embedder one or two.

Reference: Posthoc privacy guarantees for collaborative inference, supplement, Table 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from papers.datasets import load
from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import TableSettings, settings_of
from papers.seeded_command import (
    Cells,
    command_of,
    every_seed,
    leave,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.core.norms import Norm
from reticent.datasets import Dataset
from reticent.demos.posthoc import RESPONSE, response_accuracy
from reticent.systems.posthoc.calibration import noise_adder
from reticent.training.embedder import Embedder
from reticent.training.heads import AddNoise, Head, HeadConfig, train_head
from reticent.training.parts import LiveCoordinates
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

EPSILONS = (1.0, 2.0, 5.0, 7.0, math.inf)
"""The paper's."""

PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "mnist": {
        "LDP-Image": (0.1, 0.1, 0.1, 0.3, 0.99),
        "LDP-Embedding": (0.1075, 0.1319, 0.1927, 0.3107, 0.9096),
    },
    "fashion": {
        "LDP-Image": (0.1, 0.1, 0.1, 0.1, 0.92),
        "LDP-Embedding": (0.1012, 0.1251, 0.1708, 0.2420, 0.7798),
    },
    "utkface": {
        "LDP-Image": (0.52, 0.52, 0.52, 0.52, 0.89),
        "LDP-Embedding": (0.504, 0.535, 0.5757, 0.6375, 0.7246),
    },
}
"""The paper's figures at ``EPSILONS``."""

WITHIN = "live coordinates, pictures within R only"

_SENSITIVITY = {"k-norm-linf": Norm.LINF, "laplace": Norm.L1}
_TAIL = 5e-4
_HELD_SHARE = 0.2
_DRAWS = 3
_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class Released:
    """Points of which noise is released, and the distance that it has to hide.

    Attributes:
        train, test: points, shapes (n, d) and (k, d).
        reach: largest l-infinity distance of two inputs that are protected from each other.
    """

    train: Array
    test: Array
    reach: float

    def scale(self, mechanism: str, epsilon: float) -> float:
        """Of the noise: the largest distance in the mechanism's own norm, over epsilon."""
        size = self.train.shape[1]
        return self.reach * (size if _SENSITIVITY[mechanism] is Norm.L1 else 1) / epsilon


def in_cube(train: Array, test: Array) -> Released:
    """Points clipped to the box of nearly all training points and scaled to a unit cube, in which
    any two are within 1 of each other.
    """
    lower, upper = np.quantile(train, [_TAIL, 1.0 - _TAIL], axis=0)
    width = np.maximum(upper - lower, 1e-9)
    return Released(
        np.clip((train - lower) / width, 0.0, 1.0), np.clip((test - lower) / width, 0.0, 1.0), 1.0
    )


def released_points(
    data: Dataset, embedder: Embedder, chosen: npt.NDArray[np.int64], radius: float
) -> Results:
    """What noise is added to, by name."""
    pictures = data.train_images[chosen]
    train = embedder.embed(pictures).astype(np.float64)
    test = embedder.embed(data.test_images).astype(np.float64)
    live = LiveCoordinates().fit(train).network()
    alive = live.forward(train), live.forward(test)
    return {
        "picture": Released(
            pictures.reshape(len(pictures), -1).astype(np.float64),
            data.test_images.reshape(len(data.test_images), -1).astype(np.float64),
            1.0,
        ),
        "embedding": in_cube(train, test),
        "live coordinates": in_cube(*alive),
        WITHIN: Released(*alive, radius),
    }


def accuracy(
    points: Released,
    labels: npt.NDArray[np.int64],
    test_labels: npt.NDArray[np.int64],
    *,
    epsilon: float,
    seed: int,
) -> Results:
    """Of a server that sees noisy points, with the better mechanism on calibration rows.

    Args:
        points: what noise is added to.
        labels, test_labels: shapes (n,) and (k,).
        epsilon: of one answer; infinite for no noise.
        seed: of training and noise.
    """
    held = round(_HELD_SHARE * len(labels))
    best: Results = {"score": -math.inf}
    for mechanism in _SENSITIVITY if math.isfinite(epsilon) else ("none",):
        noise = None
        if mechanism != "none":
            noise = noise_adder(mechanism, points.scale(mechanism, epsilon))
        torch.manual_seed(seed)
        config = HeadConfig(epochs=8, seed=seed)
        head = train_head(points.train[:-held], labels[:-held], config, noise=noise)

        score = _right(head, noise, points.train[-held:], labels[-held:])
        if score > best["score"]:
            test = _right(head, noise, points.test, test_labels)
            best = {"score": score, "accuracy": test, "mechanism": mechanism}
    return best


def _right(
    head: Head, noise: AddNoise | None, values: Array, labels: npt.NDArray[np.int64]
) -> float:
    rows = torch.from_numpy(values.astype(np.float32))
    seen = [rows if noise is None else noise(rows) for _ in range(_DRAWS)]
    return float(np.mean([head.predict(one.numpy()) == labels for one in seen]))


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    epsilons: Sequence[float],
    seed: int,
    report: Report,
) -> Results:
    """Accuracies of one seed; cells that stand in ``folder`` are read from there.

    Args:
        data: the data set that ``settings`` were made for.
        settings: radius and embedder.
        folder: of this seed; made if missing.
        epsilons: of one answer; the last one infinite, for no noise.
        seed: of the embedder, rows, training, and of the experiment's noise (so: not private).
        report: told about every cell.
    """
    names = ("picture", "embedding", "live coordinates", WITHIN)
    total = len(names) * len(epsilons)
    cell = Cells(folder / "local-privacy-cells", "local privacy", total, report)
    chosen = np.random.default_rng(seed).permutation(len(data.train_images))[:_ROWS]

    @cache
    def points() -> Results:
        embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
        return released_points(data, embedder, chosen, settings.radius)

    def measured(name: str, epsilon: float) -> Results:
        labels = data.train_labels[chosen]
        return accuracy(points()[name], labels, data.test_labels, epsilon=epsilon, seed=seed)

    results: Results = {}
    for name in names:
        results[name] = {}
        for epsilon in epsilons:
            key = f"{name.replace(' ', '-').replace(',', '')}-{epsilon:g}"
            results[name][f"{epsilon:g}"] = cell(key, partial(measured, name, epsilon))
    exact = results["picture"]["inf"]["accuracy"]
    results[RESPONSE] = {
        f"{epsilon:g}": {
            "accuracy": response_accuracy(exact, epsilon=epsilon, classes=data.classes)
            if math.isfinite(epsilon)
            else exact
        }
        for epsilon in epsilons
    }
    return results


def markdown(data: str, runs: Sequence[Results], *, command: str) -> str:
    """The table, and the paper's.

    Args:
        data: name of the data set.
        runs: what ``run`` gave for each seed.
        command: that prints it.
    """
    means, errors = combined(runs)
    epsilons = list(next(iter(means.values())))
    lines = [
        f"# Any two pictures: {data}",
        "",
        f"Printed by `{command}`.",
        f"Accuracies of a server on the held-out part: {over(len(runs))}",
        f"Servers learn from {_ROWS:,} training pictures. Every row but the last protects any two",
        "pictures from each other at delta 0; the last protects those whose embeddings lie within",
        f"R = {settings_of(data).radius:g}.",
        "",
        f"| noise on | {' | '.join(f'epsilon {epsilon}' for epsilon in epsilons)} |",
        "|---|" + "---|" * len(epsilons),
    ]
    order = [name for name in means if name != WITHIN]
    for name in [*order, WITHIN]:
        cells = [
            with_error(means[name][epsilon]["accuracy"], errors[name][epsilon]["accuracy"])
            for epsilon in epsilons
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if data in PAPER:
        head = " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS)
        lines += ["", "The paper's:", "", f"| | {head} |", "|---|" + "---|" * len(EPSILONS)]
        lines += [
            f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |"
            for name, values in PAPER[data].items()
        ]
    return "\n".join([*lines, ""])


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.local_privacy_table", __doc__, runs="local-privacy")
    chosen = parser.parse_args(arguments)
    data, settings = load(chosen.data), settings_of(chosen.data)

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(data, settings, folder, epsilons=EPSILONS, seed=seed, report=report)

    runs = every_seed(chosen, measure)
    command = command_of(chosen, "papers.posthoc.local_privacy_table")
    page = markdown(chosen.data, runs, command=command)
    leave(chosen, f"posthoc-local-privacy-{chosen.data}", runs, page)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
