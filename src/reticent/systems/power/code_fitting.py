"""The fit of a code on public rows: public models, nodes, the channel, and its worth on rows that
neither was fitted on.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from reticent.core.arrays import Array, Booleans, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency, Replace
from reticent.core.norms import Norm
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, Shares
from reticent.mechanisms import AnyTwo, FiniteChannel
from reticent.mechanisms.finite_channel import whole_shares
from reticent.systems.power.code_query import (
    CROWD,
    HELD,
    LABEL,
    MOST_OUTPUTS,
    RECALL,
    VARIANCE,
    CodeQuery,
    CodeTarget,
    EmbeddedPoints,
    SchemaRows,
    TargetSource,
    TargetWorth,
    nearest_nodes,
)
from reticent.systems.power.code_targets import ExplainedVariance, NearRows, Recall, Within
from reticent.systems.scores import accuracy, information, log_score, roc_auc
from reticent.training.channel_tables import best_table
from reticent.training.label_tables import (
    cell_centres,
    cell_weights,
    chosen_lattice,
    correlation_ratio,
)
from reticent.training.public_models import (
    BoostedTrees,
    LinearModel,
    PublicModel,
    label_shares,
)
from reticent.training.staircases import (
    Crowd,
    Information,
    Mixture,
    Target,
    Top,
    Variance,
    best_alone,
    best_channel,
    cluster,
    codebook,
    response_on,
)

ROWS_PER_NODE = 30
"""Public rows for each node of any two inputs, at least: of fewer, a channel fits chance."""

NODES = 48
"""Nodes of any two inputs, unless another number is asked for."""

LEAST_ROWS = 75
"""Public rows, at least: two nodes, and a fifth that the card's figures come from."""

_TIES = 0.01
_CURVE = 0.5

_SCORED = {LABEL: "nats", RECALL: "recall", VARIANCE: "explained"}
_FOLDS = 4
_SMOOTHING = 0.5
_CODES = (2, 4, 8, 16, 32)
_BOOSTERS: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.1, "max_leaf_nodes": 8, "max_iter": 150},
    {"learning_rate": 0.1, "max_leaf_nodes": 4, "max_iter": 250},
)
_LARGE_TREES: tuple[dict[str, Any], ...] = (
    {"learning_rate": 0.3, "max_leaf_nodes": 16, "max_iter": 30},
    {"learning_rate": 0.3, "max_leaf_nodes": 64, "max_iter": 20},
)
"""Of more than two labels, each of which has a tree in every round."""

_QUICK: dict[str, Any] = {"learning_rate": 0.2, "max_leaf_nodes": 8, "max_iter": 40}
_FEW_TARGETS = 2  # that get larger models, of which one fold chooses
_FEW_ROWS = 2_000  # below which linear models are tried beside trees
_COMMONEST = 0.99  # share of rows that one value of a coordinate may have for trees to look at it
_MOST_TREES = 64  # coordinates of points that trees are grown on; of more, linear models
_PENALTIES = (0.003, 0.03, 0.3)
_WEAK = (0.1, 1.0, 10.0)
_TOLERANCE = 1e-3  # of gradients: a tenth of it costs twice the time for no log score
_PARTS = 0.35  # parts of the space, for each node that tells labels apart too
_MOST_CELLS = 2_000  # of a lattice
_LABEL_CELLS = 16_384  # where one label is all that is served
_CELL_WORK = 2.2e6  # of it: cells times labels times corners of a block, at most
_DRAWS = 8
_MOVED = 16_000  # rows after all moves, about
_TAIL = 5e-4
_QUERIES = 25_000  # rows whose nearest public rows are looked for, at most
_ITEMS = 2_048  # public rows that are named, at most: those that are nearest to most others
_BLOCK = 512
_TINY = 1e-6


@dataclass(frozen=True, eq=False)
class Wanted:
    """A label that was asked for: its values, and their numbers or the row's own column."""

    name: str
    labels: npt.NDArray[Any]
    numbers: Integers | None
    column: slice | None


@dataclass(frozen=True, eq=False)
class _Known:
    """The shares of a row's label, by models that have not seen the row."""

    name: str
    source: TargetSource
    shares: Array
    numbers: Integers
    folds: tuple[tuple[PublicModel, Integers], ...] = ()

    def unseen(self, dense: Array, places: Integers) -> Array:
        """Return shares at ``dense``, shape (n, d), by models that have not seen the rows at
        ``places``, shape (n,).
        """
        found = np.empty((len(places), self.shares.shape[1]))
        for model, held in self.folds:
            own = np.isin(places, held)
            found[own] = label_shares(model.scores(CodedRows.of(dense[own])))
        return found


