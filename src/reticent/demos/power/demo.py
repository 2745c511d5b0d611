"""One job from end to end: a table's rows to an untrusted server, what it learns from them, and
what an attacker does.

Everything is computed here. Releases are real ones, with noise from the operating system; raw
columns, which are only compared with, get plain noise from a seed.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, field
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer

from reticent.attacks.hijacking import HijackingConfig
from reticent.core.errors import InvalidParameter, UnknownName
from reticent.datasets.adult import load_adult, load_adult_sample
from reticent.datasets.table import Table, last_fifth_held_out
from reticent.demos.label_response import response_accuracy
from reticent.demos.power.attacks import Target, attack_results
from reticent.demos.power.baselines import raw_columns, raw_vector
from reticent.demos.power.rungs import Comparison
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.score_query import ScoreCodeQuery
from reticent.systems.power.servers import train_server
from reticent.systems.power.settings import VectorTraining
from reticent.tables.attributes import Numeric, OneHot
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema
from reticent.training.power.codes import best_local_accuracy
from reticent.training.power.published import PowerConfig
from reticent.training.progress import Report, silent

DEMONSTRATIONS = ("adult-sample", "adult", "breast-cancer")

SERVERS = ("boosted", "network")
"""Models that the server trains; the first is the one that charts show. None is chosen by its
accuracy.
"""

_CANCER_UPPER = (
    30,
    40,
    200,
    2600,
    0.2,
    0.4,
    0.5,
    0.25,
    0.4,
    0.1,
    3,
    5,
    25,
    550,
    0.04,
    0.15,
    0.4,
    0.06,
    0.1,
    0.04,
)
_CANCER_WORST = (40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25)

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PowerDemoSettings:
    """What the demonstration does; all of it is public.

    Attributes:
        epsilons: budgets of one released row, in rising order.
        radii: l2 radii of neighbours in encoded units; None is any two records.
        stored: epsilon and radius of the encoder that is stored; encoders of that epsilon are
            attacked, for every radius.
        outputs: numbers of released values that calibration may choose from.
        epochs: passes of training over the public rows.
        training_rows: at most so many rows of the training part; half of them are public, half are
            released.
        held_out_rows: at most so many held-out rows are released, scored and attacked.
        examples: records that are shown with what an attacker makes of them.
        score: the published mode's threshold: rows with a larger score are withheld. It is no
            privacy parameter.
        bandwidth_factor: published mode: multiple of Scott's bandwidth.
        power_config: settings of the published encoder.
        hijacking: settings of the attacker's decoder.
        seed: of training, of the cut and of the raw columns' noise.
    """

    epsilons: tuple[float, ...] = (1.0, 3.0, 5.0)
    radii: tuple[float | None, ...] = (None, 0.1)
    stored: tuple[float, float | None] = (3.0, None)
    outputs: tuple[int, ...] = (1,)
    epochs: int = 8
    training_rows: int = 12_000
    held_out_rows: int = 6_000
    examples: int = 3
    score: float = 3.0
    bandwidth_factor: float = 4.0
    power_config: PowerConfig = field(
        default_factory=lambda: PowerConfig(steps=30, batch_size=128, learning_rate=1e-3)
    )
    hijacking: HijackingConfig = field(default_factory=HijackingConfig)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stored[0] not in self.epsilons or self.stored[1] not in self.radii:
            raise InvalidParameter(
                f"stored={self.stored!r}: expected one of the epsilons and one of the radii"
            )


@dataclass(frozen=True, eq=False)
class PowerDemo:
    """What the demonstration made.

    Attributes:
        encoder: the fitted encoder of ``settings.stored``, ready to be stored.
        results: plain values for JSON.
        held_out: the held-out rows as a CSV file with a header, without labels, for trying the
            bundle.
    """

    encoder: PowerEncoder
    results: dict[str, Any]
    held_out: bytes


def demo_table(name: str) -> tuple[Table, TabularSchema]:
    """The table called ``name`` and its public schema.

    "adult-sample" comes with this package, "breast-cancer" with scikit-learn (569 rows of 30
    numbers, UCI, CC BY 4.0); "adult" is read from files, or downloaded.

    Raises:
        UnknownName: none of ``DEMONSTRATIONS``.
        DataUnavailable: Adult's files are missing and cannot be downloaded.
    """
    if name == "adult-sample":
        return load_adult_sample(), adult_schema()
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
    schema = TabularSchema(
        tuple(Numeric(column, 0, limit) for column, limit in zip(columns, upper, strict=True))
    )
    return table, schema


@dataclass(frozen=True, eq=False)
class _Parts:
    """Rows as in the table: public ones for encoders and attackers, private and held-out ones
    for release.
    """

    schema: TabularSchema
    settings: PowerDemoSettings
    public: npt.NDArray[Any]
    public_labels: Labels
    private: npt.NDArray[Any]
    private_labels: Labels
    held_out: npt.NDArray[Any]
    held_out_labels: Labels

    def accuracies(self, released: Array, tested: Array) -> dict[str, float]:
        """Of every server that learns from ``released`` private rows, on ``tested`` held-out
        ones.
        """
        seed = self.settings.seed
        return {
            name: float(
                (
                    train_server(name, released, self.private_labels, seed=seed).predict(tested)
                    == self.held_out_labels
                ).mean()
            )
            for name in SERVERS
        }

    def comparison(self) -> Comparison:
        """The same rows, for scoring simple methods beside ours."""
        return Comparison(
            schema=self.schema,
            public=self.schema.encode(self.public),
            private=self.schema.encode(self.private),
            held_out=self.schema.encode(self.held_out),
            public_labels=self.public_labels,
            private_labels=self.private_labels,
            held_out_labels=self.held_out_labels,
            seed=self.settings.seed,
        )

    def public_accuracy(self, name: str) -> float:
        """Of the server called ``name`` that learns from the public rows as they are, on held-out
        ones as they are.
        """
        server = train_server(
            name, self.schema.encode(self.public), self.public_labels, seed=self.settings.seed
        )
        named = server.predict(self.schema.encode(self.held_out))
        return float((named == self.held_out_labels).mean())


def run_demo(
    name: str, settings: PowerDemoSettings | None = None, *, report: Report = silent
) -> PowerDemo:
    """Encoders of public rows for every budget and neighbourhood, releases of the others, servers,
    and two attacks.

    Args:
        name: one of ``DEMONSTRATIONS``.
        settings: default: those for looking around.
        report: told after every stage.

    Raises:
        UnknownName: no such demonstration.
        DataUnavailable: its files are missing and cannot be downloaded.
    """
    chosen = PowerDemoSettings() if settings is None else settings
    table, schema = demo_table(name)
    parts = _cut(table, schema, chosen)
    cells = [(radius, epsilon) for radius in chosen.radii for epsilon in chosen.epsilons]
    comparison = parts.comparison()
    stages, done = len(cells) + 2, 0
    seconds: dict[str, float] = {}
    start = process_time()

    def finished(what: str) -> None:
        nonlocal start, done
        now, done = process_time(), done + 1
        seconds[what] = round(seconds.get(what, 0.0) + now - start, 2)
        start = now
        report("power demonstration", done, stages, float("nan"))

    unprotected = parts.accuracies(schema.encode(parts.private), schema.encode(parts.held_out))
    majority = float(np.bincount(parts.held_out_labels).max() / len(parts.held_out_labels))
    named = parts.public_accuracy(SERVERS[0])
    finished("servers without protection")
    rows: list[dict[str, Any]] = []
    attacked: dict[float | None, PowerEncoder] = {}
    for radius, epsilon in cells:
        encoder = PowerEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=radius,
            schema=schema,
            random_state=chosen.seed,
            training=VectorTraining(outputs=chosen.outputs, epochs=chosen.epochs),
        ).fit(parts.public, parts.public_labels)
        released, tested = encoder.release(parts.private), encoder.release(parts.held_out)
        pure = radius is None and table.classes == 2
        rows.append(
            {
                "neighbours": neighbours_name(radius),
                "radius": radius,
                "epsilon": epsilon,
                "mechanism": encoder.mechanism_,
                "values": int(np.asarray(released.values).shape[1]),
                "accuracy": parts.accuracies(
                    np.asarray(released.values), np.asarray(tested.values)
                ),
                "raw columns": _raw(parts, epsilon=epsilon, radius=radius),
                "scores": comparison.scores(
                    np.asarray(released.values),
                    np.asarray(tested.values),
                    epsilon=epsilon,
                    radius=radius,
                    channel=encoder.channel_
                    if isinstance(encoder.query_, ScoreCodeQuery)
                    else None,
                ),
                "label response": response_accuracy(named, epsilon=epsilon, classes=table.classes),
                "ceiling": best_local_accuracy(
                    epsilon, majority=majority, bayes=max(unprotected.values())
                )
                if pure
                else None,
                "sampler": released.receipt.sampler,
            }
        )
        if epsilon == chosen.stored[0]:
            attacked[radius] = encoder
        finished("encoders, releases, servers, raw columns")
    stored = attacked[chosen.stored[1]]
    attacks = attack_results(
        {neighbours_name(radius): encoder for radius, encoder in attacked.items()},
        Target(schema, parts.public, parts.private, parts.private_labels, parts.held_out),
        score=chosen.score,
        bandwidth_factor=chosen.bandwidth_factor,
        power_config=chosen.power_config,
        hijacking=chosen.hijacking,
        examples=chosen.examples,
        seed=chosen.seed,
    )
    finished("attacks")
    results = {
        "data": {
            "name": name,
            "origin": table.origin,
            "columns": len(table.columns),
            "classes": list(table.class_names),
            "public": len(parts.public),
            "private": len(parts.private),
            "held_out": len(parts.held_out),
        },
        "settings": {
            "epsilons": list(chosen.epsilons),
            "radii": list(chosen.radii),
            "stored": list(chosen.stored),
            "outputs": list(chosen.outputs),
            "epochs": chosen.epochs,
            "seed": chosen.seed,
            "server_shown": SERVERS[0],
            "power_config": asdict(chosen.power_config),
            "hijacking": asdict(chosen.hijacking),
        },
        "accuracy_without_protection": unprotected,
        "accuracy_by_chance": majority,
        "rows": rows,
        "attacks": attacks,
        "reach": _reach(parts),
        "guarantee": stored.guarantee.to_dict(),
        "cpu_seconds": seconds,
    }
    return PowerDemo(stored, results, _csv(schema, parts.held_out))


def neighbours_name(radius: float | None) -> str:
    """In words.

    Example:
        >>> neighbours_name(None), neighbours_name(0.1)
        ('any two records', 'within 0.1')
    """
    return "any two records" if radius is None else f"within {radius:g}"


def summary(results: dict[str, Any]) -> str:
    """The accuracies at the stored epsilon, in one line."""
    server, epsilon = SERVERS[0], results["settings"]["stored"][0]
    shares = [
        f"{row['accuracy'][server]:.1%} for {row['neighbours']}"
        for row in results["rows"]
        if row["epsilon"] == epsilon
    ]
    without = results["accuracy_without_protection"][server]
    return (
        f"held-out rows right at epsilon {epsilon:g}: {', '.join(shares)}; "
        f"{without:.1%} without protection"
    )


def _cut(table: Table, schema: TabularSchema, settings: PowerDemoSettings) -> _Parts:
    order = np.random.default_rng(settings.seed).permutation(len(table.train_rows))[
        : settings.training_rows
    ]
    public, private = order[: len(order) // 2], order[len(order) // 2 :]
    held = np.random.default_rng(settings.seed).permutation(len(table.test_rows))[
        : settings.held_out_rows
    ]
    return _Parts(
        schema,
        settings,
        table.train_rows[public],
        table.train_labels[public],
        table.train_rows[private],
        table.train_labels[private],
        table.test_rows[held],
        table.test_labels[held],
    )


def _raw(parts: _Parts, *, epsilon: float, radius: float | None) -> dict[str, float]:
    """Servers on raw columns under the same budget and neighbours; where there are two ways, the
    better one of each.
    """
    encoded = [parts.schema.encode(rows) for rows in (parts.private, parts.held_out)]
    seeds = (parts.settings.seed, parts.settings.seed + 1)
    ways = [
        [
            raw_columns(parts.schema, rows, epsilon=epsilon, seed=seed)
            for rows, seed in zip(encoded, seeds, strict=True)
        ]
    ]
    if radius is not None:
        ways.append(
            [
                raw_vector(rows, epsilon=epsilon, radius=radius, seed=seed)
                for rows, seed in zip(encoded, seeds, strict=True)
            ]
        )
    found = [parts.accuracies(*way) for way in ways]
    return {name: max(figures[name] for figures in found) for name in SERVERS}


def _reach(parts: _Parts) -> list[dict[str, Any]]:
    """For each radius how far it reaches: in the units of numeric columns, and compared with
    other records.
    """
    encoded = parts.schema.encode(parts.held_out)
    nearest = cdist(encoded, parts.schema.encode(parts.private)).min(axis=1)
    return [
        {
            "radius": radius,
            "numbers": {
                attribute.name: radius * (attribute.upper - attribute.lower)
                for attribute in parts.schema.attributes
                if isinstance(attribute, Numeric) and attribute.scale == "linear"
            },
            "share_with_a_private_row_within": float((nearest <= radius).mean()),
            "median_distance_to_nearest": float(np.median(nearest)),
        }
        for radius in parts.settings.radii
        if radius is not None
    ]


def _csv(schema: TabularSchema, rows: npt.NDArray[Any]) -> bytes:
    """The rows as a CSV file whose header names the schema's columns; whole numbers without a
    point.
    """
    names = [
        name
        for attribute in schema.attributes
        for name in (attribute.names if isinstance(attribute, OneHot) else (attribute.name,))
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(
        [int(value) if isinstance(value, float) and value.is_integer() else value for value in row]
        for row in rows.tolist()
    )
    return text.getvalue().encode()
