"""The power demonstration: rows of a table to an untrusted server, what it learns from them, and
what an attacker makes of them.

Releases are real ones, with noise from the operating system. Raw columns and the other rivals,
which nobody releases here, get plain noise from a seed.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.attacks.hijacking import (
    HijackingConfig,
    hijacking_quality,
    majority_guess,
    train_hijacker,
)
from reticent.core.arrays import Array
from reticent.core.errors import UnknownName
from reticent.datasets.adult import load_adult, load_adult_sample
from reticent.datasets.table import Table, last_fifth_held_out
from reticent.demos.baselines import clear_columns, raw_columns, raw_vector, response_accuracy
from reticent.demos.page import Chart, Demonstration, Fact, Section, line
from reticent.demos.page import Table as Figures
from reticent.noise import SeededSampler
from reticent.pages.line_chart import Level, Series
from reticent.pages.parts import percent
from reticent.systems.power.channels import randomised_response
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.protection import LARGEST_SHARED_RADIUS
from reticent.systems.power.query import PROTECTED
from reticent.systems.power.score_query import ScoreCodeQuery
from reticent.systems.power.servers import train_server
from reticent.systems.power.settings import VectorTraining
from reticent.systems.scores import prediction_scores
from reticent.tables.attributes import Numeric, OneHot
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema
from reticent.training.power.codes import best_local_accuracy
from reticent.training.progress import Report, silent

DATA = ("adult-sample", "adult", "breast-cancer")

OURS = "ours"
RESPONSE = "booster + randomised response, at prevalence"
RAW = ("raw columns", "raw columns, one noise vector")
NOTHING = "nothing"
"""What an attacker sees, beside the kinds of neighbours of our encoders."""

_CANCER = (
    *(30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.25, 0.4, 0.1),
    *(3, 5, 25, 550, 0.04, 0.15, 0.4, 0.06, 0.1, 0.04),
    *(40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25),
)
"""Public upper ends of the columns of breast-cancer: mean, error and worst of ten measures."""
_CLOSE = 0.01

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the demonstration does; all of it is public.

    Attributes:
        epsilons: budgets of one released row, in rising order.
        radii: l2 radii of neighbours in encoded units; None is any two records.
        stored: epsilon and radius of the encoder that is stored, among those above; encoders of
            that epsilon are attacked, for every radius.
        epochs: passes of training over the public rows.
        training_rows: at most so many rows of the training part; half of them are public, half are
            released.
        held_out_rows: at most so many held-out rows are released, scored and attacked.
        hijacking: settings of the attacker's decoder.
        seed: of training, of the cut and of the rivals' noise.
    """

    epsilons: tuple[float, ...] = (1.0, 3.0, 5.0)
    radii: tuple[float | None, ...] = (None, 0.1)
    stored: tuple[float, float | None] = (3.0, None)
    epochs: int = 8
    training_rows: int = 12_000
    held_out_rows: int = 6_000
    hijacking: HijackingConfig = field(default_factory=HijackingConfig)
    seed: int = 0


def demo_table(name: str) -> tuple[Table, TabularSchema]:
    """Return the table called ``name`` and its public schema.

    "adult-sample" comes with this package, "breast-cancer" with scikit-learn (569 rows of 30
    numbers, UCI, CC BY 4.0); "adult" is read from files, or downloaded.

    Raises:
        UnknownName: none of ``DATA``.
        DataUnavailable: Adult's files are missing and cannot be downloaded.
    """
    if name == "adult-sample":
        return load_adult_sample(), adult_schema()
    if name == "adult":
        return load_adult(), adult_schema()
    if name != "breast-cancer":
        raise UnknownName(f"data={name!r}: expected one of {', '.join(DATA)}")
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
    numbers = (Numeric(column, 0, limit) for column, limit in zip(columns, _CANCER, strict=True))
    return table, TabularSchema(tuple(numbers))


