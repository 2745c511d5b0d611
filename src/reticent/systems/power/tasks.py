"""Several label columns that one release is to inform about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.systems.scores import Scores, channel_scores, joint_of

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Joints:
    """How likely bins are together with the labels of each task.

    Attributes:
        tables: for each task, shape (bins, labels).
        weights: of the tasks, above 0, with sum 1.
    """

    tables: tuple[Array, ...]
    weights: tuple[float, ...]

    @classmethod
    def single(cls, table: Array) -> Joints:
        """Those of one task."""
        return cls((table,), (1.0,))

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.tables[0])

    def scores(self, channel: Array) -> Scores:
        """Exact scores of servers that know the channel, one for each task: their weighted mean.

        Args:
            channel: shape (bins, outputs), rows sum to 1.

        Example:
            >>> nothing, all_ = np.full((2, 2), 0.25), np.eye(2) / 2
            >>> Joints((nothing, all_), (0.5, 0.5)).scores(np.eye(2)).accuracy
            0.75
        """
        found = [channel_scores(channel.T @ table) for table in self.tables]
        return mean_scores(found, self.weights)


@dataclass(frozen=True, eq=False)
class Tasks:
    """What the labels that a public model tells apart say about each task. Of several tasks the
    model's labels are all combinations that occur.

    Attributes:
        places: for each task, shape (classes,): the task's label that each class stands for,
            integers from 0 without gaps.
        weights: what a score of each task counts, above 0, with sum 1.
    """

    places: tuple[Labels, ...]
    weights: tuple[float, ...]

    @classmethod
    def single(cls, classes: int) -> Tasks:
        """One task, whose labels are the classes."""
        return cls((np.arange(classes),), (1.0,))

    @property
    def several(self) -> bool:
        """Whether there is more than one."""
        return len(self.places) > 1

    @cached_property
    def members(self) -> tuple[Array, ...]:
        """For each task, shape (classes, labels): 1 where the class stands for the label."""
        return tuple(np.eye(int(place.max()) + 1)[place] for place in self.places)

    def joints(self, bins_of: Labels, classes: Labels, *, bins: int, seen: bool = False) -> Joints:
        """Shares of rows in each bin with each label, smoothed as ``joint_of`` does.

        Args:
            bins_of: shape (n,), the bin of each row.
            classes: shape (n,), its class.
            bins: how many there are.
            seen: whether a label that none of the rows has is left out, even where that leaves a
                single one, about which nothing can be told.
        """
        labels = [place[classes] for place in self.places]
        tables = [joint_of(bins_of, label, bins=bins) for label in labels]
        if seen:
            tables = [
                table[:, : len(np.unique(label))]
                for table, label in zip(tables, labels, strict=True)
            ]
        return Joints(tuple(tables), self.weights)

    def log_shares(self, sums: Array) -> Array:
        """Rows whose inner product with a distribution of classes is how likely, in nats, each
        task's label is under the shares of labels in ``sums``: the weighted mean over tasks.

        Args:
            sums: shape (bins, classes), above 0.

        Example:
            >>> Tasks.single(2).log_shares(np.array([[1.0, 1.0]])).round(3).tolist()
            [[-0.693, -0.693]]
        """
        found = np.zeros_like(sums)
        for member, weight in zip(self.members, self.weights, strict=True):
            counts = sums @ member
            found += weight * (np.log(counts / counts.sum(axis=1, keepdims=True)) @ member.T)
        return found


def mean_scores(found: Sequence[Scores], weights: Sequence[float] | None = None) -> Scores:
    """The weighted mean of scores; None for all alike."""
    return Scores(
        **{
            field.name: float(
                np.average([getattr(one, field.name) for one in found], weights=weights)
            )
            for field in fields(Scores)
        }
    )
