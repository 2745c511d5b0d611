"""Film reviews labelled by their neighbours: ``python -m papers.private_knn.reviews``.

Individual budgets beside Private-kNN on IMDB embeddings, at the same total and on the same queries,
the first of the held-out fifth. The first 2,000 reviews of the rest are public, with their labels:
they centre the embeddings and choose all settings. Means over three seeds, with standard errors.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from reticent.datasets import load_imdb
from reticent.systems import IndividualKNNClassifier, PrivateKNNClassifier

DELTA = 1e-5
PUBLIC = 2000
SEEDS = (0, 1, 2)


def row(epsilon: float, queries: int, *, centred: bool) -> dict[str, list[float]]:
    """What both get right, for each seed.

    Args:
        epsilon: the total of each.
        queries: how many are asked.
        centred: whether the mean of the public embeddings is taken off, and lengths made 1 again.
    """
    data = load_imdb()
    train, test = data.train_rows.astype(np.float64), data.test_rows.astype(np.float64)
    if centred:
        middle = train[:PUBLIC].mean(axis=0)
        train, test = train - middle, test - middle
        train /= np.linalg.norm(train, axis=1, keepdims=True)
        test /= np.linalg.norm(test, axis=1, keepdims=True)
    public, public_labels = train[:PUBLIC], data.train_labels[:PUBLIC]
    private, labels = train[PUBLIC:], data.train_labels[PUBLIC:]
    asked, truth = test[:queries], data.test_labels[:queries]
    total: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": DELTA,
        "classes": [0, 1],
        "records": len(private),
        "queries": len(asked),
    }
    each = IndividualKNNClassifier.tuned(public, public_labels, **total)
    each.fit(private, labels, public_X=public)
    sampled = PrivateKNNClassifier.tuned(
        public, public_labels, **total, feature_range=(-1.0, 1.0)
    ).fit(private, labels)
    return {
        name: [float((model.simulate(asked, seed=seed).values == truth).mean()) for seed in SEEDS]
        for name, model in (("individual budgets", each), ("Private-kNN", sampled))
    }


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--as-they-are", action="store_true", help="embeddings not centred")
    read = parser.parse_args(arguments)
    print("| epsilon | way | right | standard error |\n|---|---|---|---|")
    for epsilon in read.epsilons:
        for name, right in row(epsilon, read.queries, centred=not read.as_they_are).items():
            error = np.std(right, ddof=1) / len(right) ** 0.5
            print(f"| {epsilon:g} | {name} | {np.mean(right):.4f} | {error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
