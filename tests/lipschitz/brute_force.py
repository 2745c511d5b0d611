"""The exact answers on tiny ReLU chains, by going through every activation pattern: an oracle, slow
and plain.

A pattern is consistent with a point if every neuron that it calls on has a pre-activation of at
least 0 there, and every neuron that it calls off one of at most 0: at a kink both are. Neurons
are decided in order, layer by layer; the largest and the smallest pre-activation of each on what
is left of the closed box are linear programs, put to SciPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from scipy.optimize import linprog

from reticent.networks import Network, affine_chain

_KINK = 1e-9  # how far a linear program may miss 0 at a cell that only touches the box
_TOLERANCE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Cell:
    """Where one activation pattern holds, ``rows @ x + offsets >= 0`` in the box, and the network's
    Jacobian there.

    Attributes:
        jacobian: shape (outputs, inputs).
        rows, offsets: one inequality per hidden neuron, shapes (hidden, inputs) and (hidden,).
        pattern: True where a neuron is on, shape (hidden,), first layer first.
    """

    jacobian: np.ndarray
    rows: np.ndarray
    offsets: np.ndarray
    pattern: np.ndarray


def measure_of(jacobian: np.ndarray, output: str) -> float:
    """The largest change of the output, measured by ``output``, per unit of l-infinity change of
    the input.

    Args:
        jacobian: shape (m, n).
        output: "l1", "l2", "linf" or "spread". All are convex, so the largest is at a sign
            vector.
    """
    moved = np.array(list(product((-1.0, 1.0), repeat=jacobian.shape[1]))) @ jacobian.T
    if output == "spread":
        return float((moved.max(axis=1) - moved.min(axis=1)).max())
    return float(np.linalg.norm(moved, {"l1": 1, "l2": 2, "linf": np.inf}[output], axis=1).max())


def cells(network: Network, lower: np.ndarray, upper: np.ndarray) -> Iterator[Cell]:
    """Every pattern that is consistent with some point of the closed box [lower, upper]."""
    layers = [(layer.dense(), layer.bias) for layer in network.linear_layers()]
    size = len(lower)
    yield from _decide(layers, 0, np.eye(size), np.zeros(size), [], [], [], [], lower, upper)


def lipschitz(network: Network, lower: np.ndarray, upper: np.ndarray, output: str) -> float:
    """The largest Jacobian norm, l-infinity to ``output``, over patterns consistent with a point
    of the closed box.
    """
    return max(measure_of(cell.jacobian, output) for cell in cells(network, lower, upper))


def tiny_networks(
    count: int, *, most_hidden: int = 10, seed: int = 0
) -> Iterator[tuple[str, Network]]:
    """Random chains of one to three hidden layers, at most ``most_hidden`` hidden neurons, with
    their widths as name.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        hidden = [0] * int(rng.integers(1, 4))
        left = most_hidden
        for k in range(len(hidden)):
            rest = 2 * (len(hidden) - 1 - k)  # at least two for each of the layers behind
            hidden[k] = int(rng.integers(2, max(3, left - rest + 1)))
            left -= hidden[k]
        widths = [int(rng.integers(1, 4)), *hidden, int(rng.integers(2, 4))]
        weights = [
            rng.normal(size=(after, before)) * np.sqrt(2.0 / before)
            for before, after in pairwise(widths)
        ]
        biases = [0.5 * rng.normal(size=after) for after in widths[1:]]
        yield "-".join(map(str, widths)), affine_chain(weights, biases)


def _decide(
    layers: list[tuple[np.ndarray, np.ndarray]],
    index: int,
    matrix: np.ndarray,
    shift: np.ndarray,
    decided: list[bool],
    rows: list[np.ndarray],
    offsets: list[float],
    pattern: list[bool],
    lower: np.ndarray,
    upper: np.ndarray,
) -> Iterator[Cell]:
    """Cells below one choice; ``matrix @ x + shift`` is what enters layer ``index``, ``decided``
    its first neurons.
    """
    weight, bias = layers[index]
    slope, offset = weight @ matrix, weight @ shift + bias
    if index == len(layers) - 1:
        yield Cell(
            slope,
            np.array(rows).reshape(len(rows), len(lower)),
            np.array(offsets),
            np.array(pattern, dtype=bool),
        )
        return
    if len(decided) == len(bias):
        on = np.array(decided, dtype=float)
        yield from _decide(
            layers,
            index + 1,
            on[:, None] * slope,
            on * offset,
            [],
            rows,
            offsets,
            pattern,
            lower,
            upper,
        )
        return
    row, constant = slope[len(decided)], float(offset[len(decided)])
    for on, sign in ((True, 1.0), (False, -1.0)):
        if _largest(sign * row, rows, offsets, lower, upper) + sign * constant >= -_KINK:
            yield from _decide(
                layers,
                index,
                matrix,
                shift,
                [*decided, on],
                [*rows, sign * row],
                [*offsets, sign * constant],
                [*pattern, on],
                lower,
                upper,
            )


def _largest(
    row: np.ndarray,
    rows: list[np.ndarray],
    offsets: list[float],
    lower: np.ndarray,
    upper: np.ndarray,
) -> float:
    """The largest ``row . x`` over the points of the box that satisfy the inequalities;
    -infinity if there are none.
    """
    if not rows:
        return float(np.where(row > 0, upper, lower) @ row)
    matrix, right = -np.array(rows), np.array(offsets) + _KINK
    answer = linprog(
        -row, matrix, right, bounds=list(zip(lower, upper, strict=True)), options=_TOLERANCE
    )
    return -float(answer.fun) if answer.status == 0 else -np.inf