class Parts:
    """Rows of a table: public ones for encoders and attackers, private and held-out ones for
    release. Servers learn from what is made of the private ones and are scored on the held-out
    ones, by accuracy, balanced accuracy, AUC and nats.

    Attributes:
        schema: public.
        public, private, held_out: encoded rows.
        public_labels, private_labels, held_out_labels: their labels.
        rows: the same three sets as in the table.
        seed: of servers and of the rivals' noise.
    """

    def __init__(self, table: Table, schema: TabularSchema, settings: Settings) -> None:
        self.schema, self.seed = schema, settings.seed
        order = np.random.default_rng(self.seed).permutation(len(table.train_rows))
        order = order[: settings.training_rows]
        public, private = order[: len(order) // 2], order[len(order) // 2 :]
        held = np.random.default_rng(self.seed).permutation(len(table.test_rows))
        held = held[: settings.held_out_rows]
        self.rows = table.train_rows[public], table.train_rows[private], table.test_rows[held]
        self.public, self.private, self.held_out = (schema.encode(rows) for rows in self.rows)
        self.public_labels, self.private_labels = (
            table.train_labels[public],
            table.train_labels[private],
        )
        self.held_out_labels = table.test_labels[held]

    def learnt(
        self, released: Array, tested: Array, channel: Array | None = None
    ) -> dict[str, float]:
        """Return the scores on ``tested`` of a server that learns from ``released`` private rows,
        by their channel where they have one.
        """
        name = "boosted" if channel is None else "channel"
        server = train_server(name, released, self.private_labels, seed=self.seed, channel=channel)
        right = (self.held_out_labels[:, None] == server.classes).astype(np.float64)
        found = prediction_scores(server.predict_proba(tested), right, shares=server.shares)
        return asdict(found)

    def public_accuracy(self) -> float:
        """Return the accuracy on held-out rows of a server that learns from public ones."""
        server = train_server("boosted", self.public, self.public_labels, seed=self.seed)
        return float((server.predict(self.held_out) == self.held_out_labels).mean())

    def rivals(self, *, epsilon: float, radius: float | None) -> dict[str, dict[str, float]]:
        """Return the scores of simple methods at a guarantee, by name."""
        columns: dict[str, Callable[..., Array]] = {
            RAW[0]: partial(raw_columns, self.schema, epsilon=epsilon)
        }
        if radius is not None:
            columns[RAW[1]] = partial(raw_vector, epsilon=epsilon, radius=radius)
        if radius is not None and radius <= LARGEST_SHARED_RADIUS:
            columns["categories in clear + noise"] = partial(
                clear_columns, self.schema, epsilon=epsilon, radius=radius
            )
        return {RESPONSE: self._response(epsilon)} | {
            name: self.learnt(
                release(self.private, seed=self.seed), release(self.held_out, seed=self.seed + 1)
            )
            for name, release in columns.items()
        }

    @cached_property
    def _booster(self) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            learning_rate=0.05, max_leaf_nodes=8, random_state=self.seed
        ).fit(self.public, self.public_labels)

    def _response(self, epsilon: float) -> dict[str, float]:
        """Randomised response on the label whose probability exceeds its share most."""
        shares = np.bincount(self.public_labels) / len(self.public_labels)
        channel = randomised_response(len(shares), epsilon=epsilon)
        sampler, sides = SeededSampler(self.seed), []
        for rows in (self.private, self.held_out):
            named = (self._booster.predict_proba(rows) / shares).argmax(axis=1)
            sides.append(np.eye(len(shares))[sampler.categorical(channel[named])])
        private, held_out = sides
        return self.learnt(private, held_out, channel)


