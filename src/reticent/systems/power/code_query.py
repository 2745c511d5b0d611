"""A fitted release of a code that serves several targets: encoded row -> what public models say of
each target -> node -> channel, as one-hot outputs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import GuaranteeCard, Replace
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems import clauses as say
from reticent.systems.class_labels import restored_labels
from reticent.systems.power.query import coded
from reticent.systems.scores import Scores, channel_scores
from reticent.tables.schema import TabularSchema
from reticent.training.public_models import BoostedTrees, label_shares, model_from
from reticent.training.staircases import Crowd

MOST_OUTPUTS = 256
"""Answers of one table, at most."""

CROWD = 64
"""Inputs among which the attacker of the card looks for the right one."""


@dataclass(frozen=True, eq=False)
class TargetSource:
    """Where a target's public shares of labels come from.

    Attributes:
        name: of the target.
        labels: shape (labels,), in rising order; of a column of the row its categories, in the
            schema's order.
        model: of what is unknown at the release; None for a column that the row holds.
        column: the encoded coordinates of such a column; None for a model.
    """

    name: str
    labels: npt.NDArray[Any]
    model: BoostedTrees | None
    column: slice | None

    def shares(self, rows: CodedRows) -> Array:
        """How likely each label is, shape (n, labels); each row's depends on that row alone."""
        if self.model is not None:
            return label_shares(self.model.scores(rows))
        return np.asarray(rows.dense()[:, self.column] > 0, dtype=np.float64)


@dataclass(frozen=True)
class TargetWorth:
    """What the release is worth for one target on the public rows, beside what it could be.

    Attributes:
        kept: share of the information that the target would have alone.
        alone: nats that it would have alone, at the whole epsilon.
        split: nats that it would have alone, at its equal part of epsilon.
    """

    kept: float
    alone: float
    split: float