@dataclass(frozen=True, eq=False)
class PublicRows:
    """Public rows and the targets to serve. What is computed from them serves every epsilon.

    Attributes:
        inputs: kind of inputs that codes are made of.
        rows: encoded rows.
        wanted: the labels.
        further: targets that are no labels.
        seed: seed of all fitting.
        scoring: worth of codes to a label, one of ``SCORINGS``.
        last: number of rows, the last ones, that nodes and channel are not fitted on, or None for a
            fifth, drawn at random.
    """

    inputs: SchemaRows | EmbeddedPoints
    rows: CodedRows
    wanted: tuple[Wanted, ...]
    further: tuple[Recall | ExplainedVariance, ...]
    seed: int
    scoring: str = "information"
    last: int | None = None

    @cached_property
    def dense(self) -> Array:
        """The rows in full."""
        return self.rows.dense()

    @cached_property
    def held(self) -> npt.NDArray[np.bool_]:
        """The places of rows that nodes and channel are not fitted on."""
        if self.last is not None:
            return np.arange(len(self.rows)) >= len(self.rows) - self.last
        order = np.random.default_rng(self.seed).permutation(len(self.rows))
        found = np.zeros(len(self.rows), dtype=np.bool_)
        found[order[: round(HELD * len(order))]] = True
        return found

    @cached_property
    def known(self) -> tuple[_Known, ...]:
        """The labels, with models that are fitted on all rows, and what cross-fitted ones say."""
        return tuple(self._known(wanted, np.ones_like(self.held)) for wanted in self.wanted)

    @cached_property
    def blind(self) -> tuple[_Known, ...]:
        """The labels, with models that have not seen the rows held out.

        Where a node is a place, a model tells it the labels of the rows next to it.
        """
        return tuple(self._known(wanted, ~self.held) for wanted in self.wanted)

    def _known(self, wanted: Wanted, seen: Booleans) -> _Known:
        if wanted.numbers is None:
            source = TargetSource(wanted.labels, None, wanted.column)
            shares = source.shares(self.rows)
            return _Known(wanted.name, source, shares, np.asarray(shares.argmax(axis=1)))
        numbers, dense = wanted.numbers, self.dense
        if wanted.name not in self.learners:
            splits = _splits(numbers, self.seed, np.ones_like(self.held))
            self.learners[wanted.name] = self._learner(numbers, splits)
        learnt = self.learners[wanted.name]
        folds = tuple((learnt(rows), held) for rows, held in _splits(numbers, self.seed, seen))
        source = TargetSource(wanted.labels, learnt(_learning(numbers, seen)), None)
        shares = np.empty((len(dense), len(wanted.labels)))
        known = _Known(wanted.name, source, shares, numbers, folds)
        shares[:] = known.unseen(dense, np.arange(len(dense)))
        return known

    @cached_property
    def learners(self) -> dict[str, Callable[[Integers], PublicModel]]:
        """Return the way to learn each label that was chosen."""
        return {}

    def _learner(
        self, numbers: Integers, splits: Sequence[tuple[Integers, Integers]]
    ) -> Callable[[Integers], PublicModel]:
        """A model of some rows: boosted trees, or, for points of many coordinates or where rows are
        few, a linear one if that loses less on rows that it has not seen.
        """
        trees = isinstance(self.inputs, SchemaRows) or self.dense.shape[1] <= _MOST_TREES
        few = len(self.dense) < _FEW_ROWS
        unknown = sum(wanted.numbers is not None for wanted in self.wanted)
        shapes = _BOOSTERS if numbers.max() < 2 else _LARGE_TREES
        boosters = (_QUICK,) if unknown > _FEW_TARGETS else shapes[:1] if few else shapes
        if trees and not few and len(boosters) == 1:
            return self._booster(numbers, boosters[0])
        scale = math.sqrt(float((self.dense**2).mean())) or 1.0

        def linear(places: Integers, penalty: float) -> LinearModel:
            with warnings.catch_warnings():
                # Weights after 200 steps are as public, and valid, as any others.
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = LogisticRegression(C=penalty, tol=_TOLERANCE, max_iter=200).fit(
                    self.dense[places] / scale, numbers[places]
                )
            model = LinearModel.from_sklearn(found)
            return replace(model, weight=model.weight / scale)

        def score(learnt: Callable[[Integers], PublicModel]) -> float:
            found = []
            for first, held in splits if few else splits[:1]:
                scores = learnt(first).scores(CodedRows.of(self.dense[held]))
                right = np.eye(scores_of(scores))[numbers[held]]
                found.append(log_score(label_shares(scores), right))
            return float(np.mean(found))

        tried: list[Callable[[Integers], PublicModel]] = []
        if trees:
            tried += [self._booster(numbers, settings) for settings in boosters]
        if few or not trees:
            penalties = _WEAK if trees else _PENALTIES
            tried += [partial(linear, penalty=penalty) for penalty in penalties]
        return max(tried, key=score)

    def _booster(
        self, numbers: Integers, settings: dict[str, Any]
    ) -> Callable[[Integers], BoostedTrees]:
        dense, used = self.dense, _varying(self.dense)
        booster = HistGradientBoostingClassifier(
            **settings, l2_regularization=1.0, early_stopping=False, random_state=self.seed
        )

        def learnt(places: Integers) -> BoostedTrees:
            fitted = booster.fit(dense[places][:, used], numbers[places])
            return BoostedTrees.from_sklearn(fitted).among(used, dimension=dense.shape[1])

        return learnt

    def nearest(self, target: Recall) -> tuple[Integers, Integers]:
        """Return rows that are asked about, shape (q,), and the nearest of the rows that are looked
        for.

        The row itself is left out. They have shape (q, k), the nearest first.
        """
        index = np.arange(len(self.rows) if target.rows is None else target.rows)
        if target.k + 1 >= len(index) or len(index) > len(self.rows):
            raise InvalidInput(
                f"{target.name}: expected more than {target.k + 1} rows to look for, and at most "
                f"the {len(self.rows)} of X, got rows={len(index)}"
            )
        random, k = np.random.default_rng(self.seed), target.k
        asked = np.sort(random.permutation(len(self.rows))[:_QUERIES])
        points = self.dense.astype(np.float32)
        lengths = (points[index] ** 2).sum(axis=1)
        found = np.empty((len(asked), k), dtype=np.int64)
        for begin in range(0, len(asked), _BLOCK):
            part = asked[begin : begin + _BLOCK]
            near = 2.0 * points[part] @ points[index].T - lengths
            itself = part < len(index)
            near[np.flatnonzero(itself), part[itself]] = -np.inf
            best = np.argpartition(-near, k - 1, axis=1)[:, :k]
            order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1, kind="stable")
            found[begin : begin + _BLOCK] = np.take_along_axis(best, order, axis=1)
        return asked, found


