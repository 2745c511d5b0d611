"""The common part of certificates by a *reserve*: a number of records that a label has to spare.

One record that comes or goes takes at most 1 from a reserve, up to a proved error of its
computation. Each kind of model has a proof of that, in docs/certified.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array, one_of, positive, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import AddRemove, Replace
from reticent.retraining.class_weights import checked_weights
from reticent.retraining.training_settings import PROTECTING, Counting

MOST_RECORDS = 2**22
MOST_FEATURES = 4095

UNIT = 2.0**-53
"""Relative error of one rounded operation."""

BLOCK = 1024
"""Records that are summed by one matrix product; blocks are added one by one."""

_LARGEST_OFFSET = 64.0


@dataclass(frozen=True, kw_only=True)
class ReserveSettings(ABC):
    """The public settings that every model of two labels with a reserve has.

    A row is cut to the l2 ball of radius ``norm_bound`` and divided by it. With ``intercept`` as
    one coordinate more, and all divided by sqrt(1 + intercept^2), it is a *point* z, |z| <= 1.

    Attributes:
        features: number of inputs, 1 to 4095.
        norm_bound: public l2 norm above 0, to which longer rows are cut.
        intercept: the last coordinate, above 0, small if the two labels are about equally frequent.
        class_weights: one weight in (0, 1] for each label, the largest 1, from public prevalence.
        counting: "add-remove" (k records come or go in total) or "replace" (k are replaced).
        offset_bound: public bound that offsets are cut to on both sides, 0 to 64. 0 where there are
            none.

    Raises:
        InvalidParameter, UnknownName: a value out of its range.
    """

    features: int
    norm_bound: float = 1.0
    intercept: float = 0.1
    class_weights: tuple[float, ...] = (1.0, 1.0)
    counting: Counting = "add-remove"
    offset_bound: float = 0.0

    classes: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if count(self.features, name="features") > MOST_FEATURES:
            raise InvalidParameter(
                f"features={self.features}: expected at most {MOST_FEATURES}; reduce them by a "
                "public map"
            )
        for name in ("norm_bound", "intercept"):
            object.__setattr__(self, name, positive(getattr(self, name), name=name))
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(
                    f"{name}={getattr(self, name)!r}: expected 1e-9 to 1e9; rescale the features"
                )
        if not 0 <= real(self.offset_bound, name="offset_bound") <= _LARGEST_OFFSET:
            raise InvalidParameter(
                f"offset_bound={self.offset_bound!r}: expected 0 to {_LARGEST_OFFSET:g}"
            )
        object.__setattr__(self, "class_weights", checked_weights(self.class_weights, classes=2))
        one_of(self.counting, PROTECTING, name="counting")

    @property
    def adjacency(self) -> AddRemove | Replace:
        """The neighbours between which certified distances change by at most 1."""
        return AddRemove(1) if self.counting == "add-remove" else Replace(1)

    @property
    def changed(self) -> int:
        """The number of records that come or go in one change."""
        return 1 if self.counting == "add-remove" else 2

    @property
    @abstractmethod
    def proved_error(self) -> float:
        """How far a reserve as computed can be from the exact one, whatever the data set."""

    @cached_property
    def worth(self) -> float:
        """The amount that one change of records takes from a reserve as computed, at most."""
        return self.changed + 2.0 * self.proved_error

    def distances(self, reserves: Array) -> Integers:
        """Return how many changes of records are survived with these reserves, shape (n,)."""
        return np.maximum(np.ceil(reserves / self.worth) - 1.0, 0.0).astype(np.int64)

    def cut_offsets(self, offsets: npt.ArrayLike | None, rows: int) -> Array:
        """Return offsets as the loss takes them, shape (rows,).

        Args:
            offsets: shape (rows,), finite, or None where ``offset_bound`` is 0.
            rows: number of rows.

        Raises:
            InvalidInput: offsets are missing, or there should be none.
        """
        if offsets is None and not self.offset_bound:
            return np.zeros(rows)
        if offsets is None or not self.offset_bound:
            raise InvalidInput("offsets: expected them with offset_bound above 0, and only then")
        found = finite_array(offsets, name="offsets", ndim=1, allow_empty=True)
        if len(found) != rows:
            raise InvalidInput(f"offsets: expected {rows}, got {len(found)}")
        return np.clip(found, -self.offset_bound, self.offset_bound)

    def points(self, X: Array) -> Array:
        """Return rows as the loss takes them, each computed from itself alone.

        The result has shape (n, features + 1) and rows of l2 norm at most 1.

        Args:
            X: shape (n, features), finite.
        """
        size = np.maximum(np.abs(X).max(axis=1, initial=0.0), self.norm_bound)
        rows = X / size[:, None]
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.minimum(size / self.norm_bound, 1.0 / lengths(rows))
        # 2^-40 is more than all rounding of the norm: no row is longer than 1.
        share = (1.0 - 2.0**-40) / math.sqrt(1.0 + self.intercept**2)
        points = np.empty((len(X), self.features + 1))
        np.multiply(rows, (scale * share)[:, None], out=points[:, :-1])
        points[:, -1] = share * self.intercept
        return points


@dataclass(frozen=True, eq=False)
class ReserveModel(ABC):
    """A model of two labels whose answers have a reserve. As private as the records.

    Attributes:
        settings: the public settings of its training.
    """

    settings: ReserveSettings

    kind: ClassVar[str]

    @abstractmethod
    def reserves(
        self, X: npt.ArrayLike, offsets: npt.ArrayLike | None = None
    ) -> tuple[Integers, Array]:
        """Return each row's label, 0 or 1, and its reserve. Both are private.

        The reserve is what all changes of records together must take away before the label can
        change.

        Args:
            X: shape (n, features), finite.
            offsets: shape (n,), finite, or None without ``offset_bound``.
        """

    def stable_distances(
        self, X: npt.ArrayLike, offsets: npt.ArrayLike | None = None
    ) -> tuple[Integers, Integers]:
        """Return each row's label, and how many changes of records it survives, as ``counting``
        says.

        **Guarantee.** (1) For data sets at distance 1 the distances of one query differ by at most
        1. (2) If their labels differ, both distances are 0.

        *Why.* docs/certified.md, sections 8 and 11. One record that comes or goes takes at most 1
        from the exact reserve r, and where it changes the label r <= 1 on both sides. The reserve
        as computed is within the public ``proved_error`` t of r for every data set, so that max(0,
        ceil(r / (1 + 2 t)) - 1) has both properties.

        Args:
            X, offsets: rows and offsets, as ``reserves`` takes them.

        Returns:
            Labels 0 or 1 and distances of at least 0, each of shape (n,), int64. Private.
        """
        labels, reserve = self.reserves(X, offsets)
        return labels, self.settings.distances(reserve)


@dataclass(frozen=True, eq=False)
class Records:
    """Records as a loss takes them: points of length at most 1, signs of labels, offsets, and
    weights of labels.
    """

    points: Array
    signs: Array
    offsets: Array
    shares: Array

    @classmethod
    def of(
        cls,
        X: npt.ArrayLike,
        labels: npt.ArrayLike,
        settings: ReserveSettings,
        offsets: npt.ArrayLike | None,
    ) -> Records:
        """Return checked records.

        Raises:
            InvalidInput: shapes or labels that do not fit. Values are never shown.
        """
        rows = finite_array(
            X, name="X", ndim=2, columns=settings.features, allow_empty=True, copy=False
        )
        truth = np.asarray(labels)
        if truth.shape != (len(rows),) or (truth.dtype.kind not in "iu" and len(rows)):
            raise InvalidInput(
                f"labels: expected {len(rows)} integers, got shape={truth.shape}, "
                f"dtype={truth.dtype}"
            )
        if len(rows) and (truth.min() < 0 or truth.max() > 1):
            raise InvalidInput("labels: expected 0 or 1")
        if len(rows) > MOST_RECORDS:
            raise InvalidInput(f"X: expected at most {MOST_RECORDS} records, got {len(rows)}")
        points = np.empty((len(rows), settings.features + 1))
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            points[part] = settings.points(rows[part])
        return cls(
            points,
            np.where(truth == 1, 1.0, -1.0),
            settings.cut_offsets(offsets, len(rows)),
            np.where(truth == 1, *reversed(settings.class_weights)),
        )

    def blocks(self) -> Iterator[Records]:
        """Yield ``BLOCK`` records at a time."""
        for start in range(0, len(self.points), BLOCK):
            part = slice(start, start + BLOCK)
            yield Records(
                self.points[part], self.signs[part], self.offsets[part], self.shares[part]
            )


def length_error(dimension: int) -> float:
    """Return the relative error of an inner product, and of one divided by a length."""
    return 1.01 * 2.0 * (dimension + 8) * UNIT


def sum_error(records: int) -> float:
    """Return the relative error of a sum over records, by blocks."""
    return 1.01 * (BLOCK + records / BLOCK + 8.0) * UNIT


def lengths(rows: Array) -> Array:
    """Return l2 norms, column by column, so that a row's does not depend on the other rows."""
    squares = np.zeros(len(rows))
    for column in rows.T:
        squares += column * column
    return np.asarray(np.sqrt(squares))