def run_demo(
    name: str, settings: Settings | None = None, *, report: Report = silent
) -> Demonstration:
    """Fit encoders on public rows for every budget and neighbourhood, release the others, let
    servers learn, and attack.

    Args:
        name: one of ``DATA``.
        settings: default: those for looking around.
        report: told after every stage.

    Raises:
        UnknownName: no such demonstration.
        DataUnavailable: its files are missing and cannot be downloaded.
    """
    settings = Settings() if settings is None else settings
    table, schema = demo_table(name)
    parts = Parts(table, schema, settings)
    cells = [(radius, epsilon) for radius in settings.radii for epsilon in settings.epsilons]
    unprotected = parts.learnt(parts.private, parts.held_out)["accuracy"]
    majority = float(np.bincount(parts.held_out_labels).max() / len(parts.held_out_labels))
    named = parts.public_accuracy()
    rows: list[Row] = []
    attacked: dict[float | None, PowerEncoder] = {}
    for done, (radius, epsilon) in enumerate(cells):
        report("power demonstration", done + 1, len(cells) + 1, float("nan"))
        encoder = PowerEncoder(
            epsilon=epsilon,
            delta=0.0,
            radius=radius,
            schema=schema,
            random_state=settings.seed,
            training=VectorTraining(outputs=(1,), epochs=settings.epochs),
        ).fit(parts.rows[0], parts.public_labels)
        row = _row(parts, encoder, epsilon=epsilon, radius=radius)
        row["label response"] = response_accuracy(named, epsilon=epsilon, classes=table.classes)
        if radius is None and table.classes == 2:
            row["ceiling"] = best_local_accuracy(epsilon, majority=majority, bayes=unprotected)
        rows.append(row)
        if epsilon == settings.stored[0]:
            attacked[radius] = encoder
    stored = attacked[settings.stored[1]]
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
        "settings": asdict(settings),
        "accuracy_without_protection": unprotected,
        "accuracy_by_chance": majority,
        "rows": rows,
        "attacks": _attacks(parts, attacked, settings.hijacking),
        "reach": [_reach(parts, radius) for radius in settings.radii if radius is not None],
        "guarantee": stored.guarantee.to_dict(),
    }
    report("power demonstration", len(cells) + 1, len(cells) + 1, float("nan"))
    return Demonstration(
        data=name,
        title="A row of a table, for a server nobody has to trust",
        lead=f"""Every single record is protected from the server that receives what was made of
        it, and from anybody else who sees that. A record of {len(table.columns)} columns stays on
        its owner's device. What leaves is a number or two with noise, and a proof of what they can
        give away. The server learns from nothing else, with any model it likes.""",
        facts=_facts(results),
        notes=_notes(results),
        sections=[
            _attack_section(results),
            *(_accuracy_section(results, radius) for radius in settings.radii),
        ],
        system=stored,
        results=results,
        summary=_summary(results),
        files={"held-out.csv": _csv(schema, parts.rows[2])},
    )


def neighbours_name(radius: float | None) -> str:
    """Return the kind of neighbours in words.

    Example:
        >>> neighbours_name(None), neighbours_name(0.1)
        ('any two records', 'within 0.1')
    """
    return "any two records" if radius is None else f"within {radius:g}"


def half_width(share: float, rows: int) -> float:
    """Return half of the 95 % interval of a share of ``rows`` independent rows.

    Example:
        >>> round(half_width(0.5, 10_000), 4)
        0.0098
    """
    return 1.96 * math.sqrt(share * (1.0 - share) / rows)


def _row(parts: Parts, encoder: PowerEncoder, *, epsilon: float, radius: float | None) -> Row:
    """What servers make of a release and of simple methods at the same guarantee."""
    _, private, held_out = parts.rows
    released, tested = encoder.release(private), encoder.release(held_out)
    sides = np.asarray(released.values), np.asarray(tested.values)
    channel = encoder.channel_ if isinstance(encoder.query_, ScoreCodeQuery) else None
    rivals = parts.rivals(epsilon=epsilon, radius=radius)
    return {
        "neighbours": neighbours_name(radius),
        "radius": radius,
        "epsilon": epsilon,
        "mechanism": encoder.mechanism_,
        "values": sides[0].shape[1],
        "scores": {OURS: parts.learnt(*sides, channel), **rivals},
        "raw columns": max(rivals[way]["accuracy"] for way in RAW if way in rivals),
        "ceiling": None,
        "sampler": released.receipt.sampler,
    }


