"""Tables, hop maps and responses for labels, fitted on public rows.

The lattice, the table on it and the map of labels come from a classifier's probabilities at
training rows, which are smoothed: counts of single rows in small cells are fitted too closely.
Which of the results answers is decided on rows that none of this has seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reticent.core.arrays import Array, Integers
from reticent.core.guarantees import Neighborhood
from reticent.grids.lattice import Lattice
from reticent.mechanisms import FiniteChannel, HopRelease
from reticent.networks import Network
from reticent.systems.posthoc.plans import LabelRule
from reticent.training.label_tables import (
    cell_centres,
    cell_weights,
    chosen_lattice,
    correlation_ratio,
    exact_table,
)
from reticent.training.progress import Report, silent

TAIL = 0.003
"""Share of public rows beyond the cells' own ends, on either side of a coordinate."""

THRESHOLDS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Hop maps allow a label where its share of a cell is at least this."""

LARGEST_TABLE_EPSILON = 4.0
"""Among all mechanisms, tables are tried up to here; beyond, hop maps are better and cheaper."""

_ITERATIONS = (200, 1000)  # fewest and most of the solver
_CLOSE = 0.005  # to the proved bound, in accuracy: no more iterations are made
_CELLS_PER_ROW = 4.0
_CENTRE_ROWS = 0.5  # rows that a classifier's word at a cell's centre counts for
_WORK = 4e7  # cells times labels times corners of a block: about 100 MiB
_STEPS = 8e9  # the same times iterations: about a minute


@dataclass(frozen=True, eq=False)
class LatticeRows:
    """Public rows, and a classifier's probabilities of labels anywhere.

    Attributes:
        points: clipped embeddings, shape (n, d).
        labels: shape (n,).
        network: network from embeddings to logits.
    """

    points: Array
    labels: Integers
    network: Network

    @property
    def classes(self) -> int:
        """The number of labels."""
        return self.network.output_dimension

    def posterior(self, points: Array) -> Array:
        """Return the classifier's probabilities, shape (n, classes)."""
        logits = self.network.forward(points)
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def fitted_rules(
    mechanism: str,
    rows: LatticeRows,
    *,
    epsilon: float,
    adjacency: Neighborhood,
    seed: int,
    report: Report = silent,
) -> Iterator[LabelRule]:
    """Return the mechanisms of one name that are worth scoring.

    Args:
        mechanism: "table", "hop" or "response".
        rows: public rows.
        epsilon: epsilon of one label.
        adjacency: neighbours.
        seed: seed of the smoothing.
        report: receiver of the progress, which tells how the table's bound falls.
    """
    if mechanism == "response":
        yield FiniteChannel.response(rows.classes, epsilon=epsilon, adjacency=adjacency)
        return
    lattice = label_lattice(rows, radius=adjacency.radius)
    weights = cell_weights(rows.points, rows.posterior, lattice=lattice, seed=seed)
    if mechanism == "table":
        found = exact_table(
            weights,
            lattice=lattice,
            epsilon=epsilon,
            iterations=_affordable(lattice, rows.classes),
            close=_CLOSE,
            report=report,
        )
        yield FiniteChannel(
            nodes=lattice, shares=found.shares, epsilon=epsilon, adjacency=adjacency
        )
        return
    # rows where there are some, the classifier at the cell's centre where there are few
    posterior = weights * len(rows.points)
    posterior += _CENTRE_ROWS * rows.posterior(cell_centres(rows.points, lattice)).T
    posterior /= posterior.sum(axis=0)
    best = posterior.max(axis=0)
    for threshold in THRESHOLDS:
        allowed = posterior >= np.minimum(threshold, best)
        yield HopRelease.of(allowed, lattice=lattice, epsilon=epsilon, adjacency=adjacency)


def label_lattice(rows: LatticeRows, *, radius: float, cells: float | None = None) -> Lattice:
    """Return ``chosen_lattice`` over the coordinates that tell labels apart best.

    Args:
        rows: public rows.
        radius: radius of neighbours.
        cells: the most there may be, or None for four times the number of rows, or fewer where the
            solver would take minutes.
    """

    def fits(shape: Sequence[int]) -> bool:
        axes = sum(size > 1 for size in shape)
        most = min(_CELLS_PER_ROW * len(rows.points), _WORK / (rows.classes * 2**axes))
        return math.prod(shape) <= (most if cells is None else cells)

    ratings = correlation_ratio(rows.points, rows.labels)
    return chosen_lattice(rows.points, ratings, radius=radius, tail=TAIL, fits=fits)


def _affordable(lattice: Lattice, classes: int) -> int:
    """Return the iterations of the solver that take about a minute, within limits."""
    corners = 2 ** sum(size > 1 for size in lattice.shape)
    fewest, most = _ITERATIONS
    return int(min(max(_STEPS / (lattice.size * classes * corners), fewest), most))


def worth_trying(mechanisms: Sequence[str], *, epsilon: float) -> tuple[str, ...]:
    """Return those of the mechanisms that "auto" may choose from that can win at ``epsilon``."""
    return tuple(name for name in mechanisms if name != "table" or epsilon <= LARGEST_TABLE_EPSILON)
