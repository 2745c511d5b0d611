"""A fitted release of a code that serves several targets: row -> what public models say of it ->
node -> channel, as one-hot outputs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers, part_of, under
from reticent.core.checks import count, flag
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.core.guarantees import (
    Adjacency,
    Guarantee,
    Neighborhood,
    Replace,
    adjacency_from_dict,
    adjacency_to_dict,
)
from reticent.core.norms import Norm, unit_moves
from reticent.core.regions import Box
from reticent.grids.public_graph import PublicGraph
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.mechanisms.finite_channel import rebuilt_nodes
from reticent.noise import Sampler, SeededSampler
from reticent.release.bundle import rebuilding
from reticent.systems.embedding import Embedding, check_sizes, restore
from reticent.systems.power.code_targets import NearRows, Within
from reticent.systems.power.query import SPACE, coded, dense
from reticent.systems.record_labels import restored_labels
from reticent.tables.schema import TabularSchema
from reticent.training.public_models import (
    BLOCK,
    BoostedTrees,
    LinearModel,
    label_shares,
    model_from,
)
from reticent.training.staircases import Crowd

if TYPE_CHECKING:
    from torch import nn

HELD = 0.2
"""Share of the public rows that nodes and channel are not fitted on: the card has their scores."""

MOST_OUTPUTS = 256
"""Answers of one table, at most."""

CROWD = 64
"""Inputs among which the attacker of the card looks for the right one."""

_LOOKED_AT = 64
"""Rows around which neighbours are looked for, within a radius."""

_DIRECTIONS = 32

LABEL, RECALL, VARIANCE = "label", "recall", "variance"
"""Kinds of targets: a label, the nearest of public rows, the row's own vector."""


