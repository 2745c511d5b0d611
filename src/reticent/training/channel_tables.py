"""A table for several targets where only touching nodes are neighbours.

Each turn decodes, solves, and weighs the targets anew. For given decoders the worth of a table is
linear in it, and the solvers of label tables find the best table for it. Decoding the table that
they found never makes it worth less. Weights of the targets rise where a target keeps a small share
of what it could have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import CalibrationFailed
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, Shares
from reticent.training.label_tables import exact_graph_table, exact_table, whole_table
from reticent.training.staircases import Target, Top

_TURNS = 4
_ITERATIONS = 200
_CLOSE = 1e-3
_STEP = 3.0
_MOST_CODES = 16
_LABEL_ITERATIONS = 1000
_LABEL_CLOSE = 0.002  # to the proved bound


def best_table(
    targets: Sequence[Target],
    *,
    cells: Lattice | PublicGraph,
    epsilon: float,
    weights: Sequence[float] | None,
    whole: Sequence[float],
    starts: Sequence[Array],
) -> Shares:
    """Return whole shares, shape (answers, nodes), that are worth most of those that were met.

    Nothing is proved about how near to the best they are. They are never worth less than a start
    after its repair. For one label by accuracy the program is linear as it stands, and they are
    next to the best.

    Args:
        targets: at least one.
        cells: nodes, some of which touch.
        epsilon: above 0.
        weights: the weights of the targets in a sum, or None for the largest least share.
        whole: the worth that each target could have alone, above 0.
        starts: tables, shape (nodes, answers).

    Raises:
        CalibrationFailed: there is no start.
    """

    def kept(shares: Shares) -> Array:
        table = shares.T / WHOLE
        return np.array(
            [t.value(table.T).sum() / own for t, own in zip(targets, whole, strict=True)]
        )

    def worth(shares: Shares) -> float:
        found = kept(shares)
        return float(found.min() if weights is None else found @ (np.asarray(weights) * whole))

    only = targets[0]
    if len(targets) == 1 and isinstance(only, Top) and only.k == 1:
        return _label_table(only, cells, epsilon)
    tried: list[Shares] = []
    for start in starts:
        if start.shape[1] > _MOST_CODES:
            continue
        shares = whole_table(start.T, lattice=cells, epsilon=epsilon)
        tried.append(shares)
        pull = np.ones(len(targets)) if weights is None else np.asarray(weights) * whole
        table = start  # before its repair, which tells nothing where nodes are few steps apart
        for _ in range(_TURNS):
            shares = _solved(targets, table, pull / np.asarray(whole), cells, epsilon)
            tried.append(shares)
            table = shares.T / WHOLE
            if weights is None:
                found = kept(shares)
                pull = pull * np.exp(-_STEP * (found - found.mean()))
                pull /= pull.mean()
    if not tried:
        raise CalibrationFailed("no start for a table of touching nodes; expected a label to serve")
    return max(tried, key=worth)


def _label_table(target: Top, cells: Lattice | PublicGraph, epsilon: float) -> Shares:
    """The best table where an answer is a label: answers that are decoded alike may be merged."""
    settings: dict[str, Any] = {"epsilon": epsilon, "iterations": _LABEL_ITERATIONS}
    gains = target.joint.T
    if isinstance(cells, PublicGraph):
        return exact_graph_table(gains, graph=cells, close=_LABEL_CLOSE, **settings).shares
    return exact_table(gains, lattice=cells, close=_LABEL_CLOSE, **settings).shares


def _solved(
    targets: Sequence[Target],
    table: Array,
    pull: Array,
    cells: Lattice | PublicGraph,
    epsilon: float,
) -> Shares:
    """Return the best table for the decoders of ``table``."""
    gains = np.zeros(table.T.shape)
    for target, weight in zip(targets, pull, strict=True):
        gains += weight * target.gradient(table.T)
    gains -= gains.min(axis=0)  # every node answers once: what all answers have changes nothing
    if gains.max() <= 0:
        return whole_table(table.T, lattice=cells, epsilon=epsilon)
    settings: dict[str, Any] = {"epsilon": epsilon, "iterations": _ITERATIONS, "close": _CLOSE}
    if isinstance(cells, PublicGraph):
        return exact_graph_table(gains, graph=cells, **settings).shares
    return exact_table(gains, lattice=cells, **settings).shares
