"""A public forest of randomised trees as plain arrays, which a bundle can hold and numpy can
evaluate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import CorruptBundle
from reticent.training.public_models import BLOCK, LEAF, Walk, is_walkable, walks_of

Integers32 = npt.NDArray[np.int32]

_SUM = 1e-9  # shares of a leaf sum to 1 up to this


@dataclass(frozen=True, eq=False)
class Forest:
    """A forest that gives shares of labels, the mean over trees of those in the leaf that a row
    falls into.

    Nodes of all trees stand one after another, as in ``BoostedTrees``. Trees compare coordinates in
    single precision, as scikit-learn's do.

    Attributes:
        feature: the encoded coordinate that is compared, -1 in a leaf, shape (nodes,), int32.
        threshold: the largest coordinate of rows that go left, shape (nodes,), float32.
        left, right: children, further on in the arrays, 0 in a leaf, shape (nodes,), int32.
        told: in a leaf, the row of ``table`` that holds its shares, shape (nodes,), int32.
        table: shares of labels, each row once, shape (m, classes).
        roots: the node where each tree begins, shape (trees,), int32.
        dimension: coordinates of an encoded row.

    References:
        - Geurts, Ernst and Wehenkel (2006), "Extremely randomized trees",
          doi:10.1007/s10994-006-6226-1.

    See Also:
        reticent.PowerEncoder: its mechanism "clear-code" asks one.
    """

    feature: Integers32
    threshold: npt.NDArray[np.float32]
    left: Integers32
    right: Integers32
    told: Integers32
    table: Array
    roots: Integers32
    dimension: int

    kind: ClassVar[str] = "forest"

    def __post_init__(self) -> None:
        nodes = self.feature.shape
        integers = (self.feature, self.left, self.right, self.told, self.roots)
        whole = (
            all(part.dtype == np.int32 and part.ndim == 1 for part in integers)
            and all(part.shape == nodes for part in (*integers[:-1], self.threshold))
            and self.threshold.dtype == np.float32
            and self.table.dtype == np.float64
            and self.table.ndim == 2
            and min(self.table.shape) >= 1
            and len(self.roots) >= 1
        )
        if not whole:
            raise CorruptBundle("bundle: arrays of its forest do not fit together")
        shares = (self.table >= 0).all() and (np.abs(self.table.sum(axis=1) - 1.0) <= _SUM).all()
        known = ((self.told >= 0) & (self.told < len(self.table))).all()
        walks = is_walkable(self.feature, self.left, self.right, self.roots, self.dimension)
        if not (shares and known and walks and np.isfinite(self.threshold).all()):
            raise CorruptBundle("bundle: its forest has no end, or leaves without shares")

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.table.shape[1])

    @cached_property
    def walks(self) -> list[Walk]:
        """Walks to the places of leaves among the nodes, one for each tree."""
        return walks_of(self, np.arange(len(self.feature), dtype=np.float64))

    def shares(self, rows: CodedRows) -> Array:
        """Return shares of labels, shape (n, classes), each row's from that row alone."""
        found = np.zeros((len(rows), self.classes))
        for begin in range(0, len(rows), BLOCK):
            part = slice(begin, min(begin + BLOCK, len(rows)))
            dense = rows.part(part).dense().astype(np.float32).astype(np.float64)
            for walk in self.walks:
                found[part] += self.table[self.told[walk(dense).astype(np.intp)]]
        return np.asarray(found / len(self.roots))

    def describe(self) -> Arrays:
        """Return named arrays that ``from_arrays`` reads."""
        return {f"forest.{name}": np.asarray(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_arrays(cls, arrays: Arrays, *, dimension: int) -> Forest:
        """Return the forest that ``describe`` took apart.

        Raises:
            CorruptBundle: arrays are missing or do not fit.
        """
        parts: Any = {name: arrays[f"forest.{name}"] for name in _NAMES}
        return cls(**parts, dimension=dimension)

    @classmethod
    def of_targets(cls, model: Any) -> Forest:
        """Return the trees of a fitted forest of regression on targets from -1 to 1.

        A leaf's mean target t is held as the shares (1 - t) / 2 and (1 + t) / 2 of two labels, so
        that predictions are the second share less the first.

        Args:
            model: an ``ExtraTreesRegressor`` or ``RandomForestRegressor`` of one target.
        """
        means = [np.clip(tree.tree_.value[:, 0, 0], -1.0, 1.0) for tree in model.estimators_]
        shares = [np.column_stack([0.5 - 0.5 * mean, 0.5 + 0.5 * mean]) for mean in means]
        return cls._of(model, shares, np.arange(2), classes=2)

    @classmethod
    def from_sklearn(cls, model: Any, *, classes: int) -> Forest:
        """Return the trees of a fitted ``ExtraTreesClassifier`` or ``RandomForestClassifier``.

        Args:
            model: a forest fitted to labels from 0 to ``classes`` - 1, not all of which it need
                have seen.
            classes: the number of labels.
        """
        counts = [estimator.tree_.value[:, 0] for estimator in model.estimators_]
        shares = [each / each.sum(axis=1, keepdims=True) for each in counts]
        return cls._of(model, shares, np.asarray(model.classes_, dtype=np.int64), classes=classes)

    @classmethod
    def _of(
        cls, model: Any, shares: list[Array], known: npt.NDArray[np.int64], *, classes: int
    ) -> Forest:
        parts: list[Any] = []
        roots, begin = [], 0
        for estimator in model.estimators_:
            tree = estimator.tree_
            leaf = tree.children_left == LEAF
            parts.append(
                (
                    np.where(leaf, LEAF, tree.feature).astype(np.int32),
                    _single_below(np.where(leaf, 0.0, tree.threshold)),
                    np.where(leaf, 0, tree.children_left + begin).astype(np.int32),
                    np.where(leaf, 0, tree.children_right + begin).astype(np.int32),
                    leaf,
                )
            )
            roots.append(begin)
            begin += tree.node_count
        feature, threshold, left, right, leaf = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        found, places = np.unique(np.concatenate(shares)[leaf], axis=0, return_inverse=True)
        table = np.zeros((len(found), classes))
        table[:, known] = found
        told = np.zeros(len(feature), dtype=np.int32)
        told[leaf] = places.reshape(-1)
        columns = int(model.n_features_in_)
        start = np.array(roots, dtype=np.int32)
        return cls(feature, threshold, left, right, told, table, start, columns)


_NAMES = ("feature", "threshold", "left", "right", "told", "table", "roots")


def _single_below(thresholds: Array) -> npt.NDArray[np.float32]:
    """Return the largest single-precision numbers not above ``thresholds``.

    The same coordinates in single precision are at most one as are at most the other.
    """
    near = thresholds.astype(np.float32)
    below = np.nextafter(near, np.float32(-np.inf))
    return np.where(near.astype(np.float64) > thresholds, below, near).astype(np.float32)
