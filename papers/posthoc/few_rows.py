"""What ``PosthocEncoder(obfuscator="auto")`` takes where public rows are few:
``python -m papers.posthoc.few_rows``.

Three small tables that scikit-learn ships, scaled to [0, 1]: wine (178 rows), breast cancer (569),
and 600 written digits. Half of the rows are public, three tenths private, a fifth held out. Rows
within l-infinity .1 are neighbours, and delta is 0. Every rung is fitted alone, and "auto" of them
all. "One split" is the rung whose own score on calibration rows is best: what "auto" took before
it compared rungs across folds. A server, logistic regression, learns from four releases of each
private row and is scored on four of each held-out one, in nats about the label and in accuracy.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, minmax_scale

from papers.result_files import cached_result, write_result
from papers.seeds import combined, with_error
from reticent.systems import PosthocEncoder
from reticent.training.parts import PublicDiscriminants
from reticent.training.parts.ladder import RUNGS as NAMED

RADIUS, EPSILONS = 0.1, (2.0, 5.0)
TABLES = {"wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
_ROWS, _DRAWS = 600, 4
RUNGS = (*NAMED, "class means")
_WAYS = ("auto", "one split")
Labels = npt.NDArray[np.int64]


def served(
    encoder: PosthocEncoder, X: Any, y: Labels, cuts: tuple[Labels, Labels]
) -> dict[str, Any]:
    """Nats and accuracy of the server's model on held-out rows."""
    draws = [encoder.simulate(X, seed=draw).values for draw in range(_DRAWS)]
    private, held = (np.concatenate([draw[rows] for draw in draws]) for rows in cuts)
    known, truth = (np.tile(y[rows], _DRAWS) for rows in cuts)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(private, known)
    labels, counts = np.unique(known, return_counts=True)
    constant = np.tile(counts / counts.sum(), (len(truth), 1))
    chances = model.predict_proba(held)
    nats = log_loss(truth, constant, labels=labels) - log_loss(truth, chances, labels=labels)
    return {"nats": float(nats), "accuracy": float(model.score(held, truth))}


def measured(name: str, seed: int, epsilon: float) -> dict[str, Any]:
    """All rungs at one budget on one cut."""
    found = {rung: fitted(name, seed, epsilon, rung) for rung in (*RUNGS, "auto")}
    found["one split"] = found[max(RUNGS, key=lambda rung: float(found[rung]["score"]))]
    return found


def fitted(name: str, seed: int, epsilon: float, rung: str) -> dict[str, Any]:
    """One rung, or "auto"."""
    X, y = TABLES[name](return_X_y=True)
    X, order = minmax_scale(X), np.random.default_rng(seed).permutation(len(X))[:_ROWS]
    half, rest = len(order) // 2, len(order) * 4 // 5
    public = order[:half]
    start = time.process_time()
    encoder = PosthocEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=RADIUS,
        embedder="identity",
        obfuscator=PublicDiscriminants(shrinkage=0.9) if rung == "class means" else rung,
        random_state=seed,
    ).fit(X[public], y[public])
    seconds = time.process_time() - start
    plan = encoder.query_.plan
    scores = served(encoder, X, y, (order[half:rest], order[rest:]))
    return scores | {"fit, s": seconds, "score": plan.utility, "rung": plan.rung}


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many cuts are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--tables", nargs="+", choices=[*TABLES], default=[*TABLES])
    parser.add_argument("--folder", type=Path, default=Path("runs") / "posthoc-few-rows")
    chosen = parser.parse_args(arguments)
    names = (*_WAYS, *RUNGS)
    gained = "auto less best rung | auto less one split"
    columns = ("table", "epsilon", *names, gained, f"in accuracy: {gained}", "fit, s")
    lines = [f"| {' | '.join(columns)} |"]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    for epsilon in chosen.epsilons:
        for name in chosen.tables:
            cuts = [
                cached_result(
                    chosen.folder / f"{name}-{seed}-{epsilon:g}.json",
                    partial(measured, name, seed, epsilon),
                )
                for seed in range(chosen.seeds)
            ]
            means, errors = combined(cuts)
            cells = [with_error(means[way]["nats"], errors[way]["nats"]) for way in names]
            for score in ("nats", "accuracy"):
                best = max(RUNGS, key=lambda rung: means[rung][score])
                for other in (best, "one split"):
                    gains = [{"gain": cut["auto"][score] - cut[other][score]} for cut in cuts]
                    gain, error = combined(gains)
                    cells.append(with_error(gain["gain"], error["gain"], sign="+"))
            lines.append(
                f"| {name} | {epsilon:g} | {' | '.join(cells)} | {means['auto']['fit, s']:.1f} |"
            )
    print("\n".join(lines))
    write_result(chosen.folder / "table.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