def _learning(numbers: Integers, seen: Booleans) -> Integers:
    """Return the places of rows that are seen, or of all where these lack a label."""
    enough = len(np.unique(numbers[seen])) > numbers.max()
    return np.flatnonzero(seen) if enough else np.arange(len(numbers))


def _splits(numbers: Integers, seed: int, seen: Booleans) -> list[tuple[Integers, Integers]]:
    """Return rows to learn from, of those that are seen, and rows held out, every label spread over
    all folds.

    A label whose only row is held out cannot be learnt without it.
    """
    random = np.random.default_rng(seed)
    order = np.lexsort((random.random(len(numbers)), numbers))
    folds = np.empty(len(numbers), dtype=np.int64)
    folds[order] = np.arange(len(numbers)) % _FOLDS
    return [
        (_learning(numbers, seen & (folds != fold)), np.flatnonzero(folds == fold))
        for fold in range(_FOLDS)
    ]


def scores_of(scores: Array) -> int:
    """Return how many labels scores tell apart."""
    return max(int(scores.shape[1]), 2)


def _varying(dense: Array) -> Integers:
    """Return coordinates whose commonest value leaves one row in a hundred, or all of them."""
    often = [np.unique(column, return_counts=True)[1].max() for column in dense.T]
    used = np.flatnonzero(np.array(often) < _COMMONEST * len(dense))
    return used if len(used) else np.arange(dense.shape[1])