@dataclass(frozen=True, eq=False)
class CodeQuery:
    """A release of codes for several targets. Sources, nodes, channel and joints are public.

    Attributes:
        schema: the public description of rows.
        sources: of the targets.
        logs: shape (nodes, labels of all targets): a row's node is the one whose inner product with
            the row's shares is largest, the first of several.
        mechanism: the channel that answers.
        joints: by column name, shape (nodes, labels): node and label together, from public rows.
            Targets first, then the other columns of categories.
        worths: of the targets, in the order of ``sources``.
    """

    schema: TabularSchema
    sources: tuple[TargetSource, ...]
    logs: Array
    mechanism: FiniteChannel
    joints: dict[str, Array]
    worths: tuple[TargetWorth, ...]

    def __post_init__(self) -> None:
        nodes, names = self.mechanism.nodes, [source.name for source in self.sources]
        width = sum(len(source.labels) for source in self.sources)
        joints = self.joints.values()
        if (
            not isinstance(nodes, AnyTwo)
            or self.logs.shape != (nodes.size, width)
            or not np.isfinite(self.logs).all()
            or len(self.worths) != len(names)
            or list(self.joints)[: len(names)] != names
            or any(len(joint) != nodes.size or not (joint > 0).all() for joint in joints)
            or any(self.joints[s.name].shape[1] != len(s.labels) for s in self.sources)
        ):
            raise CorruptBundle("bundle: its nodes, targets and channel do not fit together")

    @property
    def certificate(self) -> str:
        """No bound of a network is used."""
        return "none"

    @property
    def outputs(self) -> int:
        """Released values per row."""
        return self.mechanism.classes

    def encode(self, table: npt.NDArray[Any]) -> CodedRows:
        """Checked rows of a table; raises what ``TabularSchema.code`` raises."""
        return self.schema.code(table)

    def nodes(self, inputs: Array | CodedRows) -> Integers:
        """The node of each row, shape (n,). Private."""
        rows = coded(inputs)
        return nearest_nodes([source.shares(rows) for source in self.sources], self.logs)

    def answer(
        self, inputs: Array | CodedRows, *, sampler: Sampler
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """One one-hot vector for each encoded row, shape (n, outputs); none is withheld."""
        told = self.mechanism.release(self.nodes(inputs), sampler=sampler)
        return np.eye(self.outputs)[told], np.zeros(len(told), dtype=np.bool_)

    def rehearse(self) -> None:
        """Answers about a corner of the public box, with a seed, and forgets it."""
        _ = self.mechanism.event
        self.answer(self.schema.domain.upper[None, :], sampler=SeededSampler(0))

    def posterior(self, name: str) -> Array:
        """Probability of each label of a column given the output, shape (outputs, labels)."""
        return self.mechanism.posterior(self.joints[name])

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """What the release is worth for every column, on the public rows, exactly over its
        noise.
        """
        table = self.mechanism.matrix
        return {name: channel_scores(table.T @ joint) for name, joint in self.joints.items()}

    @cached_property
    def crowd(self) -> tuple[float, float]:
        """How often the best guess names the right one of 64 rows: in the mean over rows like the
        public ones, and at most, whoever they are.
        """
        masses = next(iter(self.joints.values())).sum(axis=1)
        shares = self.mechanism.matrix
        worst = float(
            (shares.max(axis=0) / (shares.max(axis=0) + (CROWD - 1) * shares.min(axis=0))).max()
        )
        return Crowd(masses / masses.sum(), size=CROWD).chance(shares), worst

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        arrays: Arrays = {"nodes.logs": self.logs}
        listed = []
        for place, source in enumerate(self.sources):
            part = source.column
            listed.append(
                {
                    "name": source.name,
                    "labels": source.labels.tolist(),
                    "column": None if part is None else [part.start, part.stop],
                }
            )
            if source.model is not None:
                for name, array in source.model.describe().items():
                    arrays[f"target{place}.{name}"] = array
        for place, joint in enumerate(self.joints.values()):
            arrays[f"joint{place}"] = joint
        channel, table = self.mechanism.describe()
        settings = {
            "schema": self.schema.to_dict(),
            "epsilon": self.mechanism.epsilon,
            "targets": listed,
            "columns": list(self.joints),
            "worths": [asdict(worth) for worth in self.worths],
            "channel": channel,
        }
        return settings, {**arrays, **table}

    @classmethod
    def from_description(cls, settings: dict[str, Any], arrays: Arrays) -> CodeQuery:
        """The query that ``describe`` took apart, its table checked again.

        Raises:
            CorruptBundle: fields or arrays that are missing or do not fit together.
        """
        with rebuilding():
            schema = TabularSchema.from_dict(settings["schema"])
            parts = {part.start: (name, part) for name, part, one_hot in schema.groups if one_hot}
            sources = []
            for place, stored in enumerate(settings["targets"]):
                labels, model, column = stored["labels"], None, None
                if stored["column"] is None:
                    names = [name for name in arrays if name.startswith(f"target{place}.")]
                    own = {name.partition(".")[2]: arrays[name] for name in names}
                    model = model_from("boosted", own, dimension=schema.dimension)
                    labels = restored_labels(labels, expected=model.classes)
                else:
                    name, column = parts[stored["column"][0]]
                    if name != stored["name"] or len(labels) != column.stop - column.start:
                        raise CorruptBundle("bundle: a target is another column of its schema")
                sources.append(TargetSource(stored["name"], np.asarray(labels), model, column))
            query = cls(
                schema,
                tuple(sources),
                arrays["nodes.logs"],
                FiniteChannel.from_description(
                    settings["channel"], arrays, epsilon=settings["epsilon"], adjacency=Replace(1)
                ),
                {name: arrays[f"joint{place}"] for place, name in enumerate(settings["columns"])},
                tuple(TargetWorth(**worth) for worth in settings["worths"]),
            )
            query.rehearse()
        return query


def nearest_nodes(shares: list[Array], logs: Array) -> Integers:
    """The node of each row: the likeliest prototype under the row's own shares of labels.

    Args:
        shares: for each target, shape (n, labels).
        logs: shape (nodes, labels of all targets).
    """
    joined = np.ascontiguousarray(np.concatenate(shares, axis=1))
    # One sum per prototype: a row's node does not depend on the other rows.
    worth = np.stack([(joined * prototype).sum(axis=1) for prototype in logs], axis=1)
    return np.asarray(worth.argmax(axis=1), dtype=np.int64)


def code_card(query: CodeQuery) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what it is worth for whom."""
    guarantee, (mean, worst) = query.mechanism.guarantee, query.crowd
    details = [*query.mechanism.rests_on(), ("answers", str(query.outputs))]
    for source, worth in zip(query.sources, query.worths, strict=True):
        details.append(
            (f"worth for {source.name}, on public rows", _worth_words(query, source, worth))
        )
    others = [name for name in query.joints if name not in {s.name for s in query.sources}]
    left = "; ".join(f"{name} {query.scores[name].information:.4f}" for name in others)
    details.append(("nats left of each other column of categories", left or "none is held"))
    details.append(
        (
            f"which of {CROWD}",
            (
                f"the best guess names the right one of {CROWD} rows drawn like the public ones "
                f"with probability {mean:.4f}, and at most {worst:.4f} for the worst {CROWD} rows"
            ),
        )
    )
    return say.input_card(
        query,
        title="Released code of a table row, for several targets",
        protected="The whole record: between any two records of the schema, "
        f"{say.odds(guarantee, between='between them ')}. {say.naming_words(guarantee)} "
        f"{say.ALWAYS_ANSWERED}",
        from_whom=say.INTO_THE_BUNDLE.format(values="codes"),
        assumptions=say.phrases(
            say.OWNERS_AGREED.of(data="the rows that nodes and channel were fitted on", more=""),
            "the schema (columns, ranges, categories) was public before the records were seen",
            say.TRUSTED_DEVICE.of(input="record"),
        ),
        not_protected=say.phrases(
            "that a record is in the table at all",
            say.TWICE.of(input="record"),
            "the rows that nodes and channel were fitted on",
        ),
        details=tuple(details),
    )


def _worth_words(query: CodeQuery, source: TargetSource, worth: TargetWorth) -> str:
    """What a release is worth for one target, beside the constant, the target alone and a split."""
    joint, scores = query.joints[source.name], query.scores[source.name]
    prior = joint.sum(axis=0) / joint.sum()
    entropy = -float((prior * np.log(prior)).sum())
    return (
        f"log loss {entropy - scores.information:.4f} (constant {entropy:.4f}, this target alone "
        f"{entropy - worth.alone:.4f}, a split of epsilon {entropy - worth.split:.4f}); AUC "
        f"{scores.auc:.3f} (constant 0.5); accuracy {scores.accuracy:.3f} (constant "
        f"{prior.max():.3f}); {worth.kept:.0%} of the nats that it would have alone"
    )
