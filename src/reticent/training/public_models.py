"""Public models of encoded rows as plain arrays: boosted trees and linear models, which a bundle
can hold and numpy can evaluate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle, UnknownName

Nodes = npt.NDArray[np.int32]

BLOCK = 2**11
"""Rows that trees are walked for at a time."""

_VALUES_AT_ONCE, _MOST_AT_ONCE = 2**18, 2**12
_MOST_BITS = 2**29

LEAF = -1
"""Stands for the coordinate that a leaf compares: none."""

_LARGEST = 2.0**100

_NO_CATEGORIES = np.zeros((0, 8), dtype=np.uint32)
_NO_PLACES = np.zeros(0, dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Sums of regression trees, one sum for each class (one sum, of the second class, for two).

    Nodes of all trees stand one after another. Those of one tree are consecutive, its root first.

    Attributes:
        feature: the encoded coordinate that is compared, -1 in a leaf, shape (nodes,), int32.
        threshold: the largest coordinate of rows that go left, shape (nodes,).
        left, right: children, further on in the arrays, 0 in a leaf, shape (nodes,), int32.
        value: the amount that a leaf adds to the score, 0 elsewhere, shape (nodes,).
        roots: the node where each tree begins, shape (rounds, scores), int32.
        start: scores before the first tree, shape (scores,).
        dimension: coordinates of an encoded row.

    References:
        - Friedman (2001), "Greedy function approximation: a gradient boosting machine",
          doi:10.1214/aos/1013203451.

    See Also:
        reticent.PowerEncoder: chooses among public models.
    """

    feature: npt.NDArray[np.int32]
    threshold: Array
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Array
    roots: npt.NDArray[np.int32]
    start: Array
    dimension: int

    kind: ClassVar[str] = "boosted"

    def __post_init__(self) -> None:
        nodes = len(self.feature)
        whole = (
            all(
                part.dtype == np.int32 for part in (self.feature, self.left, self.right, self.roots)
            )
            and all(part.dtype == np.float64 for part in (self.threshold, self.value, self.start))
            and all(
                part.shape == (nodes,)
                for part in (self.threshold, self.left, self.right, self.value)
            )
            and self.roots.ndim == 2
            and self.start.shape == self.roots.shape[1:]
            and len(self.start) >= 1
        )
        if not whole:
            raise CorruptBundle("bundle: arrays of its boosted trees do not fit together")
        walks = is_walkable(self.feature, self.left, self.right, self.roots, self.dimension)
        if not (walks and _bounded(self.threshold, self.value, self.start)):
            raise CorruptBundle("bundle: its boosted trees have no end, or weights beyond 2^100")

    @property
    def classes(self) -> int:
        """The number of classes."""
        return max(len(self.start), 2)

    @cached_property
    def _walks(self) -> list[Walk]:
        return walks_of(self, self.value)

    @cached_property
    def _remaining(self) -> dict[tuple[bytes, float], RemainingLeaves | None]:
        return {}

    def scores(self, rows: CodedRows) -> Array:
        """Return scores before the logistic function or softmax, shape (n, scores), each row's from
        that row alone.
        """
        key = (rows.places.tobytes(), rows.one)
        if key not in self._remaining:
            self._remaining[key] = RemainingLeaves.of(self, rows.places, rows.one)
        remaining = self._remaining[key]
        size = BLOCK if remaining is None else remaining.rows
        found = np.empty((len(self.start), len(rows)))
        for begin in range(0, len(rows), size):
            part, some = rows.part(slice(begin, begin + size)), found[:, begin : begin + size]
            values = self._walked(part) if remaining is None else remaining.values(part)
            # bit-exact: trees in their order, one addition each.
            some[:] = self.start[:, None]
            for place, value in enumerate(values):
                some[place % len(some)] += value
        return np.ascontiguousarray(found.T)

    def _walked(self, rows: CodedRows) -> Iterator[Array]:
        dense = rows.dense()
        return (walk(dense) for walk in self._walks)

    def describe(self) -> Arrays:
        """Return named arrays that ``model_from`` reads."""
        names = ("feature", "threshold", "left", "right", "value", "roots", "start")
        return {f"model.{name}": np.asarray(getattr(self, name)) for name in names}

    @classmethod
    def from_sklearn(cls, model: Any) -> BoostedTrees:
        """Return the trees of a fitted ``HistGradientBoostingClassifier`` without categorical
        columns.

        Encoded rows have no missing numbers, so where they would go is left out.
        """
        parts: list[Any] = []
        roots = np.zeros((len(model._predictors), model.n_trees_per_iteration_), dtype=np.int32)
        begin = 0
        for round_, trees in enumerate(model._predictors):
            for score, tree in enumerate(trees):
                nodes = tree.nodes
                inner = nodes["is_leaf"] == 0
                parts.append(
                    (
                        np.where(inner, nodes["feature_idx"], LEAF).astype(np.int32),
                        np.where(inner, nodes["num_threshold"], 0.0),
                        np.where(inner, nodes["left"] + begin, 0).astype(np.int32),
                        np.where(inner, nodes["right"] + begin, 0).astype(np.int32),
                        np.where(inner, 0.0, nodes["value"]),
                    )
                )
                roots[round_, score] = begin
                begin += len(nodes)
        feature, threshold, left, right, value = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        start = np.asarray(model._baseline_prediction, dtype=np.float64).ravel()
        columns = int(model.n_features_in_)
        return cls(feature, threshold, left, right, value, roots, start, columns)

    def among(self, used: Integers, *, dimension: int) -> BoostedTrees:
        """Return the same trees for rows of more coordinates.

        Args:
            used: the coordinates of the longer rows that the trees read, shape (own dimension,).
            dimension: coordinates of a longer row.
        """
        feature = np.where(self.feature == LEAF, LEAF, used[np.maximum(self.feature, 0)])
        return replace(self, feature=feature.astype(np.int32), dimension=dimension)


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Affine scores of encoded rows, one for each class (one, of the second class, for two).

    Attributes:
        weight: shape (dimension, scores).
        start: shape (scores,).

    References:
        - Cox (1958), "The regression analysis of binary sequences",
          doi:10.1111/j.2517-6161.1958.tb00292.x.

    See Also:
        reticent.PowerEncoder: chooses among public models.
    """

    weight: Array
    start: Array

    kind: ClassVar[str] = "linear"

    def __post_init__(self) -> None:
        fits = (
            self.weight.ndim == 2
            and self.weight.dtype == self.start.dtype == np.float64
            and self.start.shape == self.weight.shape[1:]
            and len(self.start) >= 1
        )
        if not (fits and _bounded(self.weight, self.start)):
            raise CorruptBundle("bundle: weights of its linear model do not fit together")

    @property
    def dimension(self) -> int:
        """The number of coordinates of an encoded row."""
        return len(self.weight)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return max(len(self.start), 2)

    def scores(self, rows: CodedRows) -> Array:
        """Return scores before the logistic function or softmax, shape (n, scores), each row's from
        that row alone.
        """
        return np.asarray(rows.times(self.weight) + self.start)

    def describe(self) -> Arrays:
        """Return named arrays that ``model_from`` reads."""
        return {"model.weight": self.weight, "model.start": self.start}

    @classmethod
    def from_sklearn(cls, model: Any) -> LinearModel:
        """Return the weights of a fitted ``LogisticRegression``."""
        return cls(
            np.ascontiguousarray(model.coef_.T, dtype=np.float64),
            np.asarray(model.intercept_, dtype=np.float64),
        )


class Trees(Protocol):
    """Nodes of trees one after another, as ``BoostedTrees`` has them."""

    @property
    def feature(self) -> Nodes:
        """The coordinate that each node compares, -1 in a leaf."""

    @property
    def threshold(self) -> npt.NDArray[np.floating[Any]]:
        """The largest coordinate of rows that go left."""

    @property
    def left(self) -> Nodes:
        """The node that those go to."""

    @property
    def right(self) -> Nodes:
        """The node that the others go to."""

    @property
    def roots(self) -> Nodes:
        """The node where each tree begins. Those of one tree are consecutive, its root first."""


@dataclass(frozen=True, eq=False)
class RemainingLeaves:
    """The leaves of all trees that a row can still be in, as bits, so that a row is read column by
    column and not node by node.

    A tree's leaves are numbered from the left. Where a row goes right, the leaves below the left
    child are out of reach. Of those that remain after all comparisons, on its way or not, the first
    is the row's own. So a column contributes one word for each tree, by the value there.

    Attributes:
        words: shape (entries, trees), one bit for each leaf that remains. In the first entry all
            remain.
        numbers: for each column of numbers that trees read its place in the rows, its thresholds,
            rising, and its first entry in ``words``, that of a number below them all.
        entries: shape (dimension,), the entry of a coordinate that is ``one``.
        leaves: value of each leaf of each tree, flat.
        firsts: shape (trees,), the first leaf of each tree in ``leaves``.
        start: shape (trees,), the leaves that remain where coordinates outside ``numbers`` are 0.

    References:
        - Lucchese et al. (2015), "QuickScorer: a fast algorithm to rank documents with additive
          ensembles of regression trees", doi:10.1145/2766462.2767733, theorem 1.
    """

    words: npt.NDArray[Any]
    numbers: tuple[tuple[int, Array, int], ...]
    entries: Integers
    leaves: Array
    firsts: Integers
    start: npt.NDArray[Any]

    @classmethod
    def of(cls, trees: BoostedTrees, places: Nodes, one: float) -> RemainingLeaves | None:
        """Return the leaves of ``trees`` for numbers in ``places`` and ``one`` of at least 0.

        Return None where a tree has more than 64 leaves, or nodes of several parents, or where
        words take too much memory.
        """
        roots, inner = trees.roots.ravel(), np.flatnonzero(trees.feature != LEAF)
        children = np.sort(np.concatenate([trees.left[inner], trees.right[inner], roots]))
        if not (np.diff(roots) > 0).all() or not np.array_equal(
            children, np.arange(len(trees.feature))
        ):
            return None
        first, number = _leaf_numbers(trees)
        most = int(number[roots].max())
        width = next((bits for bits in (8, 16, 32, 64) if most <= bits), None)
        if width is None or len(inner) * len(roots) * width > _MOST_BITS:
            return None
        kind, ones = np.dtype(f"u{width // 8}"), 2**width - 1
        tree = np.searchsorted(roots, np.arange(len(number)), side="right") - 1
        leaves = np.zeros((len(roots), width))
        ends = np.flatnonzero(trees.feature == LEAF)
        leaves[tree[ends], first[ends]] = trees.value[ends]
        # What is left where a row goes right: all but the leaves below the left child.
        kept = [
            ones ^ (((1 << count) - 1) << begin)
            for begin, count in zip(
                first[trees.left[inner]].tolist(), number[trees.left[inner]].tolist(), strict=True
            )
        ]
        order = np.lexsort((trees.threshold[inner], trees.feature[inner]))
        inner, kept_words = inner[order], np.array(kept, dtype=kind)[order]
        feature, threshold = trees.feature[inner], trees.threshold[inner]
        start = np.array([2**count - 1 for count in number[roots].tolist()], dtype=kind)
        words: list[Any] = [np.full((1, len(roots)), ones, dtype=kind)]
        numbers, entries, entry = [], np.zeros(trees.dimension, dtype=np.int64), 1
        columns = {int(coordinate): place for place, coordinate in enumerate(places)}
        for coordinate in np.unique(feature).tolist():
            part = slice(*np.searchsorted(feature, [coordinate, coordinate + 1]))
            cuts = np.unique(threshold[part])
            rows = np.full((len(cuts) + 1, len(roots)), ones, dtype=kind)
            at = (np.searchsorted(cuts, threshold[part]) + 1, tree[inner[part]])
            np.bitwise_and.at(rows, at, kept_words[part])
            np.bitwise_and.accumulate(rows, axis=0, out=rows)
            if coordinate in columns:
                numbers.append((columns[coordinate], cuts, entry))
                words.append(rows)
                entry += len(rows)
                continue
            start &= rows[np.searchsorted(cuts, 0.0)]
            words.append(rows[[np.searchsorted(cuts, one)]])
            entries[coordinate] = entry
            entry += 1
        return cls(
            np.concatenate(words),
            tuple(numbers),
            entries,
            leaves.ravel(),
            np.arange(len(roots)) * width,
            start,
        )

    @property
    def rows(self) -> int:
        """The number of rows whose words and values stay in the cache."""
        return max(64, min(_MOST_AT_ONCE, _VALUES_AT_ONCE // len(self.firsts)))

    def values(self, rows: CodedRows) -> Array:
        """Return the value of each row's leaf in each tree, shape (trees, n)."""
        remain = np.tile(self.start, (len(rows), 1))
        words = np.empty_like(remain)
        read = [
            first + np.searchsorted(cuts, rows.numbers[:, place])
            for place, cuts, first in self.numbers
        ]
        for entries in (*read, *self.entries[rows.codes.T]):
            # Entries are within ``words``. Clipping spares a copy.
            remain &= np.take(self.words, entries, axis=0, out=words, mode="clip")
        # The lowest bit that is set, by the exponent of its float.
        np.bitwise_and(remain, np.negative(remain), out=words)
        powers = words.T.astype(np.float32, order="C").view(np.int32) >> 23
        return np.take(self.leaves, powers + (self.firsts - 127)[:, None])


