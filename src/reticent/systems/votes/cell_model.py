"""``CellModel``: released models that are noisy sums of label vectors over public cells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn.cluster import KMeans
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import clipped, exact_product
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.sums import VOTE, person_blocks
from reticent.systems.votes.voters import Voters
from reticent.training.public_space import REACH, UNIT

_BLOCK = 2048
_MOST_CELLS = 2**16


@dataclass(frozen=True, eq=False)
class Level:
    """One resolution of cells, from public things alone.

    Attributes:
        centroids: shape (cells, m), whole numbers.
        mass: shape (cells,), public rows of each cell; ones without public rows.
        places: shape (n,), the cell of every public row; None without public rows.
    """

    centroids: Array
    mass: Array
    places: Integers | None

    def __len__(self) -> int:
        return len(self.centroids)

    def sums(self, columns: Array) -> Array:
        """Sums of rows for public rows, shape (n, k), by cell: shape (cells, k)."""
        assert self.places is not None
        return by_cell(self.places, len(self), columns)


@with_settings
class CellModel(ReleasedModel):
    """Each record adds its label vector to the cell of its nearest public centroid.

    Attributes:
        centroids_: shape (cells, dimension), of the finest cells.
    """

    cells: int | list[int] | tuple[int, ...]
    random_state: int = 0

    centroids_: Array = learned()
    _levels: list[Level] = learned()

    @override
    def check_settings(self) -> None:
        count(self.random_state, name="random_state", minimum=0)
        for fewer, more in pairwise(self._sizes()):
            if more <= fewer:
                raise InvalidParameter(f"cells={self.cells!r}: expected rising numbers")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        levels = []
        for size in self._sizes():
            if public is None:
                levels.append(Level(self._uniform(size), np.ones(size), None))
                continue
            centroids = _means(public.points, size, self.random_state)
            places = nearest(public.points, centroids)
            mass = np.bincount(places, minlength=len(centroids)).astype(np.float64)
            levels.append(Level(centroids, mass, places))
        self._levels = levels
        self._before_labels(public)

    @abstractmethod
    def _before_labels(self, public: PublicRows | None) -> None:
        """What public labels say about cells."""

    @override
    def arrays(self) -> dict[str, Array]:
        return {"centroids": self.centroids_}

    @override
    def restore(self, arrays: dict[str, Array]) -> None:
        self.centroids_ = finite_array(
            arrays["centroids"], name="centroids", ndim=2, columns=self.space_.dimension
        )

    def _by_cell(self, arrays: dict[str, Array], name: str, columns: int) -> Array:
        found = finite_array(arrays[name], name=name, ndim=2, columns=columns)
        if len(found) != len(self.centroids_):
            raise InvalidInput(f"{name}: expected a row for every centroid")
        return found

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (("cells", ", ".join(str(size) for size in self._sizes())),)

    def _parents(self, place: int) -> tuple[Integers, Array]:
        """The next coarser cell of every cell of a level, and the level's public mass."""
        level, coarser = self._levels[place], self._levels[place - 1]
        return nearest(level.centroids, coarser.centroids), level.mass

    def _sizes(self) -> tuple[int, ...]:
        sizes = self.cells if isinstance(self.cells, Sequence) else (self.cells,)
        found = tuple(count(size, name="cells") for size in sizes)
        if not found or max(found) > _MOST_CELLS:
            raise InvalidParameter(f"cells={self.cells!r}: expected 1 to {_MOST_CELLS}")
        return found

    def _uniform(self, size: int) -> Array:
        """Centroids drawn from the public box, with a public seed."""
        rng = np.random.default_rng([self.random_state, size])
        half = UNIT / np.sqrt(self.space_.dimension / 3.0)
        return np.rint(rng.uniform(-half, half, size=(size, self.space_.dimension)))


def fine(output: Output) -> float:
    """By what a column's vectors are multiplied where cells are summed.

    There a unit is not multiplied by a direction's length, and persons are cut on this grid, where
    rounding towards 0 costs a millionth of a vote.
    """
    return VOTE * max(1.0, output.gain) / output.unit


def cell_sums(
    voters: Voters, places: Integers, cells: int, vectors: Array, *, length: float
) -> Array:
    """The sum of vectors by cell, shape (cells, k), each unit's part of an l2 norm of at most
    ``length``.

    Args:
        voters: whose records they are.
        places: shape (n,), their cells.
        cells: how many there are.
        vectors: shape (n, k), whole numbers of an l2 norm of at most ``length``.
        length: public.
    """
    if voters.starts is None:
        return by_cell(places, cells, vectors)
    width = vectors.shape[1]
    total = np.zeros(cells * width)
    for records, starts in person_blocks(voters, cells * width):
        # By person, not by record: one person's records may be more than memory is for.
        persons = np.zeros((len(starts), cells, width))
        owners = np.repeat(
            np.arange(len(starts)), np.diff(starts, append=records.stop - records.start)
        )
        np.add.at(persons, (owners, places[records]), vectors[records])
        total += clipped(persons.reshape(len(starts), -1), length).sum(axis=0)
    return total.reshape(cells, width)


def by_cell(places: Integers, cells: int, vectors: Array) -> Array:
    """Sums of vectors by cell, shape (cells, k); exact for whole numbers."""
    return np.column_stack(
        [np.bincount(places, weights=column, minlength=cells) for column in vectors.T]
    )


def nearest(points: Array, centroids: Array) -> Integers:
    """The nearest centroid of each point, the first of several; exact, so from that point alone.

    Args:
        points: shape (n, m), whole numbers of at most ``REACH``.
        centroids: shape (k, m), the same.
    """
    lengths = np.square(centroids).sum(axis=1)
    bound = 4.0 * REACH * REACH * points.shape[1]
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), _BLOCK):
        block = points[start : start + _BLOCK]
        products = exact_product(block, centroids.T, bound=bound)
        found[start : start + _BLOCK] = (lengths - 2.0 * products).argmin(axis=1)
    return found


def _means(points: Array, cells: int, seed: int) -> Array:
    """k-means of public points, whole numbers; as many as there are different points at most."""
    most = min(cells, len(np.unique(points, axis=0)))
    means = KMeans(most, n_init=1, max_iter=50, random_state=seed).fit(points / UNIT)
    return np.asarray(np.rint(np.clip(means.cluster_centers_ * UNIT, -REACH, REACH)))
