"""One code for five targets of Adult, any two records: ``python -m papers.power.targets``.

``CodeEncoder`` is fitted on public rows of each cut. What it is worth on held-out rows is an
expectation over its own noise, exactly: a server reads each code by the public posterior table. The
least share is that of the five in what the same nodes and posterior tables give the target that is
served alone, at the whole epsilon, on the same rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.power.code_splits import Split, split
from papers.result_files import write_result
from papers.seeds import combined
from reticent.systems import CodeEncoder
from reticent.systems.scores import prediction_scores
from reticent.tables.frames import NamedRows

EPSILONS = (1.0, 2.0, 4.0, 8.0)
TARGETS = ("income", "sex", "bachelor", "hours > 40", "married")

Rows = npt.NDArray[Any]


def labels_of(rows: Rows, income: Rows, names: tuple[str, ...]) -> NamedRows:
    """The five targets of Adult's rows."""

    def column(name: str) -> Rows:
        return np.asarray(rows[:, names.index(name)])

    table = np.column_stack(
        [
            income,
            column("sex"),
            column("education-num").astype(float) >= 13,
            column("hours-per-week").astype(float) > 40,
            np.char.startswith(column("marital-status").astype(str), "Married"),
        ]
    )
    return NamedRows(table.astype(str), TARGETS)


def scores_of(encoder: CodeEncoder, rows: Rows, labels: NamedRows) -> dict[str, dict[str, float]]:
    """Nats and AUC of each target on rows, exactly over the noise of the release."""
    chances, found = encoder.exact(rows), {}
    for place, name in enumerate(labels.columns):
        if name not in encoder.targets_:
            continue
        table = encoder.posterior(name)
        known = encoder.classes_[encoder.targets_.index(name)].astype(str).tolist()
        truth = np.array([known.index(value) for value in labels.values[:, place].tolist()])
        weights = np.stack([chances[truth == code].sum(axis=0) for code in range(len(known))], 1)
        seen = weights.sum(axis=0) > 0  # a schema may have words that no row holds
        table = table[:, seen] / table[:, seen].sum(axis=1, keepdims=True)
        scores = prediction_scores(table, weights[:, seen])
        found[name] = {"nats": scores.information, "auc": scores.auc}
    return found


def cut_results(cut: Split, epsilon: float) -> dict[str, float]:
    """Results of one cut: the least share on held-out and on public rows, AUCs, CPU seconds."""
    names = tuple(cut.schema.column_names)
    public = labels_of(*cut.public, names)
    held = labels_of(*cut.test, names)

    def fitted(targets: tuple[str, ...]) -> CodeEncoder:
        settings: dict[str, Any] = {"schema": cut.schema, "random_state": cut.seed}
        given = NamedRows(public.values[:, [0, 2, 3, 4]], ("income", *TARGETS[2:]))
        return CodeEncoder(epsilon=epsilon, targets=targets, **settings).fit(cut.public[0], given)

    start = time.process_time()
    encoder = fitted(TARGETS)
    seconds = time.process_time() - start
    found = scores_of(encoder, cut.test[0], held)
    shares = []
    for name in TARGETS:
        alone = scores_of(fitted((name,)), cut.test[0], held)[name]["nats"]
        shares.append(found[name]["nats"] / alone)
    results = {"least share": min(shares), "on public rows": encoder.share_, "seconds": seconds}
    results |= {f"share {name}": share for name, share in zip(TARGETS, shares, strict=True)}
    results |= {f"auc {name}": found[name]["auc"] for name in TARGETS}
    return results | {"which of 64": encoder.query_.crowd[0]}


def main(arguments: list[str] | None = None) -> None:
    """Read the command line, and print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=3, help="how many cuts are averaged")
    parser.add_argument("--epsilons", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--folder", type=Path, default=Path("runs") / "power-targets")
    chosen = parser.parse_args(arguments)
    if chosen.seeds < 1:
        parser.error("--seeds: expected at least 1")
    lines: list[str] = []
    for epsilon in chosen.epsilons:
        cuts = []
        for seed in range(chosen.seeds):
            path = chosen.folder / f"adult-{seed}-{epsilon:g}.json"
            if not path.is_file():
                cut = split("adult", seed=seed, tuning=False)
                write_result(path, json.dumps(cut_results(cut, epsilon)))
            cuts.append(json.loads(path.read_text(encoding="utf-8")))
        means, errors = combined(cuts)
        if not lines:
            lines += [f"| epsilon | {' | '.join(means)} |", "|---" * (len(means) + 1) + "|"]
        cells = [f"{means[name]:.3f} ± {errors[name]:.3f}" for name in means]
        lines.append(f"| {epsilon:g} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    text = "\n".join(lines)
    write_result(chosen.folder / "table.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