def _leaf_numbers(trees: BoostedTrees) -> tuple[Integers, Integers]:
    """Return the number of each node's first leaf, from the left, and how many it has."""
    left, right = trees.left.tolist(), trees.right.tolist()
    inner = np.flatnonzero(trees.feature != LEAF).tolist()
    first, count = [0] * len(left), [1] * len(left)
    for node in reversed(inner):  # children are further on
        count[node] = count[left[node]] + count[right[node]]
    for node in inner:
        first[left[node]], first[right[node]] = first[node], first[node] + count[left[node]]
    return np.array(first), np.array(count)


class Walk:
    """The way of rows through one tree, by scikit-learn's compiled code.

    Args:
        trees: the trees that hold it, which ``is_walkable`` has passed.
        root: the node where the tree begins.
        end: the node behind its last.
        worth: what each node is worth, shape (nodes,).
    """

    def __init__(self, trees: Trees, *, root: int, end: int, worth: Array) -> None:
        # Loaded where trees are walked, so that an audit of something else starts without it.
        from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
        from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

        part = slice(root, end)
        inner = trees.feature[part] != LEAF
        nodes = np.zeros(end - root, dtype=PREDICTOR_RECORD_DTYPE)
        nodes["value"] = worth[part]
        nodes["feature_idx"] = np.where(inner, trees.feature[part], 0)
        nodes["num_threshold"] = trees.threshold[part]
        nodes["left"] = np.where(inner, trees.left[part] - root, 0)
        nodes["right"] = np.where(inner, trees.right[part] - root, 0)
        nodes["is_leaf"] = ~inner
        self._tree = TreePredictor(nodes, _NO_CATEGORIES, _NO_CATEGORIES)

    def __call__(self, dense: Array) -> Array:
        """Return what each row's leaf is worth, shape (n,), of rows of shape (n, dimension)."""
        return np.asarray(self._tree.predict(dense, _NO_CATEGORIES, _NO_PLACES, 1))


