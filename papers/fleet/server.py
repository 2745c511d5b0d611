"""A server's model of Adult, from public rows and codes: ``python -m papers.fleet.server``.

A server has some hundred public rows of Adult's training part. Each other row is on a device of its
own, which sends one code at local epsilon 4. Codes are kinds of rows with their income, fitted on
the public rows. The central epsilon is that of all devices at delta 1e-6. Beside the model with
reports stand the model of public rows alone, the same learning without reports, and noisy gradients
on the devices' records at the same central epsilon, which need a trusted curator
(``PublicStartClassifier``). Scores are mean log losses, in nats, on Adult's test part.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import log_loss
from typing_extensions import override

from papers.result_files import write_result
from papers.seeds import Results, combined, with_error
from reticent import CodeEncoder, PublicStartClassifier
from reticent.datasets import load_adult
from reticent.fleet import ServerModel
from reticent.fleet.rounds import channel_of
from reticent.tables.attributes import Categorical
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema

TARGETS = ("income", "education", "marital-status")
INCOMES = ("low", "high")
EPSILON, DELTA = 4.0, 1e-6
PUBLIC = (200, 1000)

Rows = npt.NDArray[Any]


class WithoutReports(ServerModel):
    """The same learning, from what the model itself says of the public rows."""

    @override
    def _likelier(self, nodes: Any, said: Any) -> Any:
        return said


def losses(rows: Rows, held: Rows, public: int, *, seed: int) -> Results:
    """Return central epsilon, codes, and the log loss by method, of one cut.

    Args:
        rows: training rows, with the income as their last column.
        held: test rows, likewise.
        public: number of public rows.
        seed: seed of the cut and of the models.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    known, private = rows[order[:public]], rows[order[public:]]
    base = adult_schema()
    schema = TabularSchema((*base.attributes, Categorical("income", INCOMES)))
    encoder = CodeEncoder(epsilon=EPSILON, schema=schema, targets=TARGETS, random_state=seed)
    encoder.fit(known)
    counts = encoder.release(private).values.sum(axis=0).astype(np.int64)
    central = channel_of(encoder).epsilon(devices=len(private), delta=DELTA)
    found: Results = {"central": central, "codes": float(len(counts))}
    right = held[:, -1] == "high"
    for kind in ("logistic", "boosting"):
        model = ServerModel(encoder, counts, "income", model=kind, random_state=seed).fit(known)
        alone = model._new().fit(model._features(known), known[:, -1] == "high")
        again = WithoutReports(encoder, counts, "income", model=kind, random_state=seed).fit(known)
        high = list(model.classes_).index("high")
        found[f"{kind}, public rows alone"] = log_loss(
            right, alone.predict_proba(model._features(held))[:, 1]
        )
        found[f"{kind}, without reports"] = log_loss(right, again.predict_proba(held)[:, high])
        found[f"{kind}, with reports"] = log_loss(right, model.predict_proba(held)[:, high])
    trusted = PublicStartClassifier(
        epsilon=central,
        delta=DELTA,
        classes=(0, 1),
        rows="table",
        records=len(private),
    )
    trusted.fit(
        base.encode(private[:, :-1]),
        (private[:, -1] == "high").astype(int),
        public_X=base.encode(known[:, :-1]),
        public_y=(known[:, -1] == "high").astype(int),
    )
    found["trusted curator: noisy gradients"] = log_loss(
        right, np.asarray(trusted.predict_proba(base.encode(held[:, :-1])))[:, 1]
    )
    return found


def main() -> None:
    """Print and store the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("docs/results/fleet"))
    given = parser.parse_args()
    table, names = load_adult(), np.array(INCOMES, dtype=object)
    rows, held = (
        np.column_stack([part.astype(object), names[labels]])
        for part, labels in (
            (table.train_rows, table.train_labels),
            (table.test_rows, table.test_labels),
        )
    )
    results = {}
    for public in PUBLIC:
        runs = [losses(rows, held, public, seed=seed) for seed in range(given.seeds)]
        results[public] = combined(runs)
    means = {public: mean for public, (mean, _) in results.items()}
    lines = [
        "# A server's model of Adult",
        "",
        (
            f"Printed by `python -m papers.fleet.server`, with standard errors over {given.seeds} "
            "cuts."
        ),
        "Scores are log losses on Adult's test part, in nats.",
        "",
        "| | " + " | ".join(f"{public:,} public rows" for public in PUBLIC) + " |",
        "|---|" + "---|" * len(PUBLIC),
    ]
    for name in means[PUBLIC[0]]:
        cells = [with_error(mean[name], error[name], digits=4) for mean, error in results.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    print("\n".join(lines))
    stored = {str(public): {"mean": m, "error": e} for public, (m, e) in results.items()}
    write_result(given.output / "server.json", json.dumps(stored, indent=2))
    write_result(given.output / "server.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
