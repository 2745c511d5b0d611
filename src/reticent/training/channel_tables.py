"""A table for several targets where only touching nodes are neighbours.

It starts from codebooks and from label rules, the tables whose answers name a label most often
rightly. Each turn decodes, solves, and weighs the targets anew. For given decoders the worth of a
table is linear in it, and the solvers of label tables find the best table for it. Decoding the
table that they found never makes it worth less. Weights of the targets rise where a target keeps a
small share of what it could have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from reticent.core.arrays import Array
from reticent.core.errors import CalibrationFailed
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, Shares
from reticent.training.label_tables import exact_table, whole_table
from reticent.training.staircases import Information, Target, Top, label_joint

_TURNS = 4
_ITERATIONS = 200
_CLOSE = 1e-3
_STEP = 3.0
_MOST_CODES = 16
_LABEL_ITERATIONS = 1000
_LABEL_STEPS = 5e8  # the same times labels and constraints of each: two seconds
_START_STEPS = 2e8  # of one start
_LABEL_CLOSE = 0.002  # to the proved bound
_UNEVEN = 2.0
_RISE = 1e-3


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
    after its repair, nor than a label rule. For one label by accuracy the program is linear as it
    stands, and they are next to the best.

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

    pull = np.ones(len(targets)) if weights is None else np.asarray(weights) * whole
    tried = [rule for target in targets for rule in _label_rules(target, cells, epsilon)]
    if len(targets) == 1 and isinstance(targets[0], Top) and tried:
        return tried[0]
    fewest = tried[0].shape[0] if len(targets) == 1 and tried else 0
    for start in starts:
        codes = start.shape[1]
        if fewest < codes <= min(_MOST_CODES, _START_STEPS / (_ITERATIONS * _size(cells))):
            tried.append(whole_table(start.T, lattice=cells, epsilon=epsilon))
            # decoded before its repair, which tells nothing where nodes are few steps apart
            tried.append(_solved(targets, start, pull / np.asarray(whole), cells, epsilon))
    if not tried:
        raise CalibrationFailed("no start for a table of touching nodes; expected a label to serve")
    shares = max(tried, key=worth)
    dear = len(shares) * _ITERATIONS * _size(cells) > _START_STEPS
    for _ in range(1 if dear else _TURNS):
        reached = worth(shares)
        shares = _solved(targets, shares.T / WHOLE, pull / np.asarray(whole), cells, epsilon)
        tried.append(shares)
        if weights is None:
            found = kept(shares)
            pull = pull * np.exp(-_STEP * (found - found.mean()))
            pull /= pull.mean()
        elif worth(shares) <= reached * (1.0 + _RISE):
            break
    return max(tried, key=worth)


def _label_rules(target: Target, cells: Lattice | PublicGraph, epsilon: float) -> list[Shares]:
    """The best tables where an answer is a label: answers that are decoded alike may be merged.

    The worth of a right answer is the same for every label, or for nats also one over the label's
    share, if shares are uneven.
    """
    joint = label_joint(target)
    if joint is None:
        return []
    shares, gains = joint.sum(axis=0), [joint.T]
    if isinstance(target, Information) and shares.max() > _UNEVEN * shares.min():
        gains.append((joint / shares).T)
    steps = _LABEL_ITERATIONS
    if isinstance(cells, Lattice):
        affordable = int(_LABEL_STEPS / (joint.shape[1] * _size(cells)))
        steps = min(max(affordable, _ITERATIONS), _LABEL_ITERATIONS)
    settings: dict[str, Any] = {"epsilon": epsilon, "iterations": steps, "close": _LABEL_CLOSE}
    return [exact_table(gain, lattice=cells, **settings).shares for gain in gains]


def _size(cells: Lattice | PublicGraph) -> int:
    """Constraints on one answer, about."""
    if isinstance(cells, PublicGraph):
        return cells.size + len(cells.edges)
    return cells.size * math.prod(min(cells.reach, size - 1) + 1 for size in cells.shape)


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
    found = exact_table(gains, lattice=cells, epsilon=epsilon, iterations=_ITERATIONS, close=_CLOSE)
    return found.shares