def walks_of(trees: Trees, worth: Array) -> list[Walk]:
    """Return the walk of each tree, in the order of their roots.

    Args:
        trees: the trees, which ``is_walkable`` has passed.
        worth: what each node is worth, shape (nodes,).
    """
    ends = _ends(trees.roots, len(trees.feature))
    return [
        Walk(trees, root=int(root), end=int(ends[root]), worth=worth)
        for root in trees.roots.ravel()
    ]


def is_walkable(feature: Nodes, left: Nodes, right: Nodes, roots: Nodes, dimension: int) -> bool:
    """Return True if every walk from a root ends in its tree, and compares coordinates that there
    are.

    A walk ends because children are further on than their parent, and before the next root.
    """
    nodes, places = len(feature), np.arange(len(feature))
    if not ((roots >= 0) & (roots < nodes)).all():
        return False
    inner, ends = feature != LEAF, _ends(roots, nodes)
    walks = all(((part > places) & (part < ends))[inner].all() for part in (left, right))
    return bool(walks and ((feature >= LEAF) & (feature < dimension)).all())


def _ends(roots: Nodes, nodes: int) -> Integers:
    """Return the first node of the next tree, or the number of nodes, for each node."""
    begins = np.unique(roots)
    after = np.searchsorted(begins, np.arange(nodes), side="right")
    return np.append(begins, nodes)[after]


