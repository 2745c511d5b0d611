"""Every released function of the ladder at the table's budgets:
``python -m papers.posthoc.ladder --data mnist``.

One line for each rung with its best mechanism: the score on calibration rows that the choice was
made by, and for the chosen one the accuracy on the held-out part. All at one guarantee: epsilon,
delta 0, neighbours within the table's radius of each other in the original embedding.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papers.posthoc.cached_embedder import cached_embedder
from papers.posthoc.settings import EPSILONS, SETTINGS, TableSettings, settings_of
from reticent.datasets import Dataset, load
from reticent.systems import Calibration, PosthocEncoder
from reticent.systems.posthoc.plans import Plan
from reticent.training.parts import (
    Identity,
    Ladder,
    LiveCoordinates,
    NoiseAware,
    PublicDiscriminants,
    PublicPCA,
)
from reticent.training.progress import Report, bar

_DRAWS = 3

RUNGS = Ladder(
    (
        Identity(),
        LiveCoordinates(),
        PublicPCA(),
        PublicDiscriminants(),
        NoiseAware(),
        NoiseAware(start=LiveCoordinates()),
    )
)
"""The rungs of ``obfuscator="auto"``, and training that starts at the live coordinates."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One released function at one budget.

    Attributes:
        name: the part that made it and its number of outputs.
        mechanism: the best one for it on calibration rows.
        score: expected accuracy on calibration rows.
        error: standard error of ``score``, from the number of those rows.
        held_out: accuracy on the held-out part, mean of three releases; None for rungs that were
            not chosen.
    """

    name: str
    mechanism: str
    score: float
    error: float
    held_out: float | None = None


def run(
    data: Dataset,
    settings: TableSettings,
    folder: Path,
    *,
    epsilons: Sequence[float],
    seed: int,
    report: Report,
) -> dict[float, list[Rung]]:
    """The rungs at each budget, best first.

    Args:
        data: the data set that ``settings`` were made for.
        settings: fixed settings.
        folder: where the embedder is kept, made if missing.
        epsilons: budgets of one answer.
        seed: of training, of the split for calibration, and of the experiment's noise (so: not
            private).
        report: told about every finished training epoch.
    """
    folder.mkdir(parents=True, exist_ok=True)
    embedder = cached_embedder(data, settings, folder, seed=seed, report=report)
    train = embedder.embed(data.train_images).astype(np.float64)
    test = embedder.embed(data.test_images).astype(np.float64)
    results: dict[float, list[Rung]] = {}
    calibration = Calibration()
    rows = calibration.held_rows(len(train))
    for index, epsilon in enumerate(epsilons):
        encoder = PosthocEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=settings.radius,
            embedder="identity",
            obfuscator=RUNGS,
            path="global",
            calibration=calibration,
            random_state=seed,
        ).fit(train, data.train_labels)
        head, classes = encoder.head_, encoder.classes_
        assert head is not None
        assert classes is not None
        right = [
            np.mean(
                classes[head.predict(encoder.simulate(test, seed=draw).values)] == data.test_labels
            )
            for draw in range(_DRAWS)
        ]
        results[epsilon] = _rungs(encoder.considered_, rows, float(np.mean(right)))
        report("ladder", index + 1, len(epsilons), math.nan)
    return results


def markdown(results: dict[float, list[Rung]], *, title: str) -> str:
    """A table of all rungs."""
    lines = [
        f"# {title}",
        "",
        "| epsilon | released function | mechanism | calibration rows | held-out part |",
        "|---|---|---|---|---|",
    ]
    for epsilon, rungs in results.items():
        lines += [
            f"| {epsilon:g} | {rung.name} | {rung.mechanism} | {rung.score:.3f} +- "
            f"{rung.error:.3f} | {'' if rung.held_out is None else f'{rung.held_out:.3f}'} |"
            for rung in rungs
        ]
    return "\n".join([*lines, ""])


def _rungs(considered: Sequence[Plan], rows: int, held_out: float) -> list[Rung]:
    best: dict[str, Plan] = {}
    for plan in considered:  # best first
        best.setdefault(plan.rung, plan)
    return [
        Rung(
            name=name,
            mechanism=plan.mechanism,
            score=plan.utility,
            error=math.sqrt(plan.utility * (1.0 - plan.utility) / rows),
            held_out=held_out if index == 0 else None,
        )
        for index, (name, plan) in enumerate(best.items())
    ]


def main() -> None:
    """Reads the arguments, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m papers.posthoc.ladder", description=__doc__)
    parser.add_argument("--data", choices=sorted(SETTINGS), default="mnist")
    parser.add_argument("--folder", type=Path, default=None, help="where the embedder is kept")
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    settings = settings_of(arguments.data)
    folder = arguments.folder or Path("results") / f"{arguments.data}-{arguments.seed}"
    with bar() as report:
        results = run(
            load(arguments.data),
            settings,
            folder,
            epsilons=arguments.epsilons,
            seed=arguments.seed,
            report=report,
        )
    title = f"{arguments.data}, radius {settings.radius:g}, seed {arguments.seed}"
    print(markdown(results, title=title))


if __name__ == "__main__":
    main()
