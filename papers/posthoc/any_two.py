"""Vectors for any two inputs: ``python -m papers.posthoc.any_two``.

Sentence embeddings of reviews (``RETICENT_DATA``), 384 numbers, are released with no radius: any
two of them are neighbours. Each way is fitted on 16,000 public reviews, without labels and with
them. Scores are of 4,000 held-out ones: the share of their variance that the released vector
explains, and the accuracy of a linear server that learns from 16,000 released vectors. Beside them
stand PrivUnit as published, ``CodeEncoder`` for both, and its code for the vector alone.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from papers.datasets import load_imdb
from papers.posthoc.unit_vectors import priv_unit
from papers.result_files import cached_result, write_result
from papers.seeds import combined, with_error
from reticent.core.arrays import Array
from reticent.systems import Calibration, CodeEncoder, ExplainedVariance, PosthocEncoder
from reticent.training.parts import PublicParts, PublicPCA, PublicSigns

EPSILONS = (2.0, 5.0, 10.0, 20.0)
_PUBLIC, _HELD = 16_000, 4_000
_COMPONENTS = (4, 16, 64)
Labels = npt.NDArray[np.int64]


def scores(released: tuple[Array, Array], rows: Array, labels: tuple[Labels, Labels]) -> Any:
    """Explained variance of ``rows`` and accuracy, of what was released about public and held-out
    reviews.
    """
    learnt, held = released
    lost = ((rows - held) ** 2).sum() / ((rows - rows.mean(axis=0)) ** 2).sum()
    server = LogisticRegression(max_iter=200).fit(learnt, labels[0])
    return {"explained": 1.0 - lost, "accuracy": float(server.score(held, labels[1]))}


def read(values: Array, rows: Array) -> Array:
    """The best linear reading of ``rows`` from noisy values, with its weights."""
    inputs = np.column_stack([values, np.ones(len(values))])
    return np.asarray(np.linalg.lstsq(inputs, rows, rcond=None)[0])


def published(public: Array, held: Array, *, size: int, epsilon: float, seed: int) -> list[Array]:
    """What PrivUnit tells of public and held-out rows: of their first principal components, as unit
    vectors, with the best linear reading of the rows.
    """
    axes = PCA(size, random_state=seed).fit(public)
    told = []
    for place, rows in enumerate((public, held)):
        values = axes.transform(rows)
        units = values / np.linalg.norm(values, axis=1, keepdims=True)
        told.append(priv_unit(units, epsilon=epsilon, seed=2 * seed + place))
    reading = read(told[0], public)
    return [np.column_stack([part, np.ones(len(part))]) @ reading for part in told]


def measured(seed: int, epsilon: float) -> dict[str, Any]:
    """All ways at one budget, on one cut."""
    table = load_imdb()
    points = np.concatenate([table.train_rows, table.test_rows]).astype(np.float64)
    labels = np.concatenate([table.train_labels, table.test_labels])
    order = np.random.default_rng(seed).permutation(len(points))[: _PUBLIC + _HELD]
    public, held = points[order[:_PUBLIC]], points[order[_PUBLIC:]]
    truth = (labels[order[:_PUBLIC]], labels[order[_PUBLIC:]])
    given: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 0.0,
        "radius": None,
        "embedder": "identity",
    }
    given |= {"calibration": Calibration(head_epochs=1), "random_state": seed}
    ways: dict[str, tuple[Any, Any]] = {
        "noise on principal components": (PublicPCA(), None),
        "parts": (PublicParts(), None),
        "signs": (PublicSigns(), None),
        "signs, 4, of labels first": (PublicSigns(outputs=4), truth[0]),
        "signs, 2, of labels first": (PublicSigns(outputs=2), truth[0]),
    }
    found: dict[str, Any] = {}
    for name, (part, known) in ways.items():
        encoder = PosthocEncoder(obfuscator=part, **given).fit(public, known)
        told = [encoder.simulate(rows, seed=seed).values for rows in (public, held)]
        if encoder.query_.means is None:
            reading = read(told[0], public)
            told = [np.column_stack([part, np.ones(len(part))]) @ reading for part in told]
        found[name] = scores((told[0], told[1]), held, truth)
    for size in _COMPONENTS:
        told = published(public, held, size=size, epsilon=epsilon, seed=seed)
        name = f"PrivUnit on {size} principal components"
        found[name] = scores((told[0], told[1]), held, truth)
    for name, targets in (
        ("CodeEncoder, label and vector", ("target", ExplainedVariance())),
        ("CodeEncoder, vector", (ExplainedVariance(),)),
    ):
        code = CodeEncoder(epsilon=epsilon, targets=targets, nodes=64, random_state=seed)
        code.fit(public, truth[0])
        means = code.posterior("explained variance")
        told = [code.simulate(rows, seed=seed).values @ means for rows in (public, held)]
        found[name] = scores((told[0], told[1]), held, truth)
        if "target" in targets:
            guess = code.simulate(held, seed=seed).values @ code.posterior("target")
            found[name]["accuracy"] = float((guess.argmax(axis=1) == truth[1]).mean())
    return found


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--folder", type=Path, default=Path("runs") / "posthoc-any-two")
    chosen = parser.parse_args(arguments)
    head = " | ".join(f"epsilon {epsilon:g}" for epsilon in chosen.epsilons)
    tables = {}
    for epsilon in chosen.epsilons:
        cuts = [
            cached_result(
                chosen.folder / f"{seed}-{epsilon:g}.json", partial(measured, seed, epsilon)
            )
            for seed in range(chosen.seeds)
        ]
        tables[epsilon] = combined(cuts)
    lines = []
    for score in ("explained", "accuracy"):
        lines += ["", f"| {score} | {head} |", "|---" * (len(tables) + 1) + "|"]
        for name in next(iter(tables.values()))[0]:
            cells = [with_error(m[name][score], e[name][score]) for m, e in tables.values()]
            lines.append(f"| {name} | {' | '.join(cells)} |")
    text = "\n".join(lines).strip()
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