def one_against_one(labels: Integers, reserves: Array, *, classes: int) -> tuple[Integers, Array]:
    """Return the label that wins all its pairs, and the least reserve of these.

    Where no label does, return label 0 at reserve 0.

    **Guarantee.** With distances by ``ReserveSettings.distances``, where each pair's model is made
    of the records of its two labels alone, both properties of ``ReserveModel.stable_distances``
    hold, whatever the number of labels.

    *Why.* A record is in the models of all pairs of its label, and moves each of their reserves as
    computed by at most w = ``ReserveSettings.worth``. A pair whose label changes has w at most on
    either side. (1) Where the winner stays, a minimum of numbers that each move by at most w does
    too. (2) Where the winner j of one data set is none of the other, a pair of j changed, so j's
    reserve is at most w and the distance 0. The other data set's is 0 for want of a winner. Or its
    winner is some k, and the pair of j and k changed, so it is at most w too.

    Args:
        labels, reserves: shape (pairs, n), ``ReserveModel.reserves`` of each pair in the order
            of ``itertools.combinations(range(classes), 2)``. Label 1 is the pair's second.
        classes: the number of labels, at least 2.

    Returns:
        Labels 0 to classes - 1, and reserves, each of shape (n,). Private.

    Example:
        >>> wins = np.array([[0, 1], [0, 0], [1, 1]])
        >>> one_against_one(wins, np.array([[5.0, 2.0], [3.0, 4.0], [9.0, 1.0]]), classes=3)
        (array([0, 0]), array([3., 0.]))

    References:
        - Knerr, Personnaz and Dreyfus (1990), "Single-layer learning revisited: a stepwise
          procedure for building and training a neural network",
          doi:10.1007/978-3-642-76153-9_5, one against one.
        - The proof: docs/certified.md, section 8.

    See Also:
        reticent.ConvexCertifiedClassifier: the estimator.
        reticent.retraining.vote_distances: votes of models that any record may be in.
    """
    wins = np.zeros((classes, labels.shape[1]), dtype=np.int64)
    least = np.full(wins.shape, np.inf)
    for pair, second, reserve in zip(
        combinations(range(classes), 2), labels, reserves, strict=True
    ):
        for place, label in enumerate(pair):
            wins[label] += second == place
            np.minimum(least[label], reserve, out=least[label])
    top, columns = wins.argmax(axis=0), np.arange(wins.shape[1])
    sure = wins[top, columns] == classes - 1
    return np.where(sure, top, 0), np.where(sure, least[top, columns], 0.0)