def _attacks(
    parts: Parts, encoders: dict[float | None, PowerEncoder], config: HijackingConfig
) -> dict[str, dict[str, float | None]]:
    """Quality of what is made of the held-out rows by an attacker who owns the public rows with
    their releases, by the kind of neighbours, and by one who sees nothing.
    """
    groups, guesses = parts.schema.groups, {}
    for radius, encoder in encoders.items():
        taught, seen = (np.asarray(encoder.release(parts.rows[at]).values) for at in (0, 2))
        decoder = train_hijacker(taught, parts.public, config)
        guesses[neighbours_name(radius)] = decoder.reconstruct(seen)
    guesses[NOTHING] = majority_guess(parts.public, len(parts.held_out))
    numbers = [part.start for _, part, one_hot in groups if not one_hot]
    found = {}
    for name, guess in guesses.items():
        quality = hijacking_quality(guess, parts.held_out, groups)
        off = np.square(guess - parts.held_out)[:, numbers]
        found[name] = {
            "categories": None if math.isnan(quality.category) else quality.category,
            "all_categories": None
            if math.isnan(quality.all_categories)
            else quality.all_categories,
            "number_error": float(np.sqrt(off.mean())) if numbers else None,
            "squared_error": quality.squared_error,
        }
    return found


def _reach(parts: Parts, radius: float) -> dict[str, Any]:
    """How far a radius reaches: in the units of numbers, and compared with other records."""
    nearest = cdist(parts.held_out, parts.private).min(axis=1)
    return {
        "radius": radius,
        "numbers": {
            attribute.name: radius * (attribute.upper - attribute.lower)
            for attribute in parts.schema.attributes
            if isinstance(attribute, Numeric) and attribute.scale == "linear"
        },
        "share_with_a_private_row_within": float((nearest <= radius).mean()),
        "median_distance_to_nearest": float(np.median(nearest)),
    }