@dataclass(frozen=True, eq=False)
class CodeNodes:
    """A public map to nodes, which serves every epsilon.

    Attributes:
        public: the rows that it is made of.
        sources, logs: attributes of ``CodeQuery``.
        cells: the nodes.
        adjacency: definition of neighbours.
        near: attribute of ``CodeQuery``.
        members: shape (n,), the node of each public row.
    """

    public: PublicRows
    sources: tuple[TargetSource, ...]
    logs: Array
    cells: AnyTwo | Lattice | PublicGraph
    adjacency: Adjacency
    near: Within | NearRows | None
    members: Integers

    @cached_property
    def masses(self) -> Array:
        """The shares of the rows that were fitted on, smoothed, shape (nodes,)."""
        kept = self.members[~self.public.held]
        counts = np.bincount(kept, minlength=self.cells.size) + self.smoothing
        return np.asarray(counts / counts.sum())

    @property
    def smoothing(self) -> float:
        """Rows that are added to every node: half a one, or as many in all as there are rows."""
        return min(_SMOOTHING, np.count_nonzero(~self.public.held) / self.cells.size)

    @cached_property
    def targets(self) -> tuple[CodeTarget, ...]:
        """The targets without what they are worth."""
        found = [
            CodeTarget(known.name, LABEL, known.source.labels, self._joint(known), None)
            for known in (
                self.public.known if isinstance(self.cells, AnyTwo) else self.public.blind
            )
        ]
        for target in self.public.further:
            if isinstance(target, Recall):
                items, joint = self._recall(target)
                found.append(CodeTarget(target.name, RECALL, items, joint, None, target.k))
            else:
                mean, joint = self._moments()
                found.append(CodeTarget(target.name, VARIANCE, mean, joint, None))
        return tuple(found)

    @cached_property
    def singles(self) -> tuple[CodeNodes, ...]:
        """Return for each target nodes that are made for it alone: what it could have is theirs.

        They are those of all, where a target is no label, nodes are no clusters, or nothing can be
        told of it alone.
        """
        if not isinstance(self.cells, AnyTwo) or len(self.targets) == 1:
            return (self,) * len(self.targets)
        found = []
        for known in self.public.known:
            part = replace(self.public, wanted=(), further=())
            vars(part)["known"] = (known,)  # its models are there already
            found.append(_any_two(part, self.cells.size) or self)
        return (*found, *(self,) * len(self.public.further))

    def single(self, place: int) -> tuple[CodeNodes, int]:
        """The nodes made for a target, and the target's place among those that they serve."""
        nodes = self.singles[place]
        return nodes, place if nodes is self else 0

    @cached_property
    def others(self) -> tuple[CodeTarget, ...]:
        """The other columns of categories that rows hold."""
        inputs, found = self.public.inputs, []
        if not isinstance(inputs, SchemaRows):
            return ()
        taken = {target.name for target in self.targets}
        for part, (name, places, one_hot) in zip(
            inputs.schema.attributes, inputs.schema.groups, strict=True
        ):
            if one_hot and name not in taken:
                values = np.asarray(getattr(part, "categories", range(places.stop - places.start)))
                numbers = np.asarray(self.public.dense[:, places].argmax(axis=1))
                joint = self._counted(numbers, len(values))
                found.append(CodeTarget(name, LABEL, values, joint, None))
        return tuple(found)

    @cached_property
    def tasks(self) -> tuple[Target, ...]:
        """Return what columns are worth to each target."""
        return tuple(self._task(target) for target in self.targets)

    def _task(self, target: CodeTarget) -> Target:
        if target.kind == LABEL:
            return self._label_task(target.joint)
        if target.kind == RECALL:
            return Top(target.joint, target.size)
        dense = self.public.dense[~self.public.held]
        return Variance(target.joint / math.sqrt(float(dense.var(axis=0).sum())), self.masses)

    def _label_task(self, joint: Array) -> Target:
        """Return what ``scoring`` asks for, as a sum over codes.

        The area under the curve is none: the nats and half the accuracy stand for it. Nats break
        ties of accuracies.
        """
        scoring, shares, told = self.public.scoring, joint.sum(axis=0), Information(joint)
        if scoring == "information":
            return told
        balanced = scoring == "balanced_accuracy"
        right = Top(joint / (shares * len(shares)) if balanced else joint)
        if not isinstance(self.cells, AnyTwo):
            return told if scoring == "auc" else right
        if scoring == "auc":
            return Mixture((told, right), (1.0, _CURVE))
        return Mixture((right, told), (1.0, _TIES))

    def _joint(self, known: _Known) -> Array:
        """Return shares of node and label together.

        They are what models say, and where nodes are few counts of rows. Beside these what models
        say weighs as much as ``ROWS_PER_NODE``: of few rows counts are chance. Cells of a lattice
        may be more than the rows, so models speak at rows that are moved and at cells' centres.
        """
        kept = ~self.public.held
        if isinstance(self.cells, Lattice) and known.folds:
            return self._spread(known, self.cells)
        sums = np.stack(
            [
                np.bincount(self.members[kept], part, self.cells.size)
                for part in known.shares[kept].T
            ],
            axis=1,
        )
        prior = known.shares[kept].mean(axis=0)
        sums += self.smoothing * np.maximum(prior, _TINY)
        if isinstance(self.cells, AnyTwo):
            said = ROWS_PER_NODE * sums / sums.sum(axis=1, keepdims=True)
            counts = np.zeros(sums.shape)
            np.add.at(counts, (self.members[kept], known.numbers[kept]), 1.0)
            rows = counts.sum(axis=1, keepdims=True) + _SMOOTHING
            sums = rows * (counts + said) / (rows + ROWS_PER_NODE)
        return np.asarray(sums / sums.sum())

    def _spread(self, known: _Known, cells: Lattice) -> Array:
        """Return shares of cell and label together, by models at rows that are moved at random, and
        at the centres of cells.
        """
        kept = np.flatnonzero(~self.public.held)
        rows, seed = self.public.dense[kept], self.public.seed
        draws = min(_DRAWS, max(1, _MOVED // len(kept)))

        def said(points: Array) -> Array:
            return known.unseen(points, kept)

        weights = cell_weights(rows, said, lattice=cells, seed=seed, draws=draws)
        centres = known.source.shares(CodedRows.of(cell_centres(rows, cells)))
        sums = len(kept) * weights.T + self.smoothing * np.maximum(centres, _TINY)
        return np.asarray(sums / sums.sum())

    def _counted(self, numbers: Integers, labels: int) -> Array:
        """Return shares of rows in each node with each label, smoothed by rows that are spread as
        the label shares are.
        """
        kept, counts = ~self.public.held, np.zeros((self.cells.size, labels))
        np.add.at(counts, (self.members[kept], numbers[kept]), 1.0)
        prior = (counts.sum(axis=0) + _SMOOTHING) / (counts.sum() + _SMOOTHING * labels)
        counts += self.smoothing * prior
        return np.asarray(counts / counts.sum())

    @cached_property
    def neighbours(self) -> dict[str, tuple[Integers, Integers]]:
        """The nearest rows, by the target's name."""
        asked = [one for one in self.public.further if isinstance(one, Recall)]
        return {one.name: self.public.nearest(one) for one in asked}

    def _recall(self, target: Recall) -> tuple[Integers, Array]:
        """Return public rows that are near to many, and shares of inputs in each node.

        A share is of the inputs that have the row among their k nearest, divided by k.
        """
        (asked, near), k = self.neighbours[target.name], target.k
        own = ~self.public.held[asked]
        lists, nodes = near[own], self.members[asked[own]]
        often = np.bincount(lists.ravel(), minlength=len(self.public.rows))
        items = np.sort(np.argsort(-often, kind="stable")[: min(_ITEMS, np.count_nonzero(often))])
        if len(items) <= k:
            raise InvalidInput(f"{target.name}: expected more different public rows")
        place = np.full(len(often), -1)
        place[items] = np.arange(len(items))
        joint = np.zeros((self.cells.size, len(items)))
        columns = place[lists]
        found = columns >= 0
        np.add.at(joint, (np.repeat(nodes, k)[found.ravel()], columns[found]), 1.0)
        return items, np.asarray(joint / (k * len(lists)))

    def _moments(self) -> tuple[Array, Array]:
        """The mean of the rows, and for each node its mass times its mean less that."""
        kept = ~self.public.held
        dense, members = self.public.dense[kept], self.members[kept]
        mean = dense.mean(axis=0)
        sums = np.stack(
            [np.bincount(members, part, self.cells.size) for part in (dense - mean).T], axis=1
        )
        return mean, np.asarray(sums / len(dense))

    def best(
        self,
        epsilon: float,
        *,
        weights: Sequence[float] | None = None,
        crowd: float | None = None,
    ) -> CodeQuery:
        """Return the best release at ``epsilon`` for these nodes.

        Args:
            epsilon: epsilon, above 0.
            weights: weights of the targets, or None for equal shares.
            crowd: the largest chance of the best guess among 64, or None for any.
        """
        tasks = self.tasks
        alone = [self.alone_at(place, epsilon) for place in range(len(tasks))]
        whole = []
        for place, table in enumerate(alone):
            nodes, own = self.single(place)
            whole.append(max(float(nodes.tasks[own].value(table.T).sum()), _TINY))
        if len(tasks) == 1 and crowd is None:
            shares = self._shares(alone[0], epsilon)
        else:
            shares = self._together(epsilon, whole, weights, crowd)
        channel = FiniteChannel(
            nodes=self.cells, shares=shares, epsilon=epsilon, adjacency=self.adjacency
        )
        part = epsilon / len(tasks)
        worths = []
        for place, task in enumerate(tasks):
            split = self.alone_at(place, part) if len(tasks) > 1 else alone[place]
            kept = float(task.value(channel.matrix.T).sum()) / whole[place]
            worths.append(self._worth(place, channel.matrix, alone[place], split, kept))
        served = tuple(
            replace(target, worth=worth) for target, worth in zip(self.targets, worths, strict=True)
        )
        return CodeQuery(
            self.public.inputs,
            self.sources,
            self.logs,
            channel,
            self.masses,
            served + self.others,
            self.near,
        )

    def _together(
        self,
        epsilon: float,
        whole: list[float],
        weights: Sequence[float] | None,
        crowd: float | None,
    ) -> Shares:
        """Return shares of the best channel for all targets, shape (outputs, nodes)."""
        if not isinstance(self.cells, AnyTwo):
            return best_table(
                self.tasks,
                cells=self.cells,
                epsilon=epsilon,
                weights=weights,
                whole=whole,
                starts=self.codebooks(epsilon),
            )
        kinds = (Information, Mixture)  # of labels
        labels = [task for task in self.tasks if isinstance(task, kinds)]
        found = best_channel(
            self.tasks,
            nodes=self.cells.size,
            epsilon=epsilon,
            weights=weights,
            whole=whole if weights is None else None,
            crowd=None if crowd is None else Crowd(self.masses, crowd, CROWD),
            starts=[*self.codebooks(epsilon), *(self.alone(task, epsilon) for task in labels)],
            seed=self.public.seed,
        )
        return self._shares(found.table, epsilon)

    def _shares(self, table: Array, epsilon: float) -> Shares:
        """A table of any two in whole shares, or the shares that a table of others was made of."""
        if not isinstance(self.cells, AnyTwo):
            return np.asarray(np.rint(table.T * WHOLE), dtype=np.uint32)
        used = np.sort(np.argsort(-table.max(axis=0), kind="stable")[:MOST_OUTPUTS])
        kept = table[:, used] / table[:, used].sum(axis=1, keepdims=True)
        return whole_shares(kept, epsilon=epsilon)

    @cached_property
    def codes(self) -> tuple[Integers, ...]:
        """Return codebooks of nodes, the code of each node in each: they serve every epsilon."""
        tables = [
            target.joint / target.joint.sum(axis=1, keepdims=True)
            for target in self.targets
            if target.kind == LABEL
        ]
        return tuple(
            codebook(tables, self.masses, codes=codes, seed=self.public.seed)
            for codes in _CODES
            if tables and codes < self.cells.size
        )

    def codebooks(self, epsilon: float) -> list[Array]:
        """Return starts: codebooks of nodes with randomised response, shape (nodes, codes) each."""
        return [response_on(members, epsilon=epsilon) for members in self.codes]

    def alone_at(self, place: int, epsilon: float) -> Array:
        """The best table for one target on the nodes that are made for it."""
        if (place, epsilon) not in self.kept:
            nodes, own = self.single(place)
            self.kept[place, epsilon] = nodes.alone(nodes.tasks[own], epsilon)
        return self.kept[place, epsilon]

    @cached_property
    def kept(self) -> dict[tuple[int, float], Array]:
        """Return tables that ``alone_at`` has made."""
        return {}

    def alone(self, task: Target, epsilon: float) -> Array:
        """The best table for one target, shape (nodes, answers)."""
        if isinstance(self.cells, AnyTwo):
            return best_alone(
                task,
                nodes=self.cells.size,
                epsilon=epsilon,
                starts=self.codebooks(epsilon),
                seed=self.public.seed,
            )
        shares = best_table(
            [task],
            cells=self.cells,
            epsilon=epsilon,
            weights=[1.0],
            whole=[1.0],
            starts=self.codebooks(epsilon),
        )
        return np.asarray(shares.T / WHOLE)

    def _worth(
        self, place: int, released: Array, alone: Array, split: Array, kept: float
    ) -> TargetWorth:
        """Return what a release is worth for one target on rows that were held out."""
        found: dict[str, dict[str, float]] = {}
        error, constant = 0.0, np.ones((self.cells.size, 1))
        nodes, own = self.single(place)
        for name, made, at, table in (
            ("released", self, place, released),
            ("constant", self, place, constant),
            ("alone", nodes, own, alone),
            ("split", nodes, own, split),
        ):
            found[name], each = made.held_scores(at, table)
            if name == "released" and len(each):
                error = float(each.std() / math.sqrt(len(each)))
        return TargetWorth(
            kept=kept, held=found, error=error, rows=int(np.count_nonzero(self.public.held))
        )

    def held_scores(self, place: int, table: Array) -> tuple[dict[str, float], Array]:
        """Return what a table is worth for one target on rows that were held out.

        Return also what each of them adds to the first score.
        """
        target, held = self.targets[place], np.flatnonzero(self.public.held)
        if target.kind == LABEL:
            return self._label_scores(target, table, held, self.public.known[place].numbers[held])
        if target.kind == RECALL:
            return self._recall_scores(target, table)
        return self._variance_scores(target, table, held)

    def _label_scores(
        self, target: CodeTarget, table: Array, held: Integers, numbers: Integers
    ) -> tuple[dict[str, float], Array]:
        posterior, chances = target.told(table, self.masses), table[self.members[held]]
        weights = np.zeros(posterior.shape)
        for label in range(posterior.shape[1]):
            weights[:, label] = chances[numbers == label].sum(axis=0)
        each = -(chances * np.log(posterior[:, numbers].T)).sum(axis=1)
        return {
            "log loss": -log_score(posterior, weights),
            "AUC": roc_auc(posterior, weights),
            "accuracy": accuracy(posterior.argmax(axis=1), weights),
            "nats": information(posterior, weights),
        }, each

    def _recall_scores(self, target: CodeTarget, table: Array) -> tuple[dict[str, float], Array]:
        asked, near = self.neighbours[target.name]
        held = self.public.held[asked]
        told, k = target.told(table, self.masses), target.size
        named = target.values[np.argpartition(-told, k - 1, axis=1)[:, :k]]
        right = np.stack([np.isin(near[held], items).mean(axis=1) for items in named], axis=1)
        each = (table[self.members[asked[held]]] * right).sum(axis=1)
        return {"recall": float(each.mean()) if len(each) else 0.0}, each

    def _variance_scores(
        self, target: CodeTarget, table: Array, held: Integers
    ) -> tuple[dict[str, float], Array]:
        told, chances = target.told(table, self.masses), table[self.members[held]]
        rows = self.public.dense[held]
        apart = (rows**2).sum(axis=1)[:, None] - 2.0 * rows @ told.T + (told**2).sum(axis=1)
        total = ((rows - target.values) ** 2).sum(axis=1)
        each = 1.0 - (chances * apart).sum(axis=1) / max(float(total.mean()), _TINY)
        lost = float((chances * apart).sum(axis=1).mean()) / max(float(total.mean()), _TINY)
        return {"explained": 1.0 - lost}, each


def best_code(
    public: PublicRows,
    neighbours: Within | NearRows | None,
    *,
    most: int,
    epsilon: float,
    weights: Sequence[float] | None = None,
    crowd: float | None = None,
) -> CodeQuery:
    """Return the best release. With ``neighbours`` it is that of any two inputs, which promises
    more, unless a release for these is worth more for the target that it serves least.

    What releases are worth is what they have above the constant on rows that were held out, as a
    share of the larger one.

    Args:
        public, neighbours, most: arguments of ``code_nodes``.
        epsilon, weights, crowd: arguments of ``CodeNodes.best``.

    Raises:
        InvalidInput: nothing can be told of these rows.
    """
    made = code_nodes(public, neighbours, most=most)
    nodes = None if neighbours is None else _any_two(public, most)
    if nodes is None:
        return made.best(epsilon, weights=weights, crowd=crowd)
    other = nodes.best(epsilon, weights=weights)
    if made.codebooks(epsilon):  # where cells are one or two, or no target is a label, none is
        found = made.best(epsilon, weights=weights)
        gains = [
            np.array([_gain(target, public.scoring) for target in one.served])
            for one in (found, other)
        ]
        shares = [gain / np.maximum(np.maximum(*gains), _TINY) for gain in gains]
        if shares[0].min() > shares[1].min():
            return found
    # Stated for the neighbours that were asked for: budgets are of these.
    channel = replace(other.mechanism, adjacency=made.adjacency)
    return replace(other, mechanism=channel, near=neighbours)


def _gain(target: CodeTarget, scoring: str) -> float:
    """Return what a release is worth for a target on rows held out, above the constant.

    It is by the score that is maximised for the target.
    """
    assert target.worth is not None
    held, name = target.worth.held, _SCORED[target.kind]
    if target.kind == LABEL and scoring == "accuracy":
        name = scoring
    return held["released"][name] - held["constant"][name]


def code_nodes(public: PublicRows, neighbours: Within | NearRows | None, *, most: int) -> CodeNodes:
    """Return a public map to nodes.

    Args:
        public: rows and targets.
        neighbours: definition of neighbours, or None for any two inputs.
        most: most nodes of any two inputs.

    Raises:
        InvalidInput: nothing can be told of these rows.
    """
    if neighbours is None:
        nodes = _any_two(public, most)
        if nodes is None:
            raise InvalidInput("y: public models say the same of every row; nothing can be told")
        return nodes
    dense, inputs = public.dense, public.inputs
    cells: Lattice | PublicGraph
    if isinstance(neighbours, Within):
        radius, norm = neighbours.radius, Norm.parse(neighbours.norm)
        cells, adjacency = _lattice(public, radius), inputs.within(norm, radius)
    else:
        cells = _graph(public, neighbours)
        adjacency = cells.adjacency
    members = cells.cells(dense)
    return CodeNodes(public, (), np.zeros((0, 0)), cells, adjacency, neighbours, members)


def _graph(public: PublicRows, near: NearRows) -> PublicGraph:
    """Return public rows drawn at random, no two alike, and joined."""
    order = np.random.default_rng(public.seed).permutation(np.flatnonzero(~public.held))
    _, first = np.unique(public.dense[order], axis=0, return_index=True)
    chosen = order[np.sort(first)[: near.nodes]]
    points, labels = public.dense[chosen], {one.name: one.numbers for one in public.known}
    if near.other is None:
        found = PublicGraph.nearest(points, neighbours=near.neighbours)
    elif near.other not in labels:
        raise InvalidParameter(f"neighbours: other={near.other!r}: expected a label that is served")
    else:
        found = PublicGraph.counterfactual(
            points, labels[near.other][chosen], neighbours=near.neighbours
        )
    return replace(found, origin=public.inputs.within(Norm.L2, 1.0).identity)


def _any_two(public: PublicRows, most: int) -> CodeNodes | None:
    """Return nodes by clusters of what is said of rows, which lose least information about targets.

    Return None where public models say the same of every row.
    """
    sources = [known.source for known in public.known]
    shares, kept = [known.shares for known in public.known], ~public.held
    nodes = min(most, max(2, int(kept.sum()) // ROWS_PER_NODE))
    if public.further:
        share = _PARTS if sources else 1.0
        source = _parts(public.dense[kept], max(2, round(share * nodes)), public.seed)
        sources.append(source)
        shares.append(source.shares(public.rows))
    logs, _ = cluster([share[kept] for share in shares], clusters=nodes, seed=public.seed)
    if len(logs) < 2:
        return None
    members = nearest_nodes(shares, logs)
    return CodeNodes(public, tuple(sources), logs, AnyTwo(len(logs)), Replace(1), None, members)


def _parts(dense: Array, parts: int, seed: int) -> TargetSource:
    """Return parts of the space by nearest centres, as a linear model whose largest score
    counts.
    """
    from sklearn.cluster import KMeans

    found = KMeans(parts, n_init=1, max_iter=30, random_state=seed).fit(dense)
    centres = np.asarray(found.cluster_centers_, dtype=np.float64)
    model = LinearModel(np.ascontiguousarray(centres.T), -0.5 * (centres**2).sum(axis=1))
    return TargetSource(np.arange(len(centres)), model, None, sure=True)


def _lattice(public: PublicRows, radius: float) -> Lattice:
    """Return ``chosen_lattice`` over the coordinates that tell labels apart best, or that vary most
    where there are none.
    """
    points = public.dense[~public.held]
    ratings = points.var(axis=0)
    if public.known:
        told = (correlation_ratio(points, known.numbers[~public.held]) for known in public.known)
        ratings = np.sum(list(told), axis=0)
    only = not public.further and len(public.known) == 1

    def fits(shape: Sequence[int]) -> bool:
        most: float = min(_MOST_CELLS, 4 * len(points))
        if only:
            axes = sum(size > 1 for size in shape)
            most = min(_LABEL_CELLS, _CELL_WORK / (public.known[0].shares.shape[1] * 2**axes))
        return math.prod(shape) <= most

    return chosen_lattice(points, ratings, radius=radius, tail=_TAIL, fits=fits)
