"""The power demonstration: an untrusted server learns from released rows of a table.

Releases are real ones, with noise from the operating system. Rivals get plain noise from a seed,
because nobody releases them here.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier

from reticent.core.arrays import Array
from reticent.datasets.adult import load_adult_sample
from reticent.datasets.table import Table
from reticent.demos.page import Demonstration, comparison
from reticent.noise import SeededSampler
from reticent.pages.page import Fact
from reticent.systems.power.code_query import CodeQuery
from reticent.systems.power.encoder import PowerEncoder
from reticent.systems.power.servers import train_server
from reticent.systems.power.settings import VectorTraining
from reticent.tables.attributes import HALF_ROOT, OneHot
from reticent.tables.known_schemas import adult_schema
from reticent.tables.schema import TabularSchema
from reticent.training.progress import Report, silent
from reticent.training.staircases import response_on

OURS = "ours"
RESPONSE = "public booster + randomised response, at prevalence"
RAW = "noise on the raw columns"
CEILING = "ceiling: no release at this ε lets a server do better"
CONSTANT = "one class always"
BARE = "no protection"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public settings of the demonstration.

    Attributes:
        epsilon: budget of one released row.
        epochs: passes of training over the public rows.
        training_rows: most rows of the training part. Half of them are public, half are released.
        held_out_rows: most held-out rows to release and score.
        seed: seed of training, of the cut and of the rivals' noise.
    """

    epsilon: float = 3.0
    epochs: int = 8
    training_rows: int = 12_000
    held_out_rows: int = 6_000
    seed: int = 0


