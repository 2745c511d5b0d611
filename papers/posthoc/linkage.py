"""Linkage of reviews: ``python -m papers.posthoc.linkage``.

Sentence embeddings of reviews (384 numbers, l2), released within a radius that public rows choose:
the distance to the nearest other review in the median, and the least radius for which half of the
reviews have ten others within it. Released are a label, 1 to 32 values of the embedding, or all of
it. What a server learns about the sentiment, and how often someone who knows 64 reviews names the
right one after 1 and 4 answers, beside the proved caps. Every cell is cached in the folder, so an
interrupted run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.linear_model import LogisticRegression

from papers.posthoc.seeded_command import (
    Cells,
    command_of,
    every_seed,
    leave,
    over,
    seeded_parser,
)
from papers.seeds import combined, with_error
from reticent.attacks import attack_fitted
from reticent.datasets import Table, load_imdb
from reticent.radius import survey_radius
from reticent.systems import PosthocClassifier, PosthocEncoder
from reticent.training.parts import LiveCoordinates, PublicDiscriminants, PublicPCA
from reticent.training.parts.contract import Part
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

EPSILONS = (1.0, 5.0, 20.0)
ANSWERS = (1, 4)
CANDIDATES = 64
_MOST_ROWS = 6_000


RULES = {1: "the nearest other review", 10: "the tenth nearest"}
"""Radii: the distance to this review, in the median."""

LABELS = {"randomised response on the label: any two reviews": "response", "label": "auto"}
"""Mechanisms of labels that are released, by name; "auto" is the best on calibration rows."""

VECTORS: dict[str, Part] = {
    "class discriminants, 1 value": PublicDiscriminants(),
    **{f"principal components, {size} values": PublicPCA(outputs=size) for size in (4, 16, 32)},
    "live coordinates": LiveCoordinates(),
}
"""Public linear maps whose values are released, by name."""

AUTO = "**auto: of the vectors the best on calibration rows**"


def run(
    data: Table,
    folder: Path,
    *,
    epsilons: Sequence[float],
    seed: int,
    trials: int = 10_000,
    report: Report,
) -> Results:
    """Releases at each radius and budget; cells that stand in ``folder`` are read from there.

    Args:
        data: embeddings of texts, with two labels.
        folder: of this seed's cells; made if missing.
        epsilons: of one answer.
        seed: of training, of the candidates, and of the experiment's noise (so: not private).
        trials: answers of each game.
        report: told after every cell.

    Returns:
        For each rule of the radius, then epsilon, then name of what was released: its mechanism,
        the accuracy of the sentiment on held-out reviews, and the games.
    """
    train, labels = data.train_rows[:_MOST_ROWS], data.train_labels[:_MOST_ROWS]
    total = len(RULES) * len(epsilons) * (len(LABELS) + len(VECTORS))
    cell = Cells(folder / "linkage-cells", "linkage", total, report)
    results: Results = {}
    for place, rule in RULES.items():
        survey = survey_radius(train, radii=[], epsilons=[1.0], norm="l2", neighbour=place)
        radius = survey.rules[0].radius
        by_epsilon: Results = {}
        for epsilon in epsilons:
            found: Results = {}
            for number, name in enumerate((*LABELS, *VECTORS)):
                measured = partial(_cell, name, data, train, labels, radius, epsilon, seed, trials)
                found[name] = cell(f"{number}-{place}-{epsilon:g}", measured)
            chosen = max(VECTORS, key=lambda name: float(found[name]["score"]))
            found[AUTO] = {**found[chosen], "released": chosen}
            by_epsilon[f"{epsilon:g}"] = found
        results[rule] = {"radius": radius, "by epsilon": by_epsilon}
    return results


def _cell(
    name: str,
    data: Table,
    train: Array,
    labels: npt.NDArray[np.int64],
    radius: float,
    epsilon: float,
    seed: int,
    trials: int,
) -> Results:
    shared: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 0.0,
        "radius": radius,
        "input_norm": "l2",
        "embedder": "identity",
        "path": "global",
        "random_state": seed,
    }
    system: PosthocEncoder | PosthocClassifier
    if name in VECTORS:
        system = PosthocEncoder(obfuscator=VECTORS[name], **shared).fit(train, labels)
        assert system.head_ is not None
        assert system.classes_ is not None
        seen = system.simulate(data.test_rows, seed=seed).values
        accuracy = float((system.classes_[system.head_.predict(seen)] == data.test_labels).mean())
    else:
        logits = _logistic(train, labels)
        system = PosthocClassifier(classifier=logits, mechanism=LABELS[name], **shared)
        shares = system.fit(train, labels).probabilities(data.test_rows)
        accuracy = float(shares[np.arange(len(shares)), data.test_labels].mean())
    attack = attack_fitted(
        system,
        data.test_rows[:1_000],
        candidates=CANDIDATES,
        trials=trials,
        answers=ANSWERS,
        decoder=False,
        seed=seed,
    )
    linked = [game for game in attack.games if game.name.startswith(f"which of {CANDIDATES}")]
    return {
        "released": system.query_.plan.mechanism,
        "score": system.query_.plan.utility,
        "accuracy": accuracy,
        "named": [game.success for game in linked],
        "caps": [game.cap for game in linked],
        "exceeded": float(sum(game.exceeded for game in linked)),
    }


def _logistic(rows: np.ndarray, labels: np.ndarray) -> torch.nn.Linear:
    """Logistic regression of two labels, as two logits."""
    model = LogisticRegression(C=10.0, max_iter=1_000).fit(rows, labels)
    layer = torch.nn.Linear(rows.shape[1], 2)
    with torch.no_grad():
        for logit, sign in enumerate((-0.5, 0.5)):
            layer.weight[logit] = torch.from_numpy(sign * model.coef_[0])
            layer.bias[logit] = float(sign * model.intercept_[0])
    return layer


def markdown(runs: Sequence[Results], *, command: str) -> str:
    """A table of all releases for each radius and budget, with standard errors over seeds.

    Args:
        runs: what ``run`` gave for each seed.
        command: that prints it.
    """
    means, errors = combined(runs)
    heads = [f"named, {count} answer(s) (cap)" for count in ANSWERS]
    lines = [
        "# Linkage of reviews",
        "",
        f"Printed by `{command}`.",
        "Sentence embeddings of reviews, 384 numbers. Sentiment: right on held-out reviews. Named:",
        f"someone who knows {CANDIDATES} reviews, one of which was answered about, and goes by the",
        "exact probabilities of the mechanism, names it rightly; in brackets the proved cap on",
        f"everybody. Without an answer that is {1 / CANDIDATES:.3f}. Delta is 0.",
        f"Accuracies and names are {over(len(runs))}",
        "",
    ]
    for rule, found in means.items():
        lines.append(f"## R = {found['radius']:.3f} (l2), the distance to {rule} in the median")
        for epsilon, cells in found["by epsilon"].items():
            lines += [
                "",
                f"| epsilon {epsilon} | mechanism | sentiment right | {' | '.join(heads)} |",
                "|---|---|---|" + "---|" * len(heads),
            ]
            for name, cell in cells.items():
                error = errors[rule]["by epsilon"][epsilon][name]
                games = " | ".join(
                    f"{with_error(named, spread)} ({cap:.3f})"
                    for named, spread, cap in zip(
                        cell["named"], error["named"], cell["caps"], strict=True
                    )
                )
                lines.append(
                    f"| {name} | {cell['released']} | "
                    f"{with_error(cell['accuracy'], error['accuracy'])} | {games} |"
                )
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.linkage", __doc__, runs="linkage", data=False)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    chosen = parser.parse_args(arguments)
    data = load_imdb()

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(data, folder, epsilons=chosen.epsilon, seed=seed, report=report)

    runs = every_seed(chosen, measure)
    command = command_of(chosen, "papers.posthoc.linkage", epsilon=list(EPSILONS))
    leave(chosen, "linkage", runs, markdown(runs, command=command))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
