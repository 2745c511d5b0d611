"""Linkage of reviews: ``python -m papers.posthoc.linkage``.

Sentence embeddings of reviews (384 numbers, l2), released within a radius that public rows choose:
the distance to the nearest other review in the median, and the least radius for which half of the
reviews have ten others within it. What a server learns about the sentiment, and how often someone
who knows 64 reviews names the right one after 1 and 4 answers, beside the proved caps. Every cell
is cached in the folder, so an interrupted run continues.
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

from papers.posthoc.seeded_command import Cells, every_seed, leave, seeded_parser
from papers.seeds import combined, with_error
from reticent.attacks import attack_fitted
from reticent.datasets import Table, load_imdb
from reticent.radius import survey_radius
from reticent.systems import PosthocClassifier, PosthocEncoder
from reticent.training.parts import Ladder, LiveCoordinates, PublicDiscriminants, PublicPCA
from reticent.training.progress import Report

Array = npt.NDArray[np.float64]
Results = dict[str, Any]

ANSWERS = (1, 4)
CANDIDATES = 64
_MOST_ROWS = 6_000


RULES = {1: "the nearest other review", 10: "the tenth nearest"}
"""Radii: the distance to this review, in the median."""

KINDS = ("vector", "label")


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
        For each rule of the radius, then epsilon, then kind: what was released, the accuracy of the
        sentiment on held-out reviews, and the games.
    """
    train, labels = data.train_rows[:_MOST_ROWS], data.train_labels[:_MOST_ROWS]
    total = len(RULES) * len(epsilons) * len(KINDS)
    cell = Cells(folder / "linkage-cells", "linkage", total, report)
    results: Results = {}
    for place, rule in RULES.items():
        survey = survey_radius(train, radii=[], epsilons=[1.0], norm="l2", neighbour=place)
        radius = survey.rules[0].radius
        found: Results = {"radius": radius}
        for epsilon in epsilons:
            for kind in KINDS:
                measured = partial(_cell, kind, data, train, labels, radius, epsilon, seed, trials)
                found[f"{kind}-{epsilon:g}"] = cell(f"{kind}-{place}-{epsilon:g}", measured)
        results[rule] = found
    return results


def _cell(
    kind: str,
    data: Table,
    train: Array,
    labels: npt.NDArray[np.int64],
    radius: float,
    epsilon: float,
    seed: int,
    trials: int,
) -> Results:
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
    linked = [game for game in attack.games if game.name.startswith(f"which of {CANDIDATES}")]
    return {
        "released": name,
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


def markdown(runs: Sequence[Results]) -> str:
    """A table of all releases, with standard errors over seeds.

    Args:
        runs: what ``run`` gave for each seed.
    """
    means, errors = combined(runs)
    heads = [f"named, {count} answer(s) (cap)" for count in ANSWERS]
    lines = [
        "# Linkage of reviews",
        "",
        f"Sentence embeddings of reviews, 384 numbers. Mean over {len(runs)} seed(s) ± its",
        "standard error. Sentiment: right on held-out reviews. Named: someone who knows",
        f"{CANDIDATES} reviews, one of which was answered about, and goes by the exact",
        "probabilities of the mechanism, names it rightly; in brackets the proved cap on",
        f"everybody. Without an answer that is {1 / CANDIDATES:.3f}. Delta is 0.",
        "",
    ]
    for rule, found in means.items():
        lines += [
            f"## R = {found['radius']:.3f} (l2), the distance to {rule} in the median",
            "",
            f"| epsilon | released | sentiment right | {' | '.join(heads)} |",
            "|---|---|---|" + "---|" * len(heads),
        ]
        for key, cell in found.items():
            if key == "radius":
                continue
            error = errors[rule][key]
            games = " | ".join(
                f"{with_error(named, spread)} ({cap:.3f})"
                for named, spread, cap in zip(
                    cell["named"], error["named"], cell["caps"], strict=True
                )
            )
            lines.append(
                f"| {key.partition('-')[2]} | {cell['released']} | "
                f"{with_error(cell['accuracy'], error['accuracy'])} | {games} |"
            )
        lines.append("")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, fill the folder, print where the table is."""
    parser = seeded_parser("papers.posthoc.linkage", __doc__, runs="linkage", data=False)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 5.0, 20.0])
    chosen = parser.parse_args(arguments)
    data = load_imdb()

    def measure(seed: int, folder: Path, report: Report) -> Results:
        return run(data, folder, epsilons=chosen.epsilon, seed=seed, report=report)

    runs = every_seed(chosen, measure)
    leave(chosen, "linkage", runs, markdown(runs))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