class Parts:
    """Rows of a table: public ones for encoders, private and held-out ones for release.

    Attributes:
        schema: public schema.
        rows: public, private and held-out rows, as in the table.
        encoded: the same rows, encoded.
        labels: labels of these rows.
        seed: seed of servers and of the rivals' noise.
    """

    def __init__(self, table: Table, schema: TabularSchema, settings: Settings) -> None:
        self.schema, self.seed = schema, settings.seed
        order = np.random.default_rng(self.seed).permutation(len(table.train_rows))
        order = order[: settings.training_rows]
        public, private = order[: len(order) // 2], order[len(order) // 2 :]
        held = np.random.default_rng(self.seed).permutation(len(table.test_rows))
        held = held[: settings.held_out_rows]
        self.rows = table.train_rows[public], table.train_rows[private], table.test_rows[held]
        self.encoded = [schema.encode(rows) for rows in self.rows]
        self.labels = (
            table.train_labels[public],
            table.train_labels[private],
            table.test_labels[held],
        )

    def learnt(self, released: Array, tested: Array, channel: Array | None = None) -> float:
        """Return the accuracy on ``tested`` of a server that learns from ``released`` private rows.

        If the rows have a ``channel``, the server uses it.
        """
        name = "boosted" if channel is None else "channel"
        server = train_server(name, released, self.labels[1], seed=self.seed, channel=channel)
        return float((server.predict(tested) == self.labels[2]).mean())

    def response(self, *, epsilon: float) -> float:
        """Return the accuracy of randomised response on a label named by a booster of public rows.

        The booster names the label with the largest ratio of its probability to its share.
        """
        booster = HistGradientBoostingClassifier(
            learning_rate=0.05, max_leaf_nodes=8, random_state=self.seed
        ).fit(self.encoded[0], self.labels[0])
        shares = np.bincount(self.labels[0]) / len(self.labels[0])
        channel = response_on(np.arange(len(shares)), epsilon=epsilon)
        sampler, sides = SeededSampler(self.seed), []
        for rows in self.encoded[1:]:
            named = (booster.predict_proba(rows) / shares).argmax(axis=1)
            sides.append(np.eye(len(shares))[sampler.categorical(channel[named])])
        private, held_out = sides
        return self.learnt(private, held_out, channel)

    def raw(self, *, epsilon: float) -> float:
        """Return the accuracy if every column gets its share of ``epsilon``."""
        private, held_out = (
            raw_columns(self.schema, rows, epsilon=epsilon, seed=self.seed + at)
            for at, rows in enumerate(self.encoded[1:])
        )
        return self.learnt(private, held_out)


def raw_columns(schema: TabularSchema, rows: Array, *, epsilon: float, seed: int) -> Array:
    """Return encoded rows under (epsilon, 0)-local differential privacy, in the same shape.

    Every attribute gets the same share of epsilon: a category by randomised response, a number by
    Laplace noise of sensitivity 1. The whole record costs epsilon by composition. The noise is
    plain floats from a seed, so this is for experiments only.

    Args:
        schema: the public description of rows.
        rows: encoded rows, shape (n, d).
        epsilon: budget of a whole record.
        seed: seed of the noise.
    """
    share = epsilon / len(schema.attributes)
    random = np.random.default_rng(seed)
    released = np.empty_like(rows)
    for _, part, one_hot in schema.groups:
        width = part.stop - part.start
        if one_hot:
            codes = rows[:, part].argmax(axis=1)
            lie = random.random(len(rows)) > 1.0 / (1.0 + (width - 1) * np.exp(-share))
            told = np.where(lie, (codes + random.integers(1, width, len(rows))) % width, codes)
            released[:, part] = np.eye(width)[told] * HALF_ROOT
        else:
            # A number that may be missing has two coordinates. Rows are at most their number apart
            # in l1.
            released[:, part] = rows[:, part] + random.laplace(
                scale=width / share, size=(len(rows), width)
            )
    return released


def best_local_accuracy(epsilon: float, *, majority: float, bayes: float) -> float:
    """Return the highest accuracy of *any* two-class prediction from locally private answers.

    Each answer is about one row, under (epsilon, 0)-local privacy. Let q(x) be the probability that
    label 1 is predicted for x. Privacy says q(x) <= e^epsilon q(x') and the same of 1 - q. Accuracy
    is linear in q. For a given least and largest value of q, it is highest if q is largest exactly
    where label 1 is likelier, and least elsewhere. The pairs (least, largest) that privacy allows
    form a polygon with corners (0, 0), (1, 1) and (1, e^epsilon) / (1 + e^epsilon). The first two
    are always one label, the third is randomised response on the best classifier.

    Args:
        epsilon: epsilon of one answer.
        majority: share of the more frequent label.
        bayes: accuracy of the best classifier of unprotected rows.

    Example:
        >>> best_local_accuracy(1.0, majority=0.76, bayes=0.87)
        0.76
    """
    right = 1.0 / (1.0 + float(np.exp(-epsilon)))
    return max(majority, right * bayes + (1.0 - right) * (1.0 - bayes))


def run_demo(settings: Settings | None = None, *, report: Report = silent) -> Demonstration:
    """Fit an encoder on public rows, release the others, and let a server learn.

    Args:
        settings: settings, by default those for looking around.
        report: receiver of the progress, called after every stage.
    """
    settings = Settings() if settings is None else settings
    table, schema = load_adult_sample(), adult_schema()
    parts, epsilon = Parts(table, schema, settings), settings.epsilon
    encoder = PowerEncoder(
        epsilon=epsilon,
        delta=0.0,
        radius=None,
        schema=schema,
        random_state=settings.seed,
        training=VectorTraining(outputs=(1,), epochs=settings.epochs),
    ).fit(parts.rows[0], parts.labels[0])
    report("power demonstration", 1, 2, float("nan"))
    private, held_out = (encoder.release(rows) for rows in parts.rows[1:])
    channel = encoder.channel_ if isinstance(encoder.query_, CodeQuery) else None
    bare = parts.learnt(*parts.encoded[1:])
    majority = float(np.bincount(parts.labels[2]).max() / len(parts.labels[2]))
    ways = {
        OURS: parts.learnt(np.asarray(private.values), np.asarray(held_out.values), channel),
        RESPONSE: parts.response(epsilon=epsilon),
        RAW: parts.raw(epsilon=epsilon),
        CEILING: best_local_accuracy(epsilon, majority=majority, bayes=bare),
        CONSTANT: majority,
        BARE: bare,
    }
    report("power demonstration", 2, 2, float("nan"))
    results: dict[str, Any] = {
        "data": table.name,
        "public": len(parts.rows[0]),
        "private": len(parts.rows[1]),
        "held_out": len(parts.rows[2]),
        "settings": asdict(settings),
        "mechanism": encoder.mechanism_,
        "accuracy": ways,
        "guarantee": encoder.guarantee.to_dict(),
        "sampler": private.receipt.sampler,
    }
    return Demonstration(
        data=table.name,
        title="A row of a table, for a server nobody has to trust",
        lead=f"""A guarantee limits how well a server that receives a record's release, or anybody
        else who sees it, can tell the record from any other. A record of {len(table.columns)}
        columns stays on its owner's device. Only a number or two with noise leave it, with a proof
        of what they can give away. The server learns from nothing else, with any model it
        likes.""",
        facts=[
            Fact(
                ways[OURS],
                "of rows are classified right from released values, at "
                f"ε = {epsilon:g} for any two records",
                "ours",
            ),
            Fact(ways[RAW], "are right with noise on the raw columns, at the same ε", "best"),
            Fact(ways[CONSTANT], "are right if the answer is always the same class"),
            Fact(bare, "are right without any protection"),
        ],
        notes=_notes(results, table),
        sections=[comparison("Other ways, at the same guarantee", _WAYS, ways, ours=OURS)],
        system=encoder,
        results=results,
        summary=f"held-out rows right at epsilon {epsilon:g}: {ways[OURS]:.1%} by released values, "
        f"{ways[RAW]:.1%} by noisy columns, {majority:.1%} by a constant, {bare:.1%} without "
        "protection",
        files={"held-out.csv": _csv(schema, parts.rows[2])},
    )


_WAYS = """For any two rows, an answer is at most exp(ε) times likelier from one than from the
other. That is local differential privacy of the whole row. Nothing that the receiver knows or
computes changes it.

The simplest rival releases a label: a model of the public rows names it on the device, and
randomised response hides it. Where it is as good, it is the better choice for this one question.
Released values serve other models too. The rival with raw columns gives each a share of ε.

There is a ceiling. After any release with (ε, 0)-local privacy and any learning, two classes are
told apart with accuracy at most max(majority, (exp(ε) A + 1 − A) / (exp(ε) + 1)). Here A is the
accuracy of the best classifier of unprotected rows, taken to be that of the server without
protection. The ceiling bounds the mean of many runs."""


def _notes(results: dict[str, Any], table: Table) -> str:
    low, high = table.class_names
    return f"""The server tells “{low}” from “{high}”. The encoder learnt from
    {results["public"]:,} public rows and chose its mechanism there: {results["mechanism"]}. The
    server learnt from {results["private"]:,} released rows and was scored on
    {results["held_out"]:,} released held-out rows. Training was short:
    {results["settings"]["epochs"]} passes. Data: {table.origin}."""


def _csv(schema: TabularSchema, rows: npt.NDArray[Any]) -> bytes:
    """Return a CSV file with the schema's columns as header, and whole numbers without a point."""
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
