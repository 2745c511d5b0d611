"""Linkage of reviews: ``python -m papers.posthoc.linkage``.

Sentence embeddings of reviews (384 numbers, l2), released within a radius that public rows choose:
the distance to the nearest other review in the median, and the least radius for which half of the
reviews have ten others within it. What a server learns about the sentiment, and how often someone
who knows 64 reviews names the right one after 1 and 4 answers, beside the proved caps.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from reticent.attacks import attack_fitted
from reticent.attacks.games import Game
from reticent.datasets import Table, load_imdb
from reticent.radius import survey_radius
from reticent.systems import PosthocClassifier, PosthocEncoder
from reticent.training.parts import Ladder, LiveCoordinates, PublicDiscriminants, PublicPCA

ANSWERS = (1, 4)
CANDIDATES = 64
_MOST_ROWS = 6_000
_RULES = (1, 10)


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """One release of reviews.

    Attributes:
        released: "label", or the rung and mechanism that calibration chose.
        radius, epsilon: of the guarantee.
        accuracy: of the sentiment on held-out reviews, mean over seeds.
        accuracy_error: standard error over seeds.
        games: which of the reviews, after one and several answers, of the first seed.
    """

    released: str
    radius: float
    epsilon: float
    accuracy: float
    accuracy_error: float
    games: tuple[Game, ...]


def run(
    data: Table, *, epsilons: Sequence[float], seeds: int, trials: int = 10_000
) -> list[Linkage]:
    """Releases at each radius and budget.

    Args:
        data: embeddings of texts, with two labels.
        epsilons: of one answer.
        seeds: of training, rows and noise.
        trials: answers of each game.
    """
    train, labels = data.train_rows[:_MOST_ROWS], data.train_labels[:_MOST_ROWS]
    radii = [
        survey_radius(train, radii=[], epsilons=[1.0], norm="l2", neighbour=k).rules[0].radius
        for k in _RULES
    ]
    found = []
    for radius in radii:
        for epsilon in epsilons:
            for kind in ("vector", "label"):
                runs = [
                    _one(kind, data, train, labels, radius, epsilon, seed, trials)
                    for seed in range(seeds)
                ]
                right = [accuracy for accuracy, _, _ in runs]
                spread = float(np.std(right, ddof=1) / np.sqrt(seeds)) if seeds > 1 else np.nan
                found.append(
                    Linkage(
                        released=runs[0][1],
                        radius=radius,
                        epsilon=epsilon,
                        accuracy=float(np.mean(right)),
                        accuracy_error=spread,
                        games=runs[0][2],
                    )
                )
    return found


def _one(
    kind: str,
    data: Table,
    train: np.ndarray,
    labels: np.ndarray,
    radius: float,
    epsilon: float,
    seed: int,
    trials: int,
) -> tuple[float, str, tuple[Game, ...]]:
    total: dict[str, Any] = {"epsilon": epsilon, "delta": 0.0, "radius": radius, "input_norm": "l2"}
    system: PosthocEncoder | PosthocClassifier
    if kind == "vector":
        rungs = (LiveCoordinates(), PublicPCA(outputs=(4, 16, 32)), PublicDiscriminants())
        encoder = PosthocEncoder(
            embedder="identity", obfuscator=Ladder(rungs), path="global", random_state=seed, **total
        ).fit(train, labels)
        assert encoder.head_ is not None
        assert encoder.classes_ is not None
        seen = encoder.simulate(data.test_rows, seed=seed).values
        accuracy = float((encoder.classes_[encoder.head_.predict(seen)] == data.test_labels).mean())
        name = f"{encoder.query_.plan.rung}, {encoder.query_.plan.mechanism}"
        system = encoder
    else:
        system = PosthocClassifier(
            embedder="identity",
            classifier=_logistic(train, labels),
            path="global",
            random_state=seed,
            **total,
        ).fit(train, labels)
        shares = system.probabilities(data.test_rows)
        accuracy = float(shares[np.arange(len(shares)), data.test_labels].mean())
        name = f"label, {system.query_.plan.mechanism}"
    attack = attack_fitted(
        system,
        data.test_rows[:1_000],
        candidates=CANDIDATES,
        trials=trials,
        answers=ANSWERS,
        decoder=False,
        seed=seed,
    )
    linked = tuple(game for game in attack.games if game.name.startswith(f"which of {CANDIDATES}"))
    return accuracy, name, linked


def _logistic(rows: np.ndarray, labels: np.ndarray) -> torch.nn.Linear:
    """Logistic regression of two labels, as two logits."""
    model = LogisticRegression(C=10.0, max_iter=1_000).fit(rows, labels)
    layer = torch.nn.Linear(rows.shape[1], 2)
    with torch.no_grad():
        for logit, sign in enumerate((-0.5, 0.5)):
            layer.weight[logit] = torch.from_numpy(sign * model.coef_[0])
            layer.bias[logit] = float(sign * model.intercept_[0])
    return layer


def markdown(found: Sequence[Linkage]) -> str:
    """A table of all releases."""
    heads = [f"named, {count} answer(s) (cap)" for count in ANSWERS]
    lines = [
        "# Linkage of reviews",
        "",
        f"| R (l2) | epsilon | released | sentiment right | {' | '.join(heads)} |",
        "|---|---|---|---|" + "---|" * len(heads),
    ]
    for row in found:
        games = " | ".join(f"{game.success:.3f} ({game.cap:.3f})" for game in row.games)
        lines.append(
            f"| {row.radius:.3f} | {row.epsilon:g} | {row.released} | {row.accuracy:.3f} +- "
            f"{row.accuracy_error:.3f} | {games} |"
        )
    chance = f"Without an answer one of {CANDIDATES} is named rightly with probability "
    return "\n".join([*lines, "", f"{chance}{1 / CANDIDATES:.3f}.", ""])


def main() -> None:
    """Reads the arguments, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m papers.posthoc.linkage", description=__doc__)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 5.0, 20.0])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print(markdown(run(load_imdb(), epsilons=arguments.epsilons, seeds=arguments.seeds)))


if __name__ == "__main__":
    main()