def _csv(schema: TabularSchema, rows: npt.NDArray[Any]) -> bytes:
    """A CSV file whose header names the schema's columns; whole numbers without a point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        name
        for attribute in schema.attributes
        for name in (attribute.names if isinstance(attribute, OneHot) else (attribute.name,))
    )
    writer.writerows(
        [int(value) if isinstance(value, float) and value.is_integer() else value for value in row]
        for row in rows.tolist()
    )
    return text.getvalue().encode()


def _at(results: dict[str, Any], epsilon: float) -> dict[float | None, Row]:
    """Rows of that epsilon by radius."""
    return {row["radius"]: row for row in results["rows"] if row["epsilon"] == epsilon}


def _summary(results: dict[str, Any]) -> str:
    epsilon = results["settings"]["stored"][0]
    shares = [
        f"{row['scores'][OURS]['accuracy']:.1%} for {row['neighbours']}"
        for row in _at(results, epsilon).values()
    ]
    return (
        f"held-out rows right at epsilon {epsilon:g}: {', '.join(shares)}; "
        f"{results['accuracy_without_protection']:.1%} without protection"
    )


def _facts(results: dict[str, Any]) -> list[Fact]:
    epsilon, radius = results["settings"]["stored"]
    found = _at(results, epsilon)
    facts = [
        Fact(
            row["scores"][OURS]["accuracy"],
            f"right, by boosted trees that saw only released values, at ε = {epsilon:g}; "
            f"neighbours: {row['neighbours']}",
            "ours" if row["radius"] == radius else "label",
        )
        for row in sorted(found.values(), key=lambda row: row["radius"] != radius)
    ]
    majority = percent(results["accuracy_by_chance"])
    raw = f"right with noise on the raw columns, ε = {epsilon:g}, {neighbours_name(radius)}"
    bare = f"right without protection; {majority} by always naming one class"
    return [
        *facts,
        Fact(found[radius]["raw columns"], raw, "best"),
        Fact(results["accuracy_without_protection"], bare),
    ]


def _notes(results: dict[str, Any]) -> str:
    data, (epsilon, radius) = results["data"], results["settings"]["stored"]
    found = _at(results, epsilon)
    ours, response = found[radius]["scores"][OURS]["accuracy"], found[radius]["label response"]
    low, high = data["classes"]
    also = (
        "For this one question it is as good; released values serve other models too."
        if response >= ours - _CLOSE
        else ""
    )
    return f"""The server tells “{low}” from “{high}”. Encoders learnt from {data["public"]:,}
    public rows; the server learnt from {data["private"]:,} released rows and was scored on
    {data["held_out"]:,} released held-out rows, so figures are good to about
    {100 * half_width(ours, data["held_out"]):.0f} points. Data: {data["origin"]}.

    The simplest rival releases a label: a model of the public rows names it on the device, and
    randomised response hides it. That is right on {percent(response)} at ε = {epsilon:g}. {also}

    How a record is released was chosen on public rows for each kind of neighbours by itself, so a
    weaker promise is not always the more accurate one. Training was short:
    {results["settings"]["epochs"]} passes over the public rows. Held-out rows were used for nothing
    but the figures on this page. The bundle is that of ε = {epsilon:g},
    {neighbours_name(radius)}."""


def _attack_section(results: dict[str, Any]) -> Section:
    attacks, epsilon = results["attacks"], results["settings"]["stored"][0]
    measures = {
        "categories": "categories right",
        "all_categories": "all of a row's categories right",
        "number_error": "error of numbers",
    }
    kept = [key for key in measures if attacks[NOTHING][key] is not None]
    rows = [
        (
            name if name == NOTHING else f"ours, {name}",
            [f"{100 * quality[key]:.1f} %" for key in kept],
        )
        for name, quality in attacks.items()
    ]
    caption = "The error is the root of the mean square, as a share of a number's range."
    return Section(
        "What an attacker gets back",
        f"""The attacker knows encoder, noise and guarantee, owns {results["data"]["public"]:,} rows
        of the same kind with their releases at ε = {epsilon:g}, and trains a decoder on them. Who
        sees nothing names the most frequent category and the mean: the floor.""",
        [Figures("the attacker sees", [measures[key] for key in kept], rows, caption)],
    )


def _accuracy_section(results: dict[str, Any], radius: float | None) -> Section:
    rows = [row for row in results["rows"] if row["radius"] == radius]
    chosen = ", ".join(f"{row['mechanism']} at ε = {row['epsilon']:g}" for row in rows)
    words = _MEANT if radius is None else _within(results, radius)
    words += f"""\n\nHeld-out accuracy of boosted trees that learnt from what was released, with
    95 % intervals; the axis does not begin at 0. Calibration on public rows chose {chosen}. Raw
    columns get the same ε for the same neighbours: every attribute its share of it, by randomised
    response or Laplace noise; within a radius also one noise vector, and the better of the
    two ways is drawn. The label response is an exact expectation, of any two records whatever the
    heading says. A line that falls while ε rises is one run's scatter.

    In the table balanced accuracy counts each label alike; nats say how much a release tells about
    the label, and below 0 the shares of labels alone say more."""
    if rows[0]["ceiling"] is not None:
        best = 100 * results["accuracy_without_protection"]
        words += f"""\n\nThere is a ceiling. Whatever is released about a row with (ε, 0)-local
        privacy, and whatever is learnt from it, two classes are told apart with accuracy at most
        max(majority, (exp(ε) A + 1 − A) / (exp(ε) + 1)), where A is what the best classifier of
        unprotected rows reaches. It is drawn for A = {best:.1f} %, the server here, and bounds the
        mean of many runs."""
    heading = f"What protection costs, neighbours: {neighbours_name(radius)}"
    return Section(heading, words, [_chart(results, rows), _score_table(rows)])


_MEANT = """Whatever two rows are, an answer is at most exp(ε) times likelier from one than from the
other. That is local differential privacy of the whole row: nothing that the receiver knows or
computes changes it. It is the stronger promise by far, and its ε must not be compared with that of
near records."""


def _within(results: dict[str, Any], radius: float) -> str:
    """What a radius means, in the table's own units, and what it does not cover."""
    reach = next(reach for reach in results["reach"] if reach["radius"] == radius)
    units = ", ".join(
        f"{value:,.0f} of {name}" if value >= 1000 else f"{value:.3g} of {name}"
        for name, value in list(reach["numbers"].items())[:4]
    )
    rows = [row for row in results["rows"] if row["radius"] == radius]
    clear = [f"{row['epsilon']:g}" for row in rows if row["mechanism"] in PROTECTED]
    told = f" At ε = {', '.join(clear)} categories are read as they are, and not hidden at all."
    return f"""Rows within {radius:g} of each other are told apart by no more than exp(ε). Every
    attribute is brought to one scale, on which a change of it, however large, is a step of at most
    1. A step of {radius:g} is, for example, {units}: one of these, and nothing else. Another
    category is {1 / radius:.3g} times as far, and the odds there may grow by that many times ε in
    the exponent, which promises next to nothing.{told if clear else ""}
    {percent(reach["share_with_a_private_row_within"])} of the held-out rows have one of the private
    rows within {radius:g}, and half have none within {reach["median_distance_to_nearest"]:.2f}. So
    this hides small differences between records that are alike, and not what kind of record it
    is."""