def label_shares(scores: Array) -> Array:
    """Return the probabilities of labels that scores stand for, shape (n, classes): their softmax,
    or logistic function where there is one.
    """
    full = np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores
    top = np.exp(full - full.max(axis=1, keepdims=True))
    return np.asarray(top / top.sum(axis=1, keepdims=True))


PublicModel = BoostedTrees | LinearModel

PUBLIC_MODELS = (BoostedTrees.kind, LinearModel.kind)
"""Kinds of public models whose scores are cut into bins."""


def model_from(kind: str, arrays: Arrays, *, dimension: int) -> PublicModel:
    """Return the model that ``describe`` took apart.

    Raises:
        CorruptBundle: arrays are missing or do not fit.
        UnknownName: there is no such kind.
    """
    if kind == BoostedTrees.kind:
        names = ("feature", "threshold", "left", "right", "value", "roots", "start")
        parts: Any = {name: arrays[f"model.{name}"] for name in names}
        return BoostedTrees(**parts, dimension=dimension)
    if kind == LinearModel.kind:
        return LinearModel(arrays["model.weight"], arrays["model.start"])
    raise UnknownName(f"model={kind!r}: expected one of {', '.join(PUBLIC_MODELS)}")


def _bounded(*parts: Array) -> bool:
    """Return True if all entries are finite and of a size whose sums are finite as well."""
    return all(bool((np.abs(part) <= _LARGEST).all()) for part in parts)
