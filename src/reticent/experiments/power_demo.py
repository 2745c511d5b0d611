"""One job from end to end: a table's rows to an untrusted server, under three adjacencies, and the published mode inverted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer

from reticent.attacks.inversion import invert, relative_errors
from reticent.core.errors import UnknownName
from reticent.datasets.adult import load_adult
from reticent.datasets.table import Table, last_fifth_held_out
from reticent.systems.power_encoder import PowerEncoder
from reticent.systems.power_published import PublishedQuery
from reticent.systems.power_servers import train_server
from reticent.systems.tabular import Numeric, TabularSchema
from reticent.systems.tabular_schemas import adult_schema
from reticent.training.power import PowerConfig
from reticent.training.progress import Report

DEMONSTRATIONS = ("breast-cancer", "adult")

_SERVER = "boosted"
_ADULT_ROWS = 12_000
_SCORE = 10.0  # no privacy parameter: rows above it are withheld in published mode
_CANCER_UPPER = (30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1, 3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.1, 0.04)
_CANCER_WORST = (40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25)


@dataclass(frozen=True, eq=False)
class PowerDemo:
    """What the demonstration made.

    Attributes:
        encoder: the fitted encoder of the most useful release, ready to be stored.
        results: plain values for JSON.
    """

    encoder: PowerEncoder
    results: dict[str, Any]


def demo_table(name: str) -> tuple[Table, TabularSchema]:
    """The table called ``name`` and its public schema.

    "breast-cancer" comes with scikit-learn (569 rows of 30 numbers, UCI, CC BY 4.0); "adult" is read from files.

    Raises:
        UnknownName: none of ``DEMONSTRATIONS``.
        DataUnavailable: Adult's files are missing and cannot be downloaded.
    """
    if name == "adult":
        return load_adult(), adult_schema()
    if name != "breast-cancer":
        raise UnknownName(f"data={name!r}: expected one of {', '.join(DEMONSTRATIONS)}")
    bunch = load_breast_cancer()
    rows, labels = np.asarray(bunch.data), np.asarray(bunch.target, dtype=np.int64)
    columns = tuple(str(column) for column in bunch.feature_names)
    train, test = last_fifth_held_out(len(rows))
    table = Table(
        name,
        columns,
        rows[train],
        labels[train],
        rows[test],
        labels[test],
        ("malignant", "benign"),
        "scikit-learn load_breast_cancer (UCI Breast Cancer Wisconsin, CC BY 4.0)",
    )
    upper = (*_CANCER_UPPER, *_CANCER_WORST)
    schema = TabularSchema(tuple(Numeric(column, 0, limit) for column, limit in zip(columns, upper, strict=True)))
    return table, schema


def run_demo(name: str, *, seed: int, report: Report) -> PowerDemo:
    """Encoders for three adjacencies on public rows, releases of the others, a server's accuracy, and an inversion.

    The budget is for looking around: epsilon 3 per record. Noise of releases comes from the operating system.

    Args:
        name: one of ``DEMONSTRATIONS``.
        seed: of training.
        report: told after every stage.
    """
    table, schema = demo_table(name)
    order = np.random.default_rng(seed).permutation(len(table.train_rows))[:_ADULT_ROWS]
    public, private = order[: len(order) // 2], order[len(order) // 2 :]
    held = np.random.default_rng(seed).permutation(len(table.test_rows))[: _ADULT_ROWS // 2]
    test_rows, test_labels = table.test_rows[held], table.test_labels[held]
    private_rows, labels = table.train_rows[private], table.train_labels[private]

    def accuracy(released: npt.NDArray[Any], tested: npt.NDArray[Any]) -> float:
        return float((train_server(_SERVER, released, labels, seed=seed).predict(tested) == test_labels).mean())

    results: dict[str, Any] = {
        "data": name,
        "origin": table.origin,
        "epsilon": 3.0,
        "rows": {"public": len(public), "private": len(private), "held out": len(held)},
        "majority": float(np.bincount(test_labels).max() / len(test_labels)),
        "not private": accuracy(schema.encode(private_rows), schema.encode(test_rows)),
        "releases": {},
    }
    best: tuple[float, PowerEncoder] | None = None
    radii = {"any two records": None, "within 0.25": 0.25, "within 0.1": 0.1}
    for index, (neighbours, radius) in enumerate(radii.items()):
        encoder = PowerEncoder(epsilon=3.0, delta=0.0, radius=radius, schema=schema, random_state=seed)
        encoder.fit(table.train_rows[public], table.train_labels[public])
        value = accuracy(encoder.release(private_rows).values, encoder.release(test_rows).values)
        results["releases"][neighbours] = {"law": encoder.considered_[0].law, "accuracy": value}
        best = (value, encoder) if best is None or value > best[0] else best
        report("power demonstration", index + 1, len(radii) + 1, 1.0 - value)
    published = PowerEncoder(
        epsilon=_SCORE,
        delta=0.05,
        radius=None,
        schema=schema,
        mode="published",
        power_config=PowerConfig(steps=30, batch_size=128, learning_rate=1e-3),
        bandwidth_factor=4.0,
        random_state=seed,
    ).fit(private_rows, labels)
    answer = published.release(test_rows[:500])
    query = published.query_
    assert isinstance(query, PublishedQuery)
    errors = relative_errors(invert(query.network, answer.values), schema.encode(test_rows[:500]))[~answer.withheld]
    results["published mode"] = {
        "released": float(1 - answer.withheld.mean()),
        "inverted to 1e-3": float((errors < 1e-3).mean()) if len(errors) else None,
    }
    report("power demonstration", len(radii) + 1, len(radii) + 1, float("nan"))
    assert best is not None
    return PowerDemo(best[1], results)


def summary(results: dict[str, Any]) -> str:
    """The results as a few lines of Markdown."""
    lines = [
        f"# Table rows to an untrusted server: {results['data']}",
        "",
        (
            f"{results['origin']}. Encoders learn from {results['rows']['public']} public rows; the server learns from "
            f"{results['rows']['private']} released rows and is scored on {results['rows']['held out']} released held-out rows."
        ),
        "",
        f"| neighbours, epsilon {results['epsilon']:g} per record | law | accuracy |",
        "|---|---|---|",
        f"| none: rows sent as they are | - | {results['not private']:.3f} |",
    ]
    lines += [f"| {name} | {found['law']} | {found['accuracy']:.3f} |" for name, found in results["releases"].items()]
    lines += [f"| nothing sent (majority) | - | {results['majority']:.3f} |", ""]
    published = results["published mode"]
    inverted = "none" if published["inverted to 1e-3"] is None else f"{published['inverted to 1e-3']:.1%}"
    lines.append(
        f"Published mode released {published['released']:.1%} of rows (score at most {_SCORE:g}); of those, {inverted} came back "
        "from the embedding to three digits, with the encoder in hand."
    )
    return "\n".join(lines) + "\n"