def _chart(results: dict[str, Any], rows: list[Row]) -> Chart:
    held_out = results["data"]["held_out"]

    def measured(name: str, shares: list[float], *look: str) -> Series:
        points = [
            (row["epsilon"], share, half_width(share, held_out))
            for row, share in zip(rows, shares, strict=True)
        ]
        return Series(name, tuple(points), *look)

    exact = {row["epsilon"]: row["label response"] for row in rows}
    series = [
        replace(line("label response", exact, "label", "diamond"), line="dashed"),
        measured("raw columns", [row["raw columns"] for row in rows], "best", "square"),
        measured("ours", [row["scores"][OURS]["accuracy"] for row in rows], "ours"),
    ]
    if rows[0]["ceiling"] is not None:
        ceiling = {row["epsilon"]: row["ceiling"] for row in rows}
        series.insert(0, line("ceiling", ceiling, "published", "triangle"))
    levels = [
        Level("no protection", results["accuracy_without_protection"]),
        Level("majority", results["accuracy_by_chance"]),
    ]
    drawn = [y for one in series for _, y, _ in one.points] + [level.y for level in levels]
    low, high = 20 * min(drawn) - 0.4, 20 * max(drawn) + 0.4  # multiples of 5 % around all of them
    return Chart(
        "Accuracy against ε",
        "proved ε per row (smaller protects more)",
        series,
        levels,
        (max(0.0, math.floor(low) / 20), min(1.0, math.ceil(high) / 20)),
    )


def _score_table(rows: list[Row]) -> Figures:
    lines = [
        (
            f"ε = {row['epsilon']:g}: {name}",
            [
                *(f"{100 * found[score]:.1f} %" for score in ("accuracy", "balanced_accuracy")),
                *(f"{found[score]:.3f}" for score in ("auc", "information")),
            ],
        )
        for row in rows
        for name, found in row["scores"].items()
    ]
    ours = tuple(name for name, _ in lines if name.endswith(f": {OURS}"))
    heads = ("accuracy", "balanced", "AUC", "nats")
    return Figures("method", heads, lines, "Simple methods at the same guarantee.", ours)
