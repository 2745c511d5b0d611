"""A server's model of two tables, from public rows and codes: ``python -m papers.fleet.server``.

A server has some hundred public rows. Each other row is on a device of its own, which sends one
code. Codes are kinds of rows with their label, fitted on the public rows, at the largest local
epsilon by which all reports together have central epsilon .17 at delta 1e-6
(``reticent.fleet.planned_code``). Beside the model with reports stand the model of public rows
alone, the same learning without reports, and noisy gradients on the devices' records at the same
central epsilon, which need a trusted curator (``PublicStartClassifier``). Scores are mean log
losses, in nats, on held-out rows.

Adult has the income as its label, and its test part is held out. Forest Cover, a table of the pages
on records, has lodgepole pine against the rest, 100,000 devices and 20,000 held-out rows. Its codes
tell the elevation in six bands beside the label.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import log_loss
from typing_extensions import override

from papers.datasets import covertype_schema, load_adult, load_covertype
from papers.result_files import write_result
from papers.seeds import Results, combined, with_error
from reticent import CodeEncoder, PublicStartClassifier
from reticent.fleet import ServerModel, planned_code
from reticent.tables.attributes import Categorical
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema

EPSILON, DELTA = 0.17, 1e-6
PUBLIC = (200, 1000)
DEVICES, HELD = 100_000, 20_000
BANDS = (2400, 2600, 2800, 3000, 3200)
"""Metres between two bands of elevation."""

Rows = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Case:
    """A table whose last column is a label of two values.

    Attributes:
        title: name of the table.
        base: schema of the other columns.
        labels: values of the label, the one that is predicted last.
        targets: columns that codes tell.
        rows: training rows.
        held: held-out rows.
    """

    title: str
    base: TabularSchema
    labels: tuple[str, str]
    targets: tuple[str, ...]
    rows: Rows
    held: Rows

    @property
    def schema(self) -> TabularSchema:
        """The schema of all columns, of which the label is the first target."""
        return TabularSchema((*self.base.attributes, Categorical(self.targets[0], self.labels)))


def adult() -> Case:
    """Return Adult."""
    table, names = load_adult(), np.array(("low", "high"), dtype=object)
    rows, held = (
        np.column_stack([part.astype(object), names[labels]])
        for part, labels in (
            (table.train_rows, table.train_labels),
            (table.test_rows, table.test_labels),
        )
    )
    targets = ("income", "education", "marital-status")
    return Case("Adult", adult_schema(), ("low", "high"), targets, rows, held)


def forest_cover() -> Case:
    """Return Forest Cover with a column of bands of elevation."""
    table, labels = load_covertype(), ("other", "lodgepole")
    bands = tuple(f"band {place}" for place in range(len(BANDS) + 1))
    words, names = np.array(bands, dtype=object), np.array(labels, dtype=object)
    rows, held = (
        np.column_stack(
            [
                part[:most].astype(object),
                words[np.digitize(part[:most, 0], BANDS)],
                names[(classes[:most] == 1).astype(np.int64)],
            ]
        )
        for part, classes, most in (
            (table.train_rows, table.train_labels, DEVICES + max(PUBLIC)),
            (table.test_rows, table.test_labels, HELD),
        )
    )
    base = TabularSchema((*covertype_schema().attributes, Categorical("band", bands)))
    return Case("Forest Cover", base, labels, ("cover", "band"), rows, held)


class WithoutReports(ServerModel):
    """The same learning, from what the model itself says of the public rows."""

    @override
    def _likelier(self, nodes: Any, said: Any) -> Any:
        return said


def losses(case: Case, public: int, *, seed: int) -> Results:
    """Return both epsilons, codes, and the log loss by method, of one cut.

    Args:
        case: table.
        public: number of public rows.
        seed: seed of the cut and of the models.
    """
    order, base, held = (
        np.random.default_rng(seed).permutation(len(case.rows)),
        case.base,
        case.held,
    )
    known, private = case.rows[order[:public]], case.rows[order[public:]]
    planned = planned_code(
        CodeEncoder(epsilon=1.0, schema=case.schema, targets=case.targets, random_state=seed),
        known,
        devices=len(private),
        epsilon=EPSILON,
        delta=DELTA,
    )
    encoder, label = planned.encoder, case.targets[0]
    counts = encoder.release(private).values.sum(axis=0).astype(np.int64)
    found: Results = {
        "central epsilon": planned.central,
        "local epsilon": encoder.guarantee.epsilon,
        "codes": float(len(counts)),
    }
    right = held[:, -1] == case.labels[1]
    for kind in ("logistic", "boosting"):
        model = ServerModel(encoder, counts, label, model=kind, random_state=seed).fit(known)
        alone = model._new().fit(model._features(known), known[:, -1] == case.labels[1])
        again = WithoutReports(encoder, counts, label, model=kind, random_state=seed).fit(known)
        place = list(model.classes_).index(case.labels[1])
        found[f"{kind}, public rows alone"] = log_loss(
            right, alone.predict_proba(model._features(held))[:, 1]
        )
        found[f"{kind}, without reports"] = log_loss(right, again.predict_proba(held)[:, place])
        found[f"{kind}, with reports"] = log_loss(right, model.predict_proba(held)[:, place])
    trusted = PublicStartClassifier(
        epsilon=EPSILON,
        delta=DELTA,
        classes=(0, 1),
        rows="table",
        records=len(private),
    )
    trusted.fit(
        base.encode(private[:, :-1]),
        (private[:, -1] == case.labels[1]).astype(int),
        public_X=base.encode(known[:, :-1]),
        public_y=(known[:, -1] == case.labels[1]).astype(int),
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
    lines = [
        "# A server's model of two tables",
        "",
        (
            f"Printed by `python -m papers.fleet.server`, with standard errors over {given.seeds} "
            "cuts."
        ),
        f"Reports and noisy gradients have central epsilon {EPSILON} at delta {DELTA:g}.",
        "Scores are log losses on held-out rows, in nats.",
    ]
    stored: dict[str, Any] = {}
    for case in (adult(), forest_cover()):
        results = [
            combined([losses(case, public, seed=seed) for seed in range(given.seeds)])
            for public in PUBLIC
        ]
        heads = [
            f"{public:,} public rows, {len(case.rows) - public:,} devices" for public in PUBLIC
        ]
        lines += ["", f"## {case.title}", "", f"| | {' | '.join(heads)} |", "|---|---|---|"]
        for name in results[0][0]:
            cells = [with_error(mean[name], error[name], digits=4) for mean, error in results]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        stored[case.title] = {
            public: {"mean": mean, "error": error}
            for public, (mean, error) in zip(PUBLIC, results, strict=True)
        }
        print("\n".join(lines), flush=True)
    write_result(given.output / "server.json", json.dumps(stored, indent=2))
    write_result(given.output / "server.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
