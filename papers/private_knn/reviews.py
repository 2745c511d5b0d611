"""Film reviews labelled by their neighbours: ``python -m papers.private_knn.reviews``.

Individual budgets beside Private-kNN on IMDB embeddings, at the same total and on the same queries,
the first of the held-out fifth. The first 2,000 reviews of the rest are public, with their labels:
they centre the embeddings, choose all settings, and teach the rival that needs no private review.
Means over three seeds, with standard errors.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from papers.datasets import load_imdb
from papers.result_files import write_result
from reticent.core.arrays import Integers
from reticent.systems import Features, IndividualKNNClassifier, PrivateKNNClassifier

Array = npt.NDArray[np.float64]

DELTA = 1e-5
PUBLIC = 2000
SEEDS = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class Reviews:
    """Embeddings of the three parts, with labels; those of ``asked`` are for scoring only."""

    private: Array
    labels: Integers
    public: Array
    public_labels: Integers
    asked: Array
    truth: Integers


def reviews(queries: int, *, centred: bool) -> Reviews:
    """The parts.

    Args:
        queries: how many are asked.
        centred: whether the mean of the public embeddings is taken off, and lengths made 1 again.
    """
    data = load_imdb()
    train, asked = data.train_rows.astype(np.float64), data.test_rows[:queries].astype(np.float64)
    if centred:
        middle = train[:PUBLIC].mean(axis=0)
        train, asked = _of_length_one(train - middle), _of_length_one(asked - middle)
    return Reviews(
        train[PUBLIC:],
        data.train_labels[PUBLIC:],
        train[:PUBLIC],
        data.train_labels[:PUBLIC],
        asked,
        data.test_labels[:queries],
    )


def rows(parts: Reviews, epsilon: float) -> dict[str, list[float]]:
    """What each way gets right at the total, for each seed of its noise."""
    total: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "classes": [0, 1],
        "records": len(parts.private),
        "queries": len(parts.asked),
    }
    each = IndividualKNNClassifier.tuned(parts.public, parts.public_labels, **total)
    each.fit(parts.private, parts.labels, public_X=parts.public)
    sampled = PrivateKNNClassifier.tuned(
        parts.public, parts.public_labels, **total, features=Features(range=(-1.0, 1.0))
    ).fit(parts.private, parts.labels)
    return {
        name: [
            float((model.simulate(parts.asked, seed=seed).values == parts.truth).mean())
            for seed in SEEDS
        ]
        for name, model in (("individual budgets", each), ("Private-kNN", sampled))
    }


def public_rows_alone(parts: Reviews) -> float:
    """Logistic regression on the labelled public reviews; no private one, no noise."""
    rival = GridSearchCV(LogisticRegression(max_iter=500), {"C": np.logspace(-2, 3, 6)}, cv=5)
    rival.fit(parts.public, parts.public_labels)
    return float((rival.predict(parts.asked) == parts.truth).mean())


def table(
    queries: int, *, centred: bool, alone: float, found: list[tuple[float, str, list[float]]]
) -> str:
    """The page as Markdown.

    Args:
        queries: how many were asked.
        centred: see ``reviews``.
        alone: what public rows alone get right.
        found: epsilon, way, and what is right for each seed.
    """
    command = "python -m papers.private_knn.reviews"
    command += "" if centred else " --as-they-are"
    totals = " ".join(f"{epsilon:g}" for epsilon in dict.fromkeys(row[0] for row in found))
    lines = [
        "# Film reviews labelled by their neighbours",
        "",
        f"`{command} --queries {queries} --epsilons {totals}`",
        "",
        f"IMDB embeddings{', centred by public ones' if centred else ''}; delta {DELTA:g}; one",
        f"record more or less; the first {queries} held-out reviews, each asked once, which",
        f"nothing learned from; {PUBLIC} labelled public reviews choose all settings.",
        "",
        "| epsilon | way | right | standard error |",
        "|---|---|---|---|",
        f"| none | public rows alone | {alone:.4f} | no noise |",
    ]
    for epsilon, name, right in found:
        error = np.std(right, ddof=1) / len(right) ** 0.5
        lines.append(f"| {epsilon:g} | {name} | {np.mean(right):.4f} | {error:.4f} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Prints the table and writes it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--as-they-are", action="store_true", help="embeddings not centred")
    parser.add_argument("--out", type=Path, default=Path("runs/knn"))
    read = parser.parse_args(arguments)
    centred = not read.as_they_are
    parts = reviews(read.queries, centred=centred)
    found = [
        (epsilon, name, right)
        for epsilon in read.epsilons
        for name, right in rows(parts, epsilon).items()
    ]
    text = table(read.queries, centred=centred, alone=public_rows_alone(parts), found=found)
    write_result(read.out / ("reviews.md" if centred else "reviews-as-they-are.md"), text)
    print(text)


def _of_length_one(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


if __name__ == "__main__":
    main()
