"""Public models of encoded rows as plain arrays: boosted trees and linear models, which a bundle
can hold and numpy can evaluate.
"""

from __future__ import annotations

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

    def scores(self, rows: CodedRows) -> Array:
        """Return scores before the logistic function or softmax, shape (n, scores), each row's from
        that row alone.
        """
        found = np.empty((len(rows), len(self.start)))
        for begin in range(0, len(rows), BLOCK):
            part = slice(begin, min(begin + BLOCK, len(rows)))
            found[part] = self._block(rows.part(part).dense())
        return found

    def _block(self, dense: Array) -> Array:
        # bit-exact: trees in their order, one addition each.
        found = np.tile(self.start, (len(dense), 1))
        for place, walk in enumerate(self._walks):
            found[:, place % len(self.start)] += walk(dense)
        return found

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