@dataclass(frozen=True, eq=False)
class SchemaRows:
    """Rows of a table, encoded by its public schema."""

    schema: TabularSchema

    @property
    def columns(self) -> int:
        """The columns of the table."""
        return self.schema.columns

    @property
    def corner(self) -> Array:
        """The upper end of every range."""
        return self.schema.domain.upper

    def encode(self, inputs: npt.NDArray[Any]) -> CodedRows:
        """Return checked rows. It raises what ``TabularSchema.code`` raises."""
        return self.schema.code(inputs)

    def clip(self, rows: Array) -> Array:
        """Return rows moved into the public box."""
        return self.schema.domain.clip(rows)

    def within(self, norm: Norm, radius: float) -> Neighborhood:
        """Return the adjacency of records that are near in the encoded space."""
        return Neighborhood(norm, radius, SPACE, self.schema.digest)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The schema."""
        return {"schema": self.schema.to_dict()}, {}


@dataclass(frozen=True, eq=False)
class EmbeddedPoints:
    """Embeddings of arrays, clipped to a public box.

    Attributes:
        embedding: map from inputs to points.
        box: the public box that points are clipped to.
        shape: shape of one input.
    """

    embedding: Embedding
    box: Box
    shape: tuple[int, ...]

    @property
    def columns(self) -> int:
        """The features of an input."""
        return int(np.prod(self.shape))

    @property
    def corner(self) -> Array:
        """The upper corner of the box."""
        return self.box.upper

    def encode(self, inputs: npt.NDArray[Any]) -> CodedRows:
        """Return points of checked inputs, shape (n, features)."""
        return CodedRows.of(self.box.clip(self.embedding.embed(inputs)))

    def clip(self, rows: Array) -> Array:
        """Return points moved into the box."""
        return self.box.clip(rows)

    def within(self, norm: Norm, radius: float) -> Neighborhood:
        """Return the adjacency of inputs whose embeddings are near."""
        identity = self.embedding.identity(self.box)
        return Neighborhood(norm, radius, self.embedding.space, identity)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """The embedding, the box, and the shape of an input."""
        settings, arrays = self.embedding.describe()
        box = {"box.lower": self.box.lower, "box.upper": self.box.upper}
        return {"embedding": settings, "input_shape": list(self.shape)}, {**arrays, **box}


def restored_inputs(
    settings: Any, arrays: Arrays, module: nn.Module | None
) -> SchemaRows | EmbeddedPoints:
    """The inputs that ``describe`` took apart.

    Args:
        settings: plain JSON values.
        arrays: the bundle's.
        module: the user's own, where the bundle was fitted with one.

    Raises:
        InvalidInput: the bundle needs the user's module, and none or another one was given.
        CorruptBundle: parts that do not fit together.
    """
    with rebuilding():
        if "schema" in settings:
            return SchemaRows(TabularSchema.from_dict(settings["schema"]))
        shape = tuple(count(size, name="input_shape") for size in settings["input_shape"])
        box, described = Box(arrays["box.lower"], arrays["box.upper"]), settings["embedding"]
        if not shape:
            raise CorruptBundle("bundle: an input without a shape")
    embedding = restore(described, arrays, module)
    check_sizes(embedding, shape, box.dimension)
    return EmbeddedPoints(embedding, box, shape)


@dataclass(frozen=True, eq=False)
class TargetSource:
    """Public shares of labels, by which rows that are alike share a node.

    Attributes:
        labels: shape (labels,), in rising order. Those of a column of the row are its categories,
            in the schema's order, and those of parts of the space their numbers.
        model: model of what is unknown at the release, or None for a column that the row holds.
        column: the encoded coordinates of such a column, or None for a model.
        sure: whether the model's likeliest label counts as certain: the part of the space that a
            point lies in.
    """

    labels: npt.NDArray[Any]
    model: BoostedTrees | LinearModel | None
    column: slice | None
    sure: bool = False

    def shares(self, rows: CodedRows) -> Array:
        """Return how likely each label is, shape (n, labels). Each row's depends on that row
        alone.
        """
        if self.model is None:
            return np.asarray(rows.dense()[:, self.column] > 0, dtype=np.float64)
        scores = self.model.scores(rows)
        if self.sure:
            return np.asarray(np.eye(len(self.labels))[scores.argmax(axis=1)])
        return label_shares(scores)


@dataclass(frozen=True)
class TargetWorth:
    """The worth of the release for one target, beside what it could be.

    Attributes:
        kept: share of what the target would have alone, on the public rows that nodes and channel
            were fitted on.
        held: the scores by name, by "released", "constant", "alone" and "split" (the target alone
            at its equal part of epsilon), on public rows that neither were fitted on.
        error: standard error of the first score.
        rows: number of rows that were held out.
    """

    kept: float
    held: dict[str, dict[str, float]]
    error: float
    rows: int


@dataclass(frozen=True, eq=False)
class CodeTarget:
    """A target, or another column that something is told about.

    Attributes:
        name: unique name.
        kind: one of the three.
        values: shape (labels,), the labels in rising order. For recall they are the numbers of the
            public rows that are looked for, and for the vector its mean.
        joint: shape (nodes, values), node and label together, above 0, with sum 1. For recall they
            are shares of inputs in the node that have the row among their nearest, with sum at most
            1. For the vector they are the mass of the node times its mean less the mean.
        worth: worth of a target, or None for another column.
        size: number of nearest rows that recall looks for, 0 for others.
    """

    name: str
    kind: str
    values: npt.NDArray[Any]
    joint: Array
    worth: TargetWorth | None
    size: int = 0

    def told(self, table: Array, masses: Array) -> Array:
        """Return what an answer says, shape (outputs, values).

        It says probabilities of labels, chances that a public row is among the nearest, or the mean
        vector.

        Args:
            table: shape (nodes, outputs).
            masses: shape (nodes,).
        """
        together = table.T @ self.joint
        if self.kind == LABEL:
            return np.asarray(together / together.sum(axis=1, keepdims=True))
        share = (table.T @ masses)[:, None]
        if self.kind == RECALL:
            return np.asarray(self.size * together / share)
        return np.asarray(self.values + together / share)


@dataclass(frozen=True, eq=False)
class CodeQuery:
    """A release of codes for several targets. Sources, nodes, channel and joints are public.

    Attributes:
        inputs: kind of inputs that codes are made of.
        sources: sources that nodes are found by, where any two nodes are neighbours, () otherwise.
        logs: shape (nodes, labels of all sources), or (0, 0) without sources. A row's node is the
            one whose inner product with the row's shares is largest, the first of several.
        mechanism: the channel that answers.
        masses: shape (nodes,), shares of public rows.
        targets: targets first, then the other columns of categories.
        near: definition of neighbours, or None for any two inputs.
        stated: cost of one answer by the mechanism that this was made with, for audits.
    """

    inputs: SchemaRows | EmbeddedPoints
    sources: tuple[TargetSource, ...]
    logs: Array
    mechanism: FiniteChannel
    masses: Array
    targets: tuple[CodeTarget, ...]
    near: Within | NearRows | None = None
    stated: Guarantee = field(init=False)

    def __post_init__(self) -> None:
        cost = Guarantee(self.mechanism.epsilon, 0.0, self.mechanism.adjacency)
        object.__setattr__(self, "stated", cost)
        nodes = self.mechanism.nodes
        width = sum(len(source.labels) for source in self.sources)
        by_sources = isinstance(nodes, AnyTwo)
        kind = NearRows if isinstance(nodes, PublicGraph) else Within
        if (
            self.logs.shape != ((nodes.size, width) if by_sources else (0, 0))
            or not np.isfinite(self.logs).all()
            or by_sources != bool(self.sources)
            or not (by_sources or isinstance(self.near, kind))
            or (self.near and not isinstance(self.mechanism.adjacency, Neighborhood))
            or self.masses.shape != (nodes.size,)
            or not (self.masses > 0).all()
            or not any(target.worth for target in self.targets)
        ):
            raise CorruptBundle("bundle: its nodes, targets and channel do not fit together")
        for target in self.targets:
            fits = target.joint.shape == (nodes.size, len(target.values))
            fits = fits and bool(np.isfinite(target.joint).all())
            if not fits or (target.kind == LABEL and not (target.joint > 0).all()):
                raise CorruptBundle("bundle: a table of its targets does not fit its nodes")

    @property
    def certificate(self) -> str:
        """The kind of certificate: no bound of a network is used."""
        return "none"

    @property
    def columns(self) -> int:
        """The columns of an input."""
        return self.inputs.columns

    @property
    def schema(self) -> TabularSchema | None:
        """The public description of rows, or None for arrays."""
        return self.inputs.schema if isinstance(self.inputs, SchemaRows) else None

    @property
    def outputs(self) -> int:
        """The number of released values per row."""
        return self.mechanism.classes

    @property
    def rows(self) -> int:
        """The number of public rows that nodes and channel were fitted on, to one or two."""
        held = max(target.worth.rows for target in self.targets if target.worth)
        return max(1, round(held * (1 - HELD) / HELD))

    @property
    def served(self) -> tuple[CodeTarget, ...]:
        """The targets."""
        return tuple(target for target in self.targets if target.worth is not None)

    def encode(self, inputs: npt.NDArray[Any]) -> CodedRows:
        """Return rows that ``nodes`` reads. It raises what ``inputs.encode`` raises."""
        return self.inputs.encode(inputs)

    def nodes(self, inputs: Array | CodedRows) -> Integers:
        """The node of each row, shape (n,). Private."""
        rows = coded(inputs)
        if not self.sources:
            return self.mechanism.nodes.cells(rows.dense())
        return nearest_nodes([source.shares(rows) for source in self.sources], self.logs)

    def exact(self, inputs: Array | CodedRows) -> Array:
        """The mean of what is released about each row, shape (n, outputs). Private."""
        return np.asarray(self.mechanism.matrix[self.nodes(inputs)])

    def answer(
        self, inputs: Array | CodedRows, *, sampler: Sampler
    ) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return one one-hot vector for each encoded row, shape (n, outputs). None is withheld."""
        rows = coded(inputs)
        told = self.mechanism.release(
            self.nodes(rows) if self.sources else rows.dense(), sampler=sampler
        )
        return np.eye(self.outputs)[told], np.zeros(len(told), dtype=np.bool_)

    def rehearse(self) -> None:
        """Answer about a corner of the public box, with a seed, and forget it."""
        _ = self.mechanism.event
        self.answer(self.inputs.corner[None, :], sampler=SeededSampler(0))

    def worst_pair(self, rows: CodedRows, *, random: np.random.Generator) -> Array | None:
        """Return the two encoded rows, of neighbours tried, whose chances of some code differ most.

        They have shape (2, dimension). Return None where no two differ. It is for audits and
        attacks. Tried are any two of ``rows``, or within a radius of some, or public rows nearest
        to them and those joined.

        Args:
            rows: rows, at least one.
            random: source of directions.
        """
        nodes, points = self.mechanism.nodes, dense(rows)
        if isinstance(nodes, PublicGraph):
            own = np.unique(nodes.cells(points))
            first, second = np.nonzero(nodes.hop_counts(nodes.points[own]) <= 1.0)
            start, end = nodes.points[own[first]], nodes.points[second]
        elif self.near is not None and not isinstance(nodes, AnyTwo):
            assert isinstance(self.near, Within)
            here = points[random.permutation(len(points))[:_LOOKED_AT]]
            moves = unit_moves(
                here.shape[1], Norm.parse(self.near.norm), directions=_DIRECTIONS, random=random
            )
            start = np.repeat(here, len(moves), axis=0)
            end = self.inputs.clip(start + self.near.radius * np.tile(moves, (len(here), 1)))
        else:
            _, places = np.unique(self.nodes(rows), return_index=True)
            first, second = np.triu_indices(len(places), 1)
            start, end = points[places[first]], points[places[second]]
        if not len(start):
            return None
        # Of roots: a rare code's odds may differ most, and few runs would see it.
        change = np.abs(np.sqrt(self.exact(start)) - np.sqrt(self.exact(end))).max(axis=1)
        worst = int(change.argmax())
        return np.stack([start[worst], end[worst]]) if change[worst] > 0 else None

    def target(self, name: str) -> CodeTarget:
        """The target or column of that name.

        Raises:
            InvalidParameter: there is none.
        """
        names = [target.name for target in self.targets]
        if name not in names:
            raise InvalidParameter(
                f"target={name!r}: expected one of {', '.join(map(repr, names))}"
            )
        return self.targets[names.index(name)]

    def posterior(self, name: str) -> Array:
        """Return what each output says about a target, shape (outputs, values), by
        ``CodeTarget.told``.
        """
        return self.target(name).told(self.mechanism.matrix, self.masses)

    @cached_property
    def crowd(self) -> tuple[float, float]:
        """Return how often the best guess names the right one of 64 rows.

        The first number is the mean over rows like the public ones, the second the most, whoever
        they are.
        """
        shares = self.mechanism.matrix
        worst = float(
            (shares.max(axis=0) / (shares.max(axis=0) + (CROWD - 1) * shares.min(axis=0))).max()
        )
        return Crowd(self.masses / self.masses.sum(), size=CROWD).chance(shares), worst

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``from_description`` reads."""
        inputs, arrays = self.inputs.describe()
        arrays = {**arrays, "nodes.logs": self.logs, "nodes.masses": self.masses}
        sources, targets = [], []
        for place, source in enumerate(self.sources):
            part, model = source.column, source.model
            sources.append(
                {
                    "labels": source.labels.tolist(),
                    "column": None if part is None else [part.start, part.stop],
                    "model": None if model is None else model.kind,
                    "sure": source.sure,
                }
            )
            if model is not None:
                arrays |= under(f"source{place}.", model.describe())
        for place, target in enumerate(self.targets):
            arrays[f"joint{place}"] = target.joint
            stored = {"name": target.name, "kind": target.kind, "size": target.size}
            stored["worth"] = None if target.worth is None else asdict(target.worth)
            if target.kind == LABEL:
                stored["values"] = target.values.tolist()
            else:
                arrays[f"values{place}"] = target.values
            targets.append(stored)
        channel, table = self.mechanism.describe()
        settings = {
            "inputs": inputs,
            "epsilon": self.mechanism.epsilon,
            "near": None if self.near is None else asdict(self.near),
            "sources": sources,
            "targets": targets,
            "channel": channel,
        }
        if self.sources and isinstance(self.near, NearRows):  # whose graph is not kept
            settings["adjacency"] = adjacency_to_dict(self.mechanism.adjacency)
        return settings, {**arrays, **table}

    @classmethod
    def from_description(
        cls,
        settings: dict[str, Any],
        arrays: Arrays,
        module: nn.Module | None = None,
        *,
        adjacency: Adjacency | None = None,
    ) -> CodeQuery:
        """Return the query that ``describe`` took apart, its table checked again.

        Args:
            settings: plain JSON values.
            arrays: the bundle's arrays.
            module: the user's own embedder, where the bundle was fitted with one.
            adjacency: a weaker guarantee that a code of any two inputs is stated under, or None for
                its own.

        Raises:
            InvalidInput: the user's module is missing, or another one.
            CorruptBundle: fields or arrays that are missing or do not fit together.
        """
        inputs = restored_inputs(settings.get("inputs"), arrays, module)
        with rebuilding():
            nodes = rebuilt_nodes(settings["channel"], arrays)
            near = settings["near"]
            stated: Adjacency = Replace(1) if adjacency is None else adjacency
            if isinstance(nodes, PublicGraph):
                near, stated = NearRows(**near), nodes.adjacency
            elif "adjacency" in settings:  # any is weaker than that of any two inputs
                near, stated = NearRows(**near), adjacency_from_dict(settings["adjacency"])
            elif near is not None:
                near = Within(**near)
                stated = inputs.within(Norm.parse(near.norm), near.radius)
            query = cls(
                inputs,
                tuple(
                    _stored_source(place, stored, arrays, inputs)
                    for place, stored in enumerate(settings["sources"])
                ),
                arrays["nodes.logs"],
                FiniteChannel.from_description(
                    settings["channel"],
                    arrays,
                    epsilon=settings["epsilon"],
                    adjacency=stated,
                ),
                arrays["nodes.masses"],
                tuple(
                    _stored_target(place, stored, arrays)
                    for place, stored in enumerate(settings["targets"])
                ),
                near,
            )
            query.rehearse()
        return query


def _stored_source(
    place: int, stored: dict[str, Any], arrays: Arrays, inputs: SchemaRows | EmbeddedPoints
) -> TargetSource:
    labels, sure = stored["labels"], flag(stored["sure"], name="sure")
    if stored["column"] is not None:
        part = slice(*stored["column"])
        known = isinstance(inputs, SchemaRows) and any(
            places == part for _, places, one_hot in inputs.schema.groups if one_hot
        )
        if not known or len(labels) != part.stop - part.start:
            raise CorruptBundle("bundle: a target is no column of its schema")
        return TargetSource(np.asarray(labels), None, part, sure)
    own = part_of(arrays, f"source{place}.")
    model = model_from(stored["model"], own, dimension=len(inputs.corner))
    return TargetSource(restored_labels(labels, expected=model.classes), model, None, sure)


def _stored_target(place: int, stored: dict[str, Any], arrays: Arrays) -> CodeTarget:
    kind, joint, worth = stored["kind"], arrays[f"joint{place}"], stored["worth"]
    if kind not in (LABEL, RECALL, VARIANCE):
        raise CorruptBundle("bundle: a target of no known kind")
    values = np.asarray(stored["values"]) if kind == LABEL else arrays[f"values{place}"]
    return CodeTarget(
        stored["name"],
        kind,
        values,
        joint,
        None if worth is None else TargetWorth(**worth),
        count(stored["size"], name="size", minimum=0),
    )


def nearest_nodes(shares: list[Array], logs: Array) -> Integers:
    """The node of each row: the likeliest prototype under the row's own shares of labels.

    Args:
        shares: for each target, shape (n, labels).
        logs: shape (nodes, labels of all targets).
    """
    joined = np.concatenate(shares, axis=1)
    found = np.empty(len(joined), dtype=np.int64)
    for begin in range(0, len(joined), BLOCK):
        rows = joined[begin : begin + BLOCK]
        # bit-exact: one label after the other, so a row's node does not depend on the other rows.
        worth = np.zeros((len(rows), len(logs)))
        for share, log in zip(rows.T, logs.T, strict=True):
            worth += share[:, None] * log
        found[begin : begin + BLOCK] = worth.argmax(axis=1)
    return found
