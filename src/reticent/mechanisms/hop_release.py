"""A classifier's own label where the public map of labels allows it, others by how many hops away
the map allows them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array, positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, Shares, check_shares, excess
from reticent.mechanisms.finite_channel import check_nodes, draw, nodes_in_words
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

Labels = npt.NDArray[np.int64]
Allowed = npt.NDArray[np.bool_]

_FIRST = 2**31  # weight of the classifier's own label
_HOPS = 4  # labels further away weigh as much as those at this distance
_BISECTIONS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class HopRelease(Mechanism):
    """A label with a weight that falls with its number of hops from the point's cell.

    The public map ``allowed`` says which labels are possible in each cell. The classifier's label
    at a point, among those that its cell allows, has 0 hops. Every other label has as many as there
    are steps between touching cells to the nearest cell that allows it, at least 1.

    **Guarantee.** One label is (epsilon, 0)-private under ``adjacency``, whatever the classifier
    computes and whatever the map says, as long as the map is public. Points within h R of each
    other are told apart by at most a factor e^(h epsilon).

    *Why.* A label's hops move by at most 1 between neighbours: both count steps between touching
    cells, and a label with 0 hops is allowed in its cell, so has 1 at most in every touching one.
    Dividing by the sum of the weights, which depends on the cell alone, adds what that sum moves.
    None of this is taken on trust. At every point of a cell a label's share is one of two numbers,
    as the classifier's own or as another's. The constructor compares the larger in each cell
    with the smaller in every touching one, exactly.

    *Floating point.* None in the guarantee: hops, weights and shares are whole numbers, and a label
    is drawn by one uniform integer below 2^32.

    Attributes:
        lattice: the public lattice.
        allowed: shape (labels, cells), at least one label in each cell. Public.
        weights: weights of 0, 1, 2, ... hops, whole numbers from 2^31 down to 1. More hops count as
            the last.
        epsilon: above 0.
        adjacency: neighbours, in any of l1, l2 and l-infinity.

    Raises:
        InvalidParameter: a lattice whose touching cells do not cover the radius, or weights that do
            not fall.
        InvalidInput: a map of another shape or type, a cell without a label, or weights that cost
            more than epsilon.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> lattice = Lattice.over([[0.0], [4.9]], radius=0.5, tail=0.0)
        >>> left = lattice.center[:, 0] < 2.5
        >>> hop = HopRelease.of(
        ...     np.stack([left, ~left]), lattice=lattice, epsilon=2.0, adjacency=near
        ... )
        >>> hop.probabilities([[0.1], [2.4]], [[0.0, 0.0], [1.0, 0.0]]).round(3).tolist()
        [[1.0, 0.0], [0.881, 0.119]]

    Utility:
        Far from every other label's cells the classifier's own label is nearly certain. On MNIST
        embeddings at R = 0.5 and epsilon 5 and 10: docs/results/posthoc-labels.md.

    Runtime:
        O(labels) a label, and O(labels cells) once, for hops and check: 0.2 seconds for 10 labels
        and 100,000 cells (benchmarks/runtimes.py).

    References:
        - McSherry and Talwar (2007), "Mechanism design via differential privacy",
          doi:10.1109/FOCS.2007.66, weights that fall exponentially with a score.
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803, quantities that move slowly between neighbours.
        - The proof: docs/label-tables.md.

    See Also:
        reticent.mechanisms.FiniteChannel: a table, better where epsilon is small.
    """

    lattice: Lattice
    allowed: Allowed
    weights: tuple[int, ...]
    epsilon: float
    adjacency: Neighborhood

    name: ClassVar[str] = "hop release"
    rests_on_float64: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_nodes(self.lattice, self.adjacency)
        positive(self.epsilon, name="epsilon")
        map_, weights = _checked_map(self.allowed, self.lattice), tuple(self.weights)
        falling = all(one >= after for one, after in pairwise(weights))
        if (
            not 2 <= len(weights) <= 256
            or count(weights[-1], name="weights") < 1
            or count(weights[0], name="weights") > _FIRST
            or not falling
        ):
            raise InvalidParameter(
                f"weights={self.weights!r}: expected 2 to 256 whole numbers that fall, from at "
                "most 2^31 to at least 1"
            )
        object.__setattr__(self, "weights", weights)
        frozen = map_.copy()  # a later change by the caller would escape the check
        frozen.setflags(write=False)
        object.__setattr__(self, "allowed", frozen)
        hops = _hops(frozen, self.lattice, len(weights) - 1)
        shares = _other_shares(hops, weights)
        low, high = _range(shares, frozen)
        check_shares(low, high, lattice=self.lattice, epsilon=self.epsilon, what="hop release")
        shares.setflags(write=False)
        object.__setattr__(self, "_others", shares)

    @classmethod
    def of(
        cls,
        allowed: npt.ArrayLike,
        *,
        lattice: Lattice,
        epsilon: float,
        adjacency: Neighborhood,
    ) -> Self:
        """Return the mechanism whose weights fall as fast as ``epsilon`` allows over this map.

        Args:
            allowed: shape (labels, cells), truth values, at least one true in each cell. Public.
            lattice: lattice of the cells.
            epsilon: above 0.
            adjacency: neighbours.
        """
        check_nodes(lattice, adjacency)
        map_ = _checked_map(allowed, lattice)
        hops = _hops(map_, lattice, _HOPS)
        low, high = 0.0, positive(epsilon, name="epsilon")
        best = _weights(0.0)
        for step in range(_BISECTIONS):
            rate = high if step == 0 else 0.5 * (low + high)
            weights = _weights(rate)
            ends = _range(_other_shares(hops, weights), map_)
            if excess(*ends, lattice=lattice, epsilon=epsilon) == 0:
                low, best = rate, weights
                if step == 0:
                    break
            else:
                high = rate
        return cls(
            lattice=lattice, allowed=map_, weights=best, epsilon=epsilon, adjacency=adjacency
        )

    @property
    def classes(self) -> int:
        """Number of labels."""
        return len(self.allowed)

    def probabilities(self, points: npt.ArrayLike, logits: npt.ArrayLike) -> Array:
        """Return the exact probability of each label for each point, shape (n, labels).

        It is private, where the points are.

        Args:
            points: shape (n, dimension), finite.
            logits: shape (n, labels), finite: the classifier's, at the points.
        """
        return np.asarray(self.at(points, logits).T / WHOLE)

    def release(self, points: npt.ArrayLike, logits: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        """Return one label for each point.

        Args:
            points: shape (n, dimension), finite.
            logits: shape (n, labels), finite: any function of the points.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return draw(self.at(points, logits), sampler)

    def describe(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return plain JSON values and named arrays that ``from_description`` reads."""
        packed = np.packbits(self.allowed, axis=1)
        settings = {"lattice": self.lattice.to_dict(), "weights": list(self.weights)}
        return settings, {"hop_release.allowed": packed}

    @classmethod
    def from_description(
        cls,
        settings: dict[str, Any],
        arrays: dict[str, npt.NDArray[Any]],
        *,
        epsilon: float,
        adjacency: Neighborhood,
    ) -> Self:
        """Return the mechanism that ``describe`` took apart, checked again.

        Raises:
            InvalidParameter, InvalidInput: as the constructor.
            KeyError, TypeError, ValueError: not such a description.
        """
        lattice = Lattice(**settings["lattice"])
        packed = arrays["hop_release.allowed"]
        return cls(
            lattice=lattice,
            allowed=np.unpackbits(packed, axis=1, count=lattice.size).astype(np.bool_),
            weights=tuple(settings["weights"]),
            epsilon=epsilon,
            adjacency=adjacency,
        )

    def rests_on(self) -> tuple[tuple[str, str], ...]:
        """Return what the guarantee rests on, as a card's details."""
        return nodes_in_words(self.lattice)

    def at(self, points: npt.ArrayLike, logits: npt.ArrayLike) -> Shares:
        """Return shares of the labels for each point, shape (labels, n). Private.

        Its arguments are those of ``release``.
        """
        cells = self.lattice.cells(points)
        array = finite_array(logits, name="logits", ndim=2, columns=self.classes, allow_empty=True)
        if len(array) != len(cells):
            raise InvalidInput(
                f"logits: expected one row per point, got {len(array)} for {len(cells)} points"
            )
        own = np.where(self.allowed[:, cells], array.T, -np.inf).argmax(axis=0)
        shares: Shares = self._others[:, cells]  # type: ignore[attr-defined]
        rows = np.arange(len(cells))
        # The classifier's own label has what the others leave.
        rest = shares.sum(axis=0, dtype=np.int64) - shares[own, rows]
        shares[own, rows] = WHOLE - rest
        return shares


def _checked_map(allowed: npt.ArrayLike, lattice: Lattice) -> Allowed:
    array = np.asarray(allowed)
    if (
        array.dtype != np.bool_
        or array.ndim != 2
        or not (2 <= len(array) <= 1000 and array.shape[1] == lattice.size)
    ):
        raise InvalidInput(
            f"allowed: expected truth values of shape (labels, {lattice.size}) with 2 to 1000 "
            f"labels, got {array.dtype} {array.shape}"
        )
    if not array.any(axis=0).all():
        raise InvalidInput("allowed: expected at least one label in each cell")
    return array


def _weights(rate: float) -> tuple[int, ...]:
    return tuple(max(1, round(_FIRST * math.exp(-rate * hops))) for hops in range(_HOPS + 1))


def _hops(allowed: Allowed, lattice: Lattice, most: int) -> npt.NDArray[np.uint8]:
    """Of each label as another's, shape (labels, cells): at least 1, at most ``most``."""
    return np.stack([np.maximum(lattice.hops(row, most=most), 1) for row in allowed])


def _other_shares(hops: npt.NDArray[np.uint8], weights: tuple[int, ...]) -> Shares:
    """Shares of labels that are not the classifier's own: weight over the sum of all weights,
    rounded down but never to 0.

    The own label has 1 hop here, so the sum has it at weight 0 hops in place of 1.
    """
    each = np.array(weights, dtype=np.uint64)
    total = np.full(hops.shape[1], each[0] - each[1], dtype=np.uint64)
    for row in hops:
        total += each[row]
    return np.stack(
        [np.maximum((each[row] << np.uint64(32)) // total, 1).astype(np.uint32) for row in hops]
    )


def _range(others: Shares, allowed: Allowed) -> tuple[Shares, Shares]:
    """The smallest and the largest share that each label can have at a point of each cell."""
    rest = others.sum(axis=0, dtype=np.int64)
    own = (WHOLE - rest + others).astype(np.uint32)
    high = np.where(allowed, own, others)
    sole = allowed & (allowed.sum(axis=0) == 1)
    return np.where(sole, own, others), high
