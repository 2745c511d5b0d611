"""A label drawn from a table on a public lattice: no Lipschitz constant, and an exact check."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from reticent.accounting.events import PrivacyEvent
from reticent.core.checks import positive
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Guarantee, Neighborhood
from reticent.grids.lattice import Lattice
from reticent.grids.shares import WHOLE, Shares, check_shares
from reticent.noise import Sampler

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTable:
    """One label for each point, with the probabilities that stand in its cell's column.

    **Guarantee.** One label is (epsilon, 0)-private under ``adjacency``, whatever the table was
    made from, as long as lattice and table are public. Points within h R of each other, h a whole
    number, are told apart by at most a factor e^(h epsilon).

    *Why.* Points within ``adjacency.radius`` lie in cells that touch (``Lattice``), and for every
    two touching cells and every label the table's entries differ by at most a factor e^epsilon.
    There are finitely many pairs, and the constructor compares every one of them: a table that
    exists has passed. Between points h R apart lie h - 1 points in steps of at most R, because the
    box that the cells cover is convex.

    *Floating point.* None in the guarantee: cells are found in whole numbers; entries are whole
    multiples of 2^-32 that sum to 1 exactly; e^epsilon is replaced by a rational number below it;
    and a label is drawn by one uniform integer below 2^32.

    Attributes:
        lattice: public.
        shares: shape (labels, cells), uint32: probabilities in multiples of 2^-32. Public.
        epsilon: above 0.
        adjacency: neighbours; any of l1, l2 and l-infinity.

    Raises:
        InvalidParameter: a lattice whose touching cells do not cover the radius.
        InvalidInput: a table of another shape or type, a column that does not sum to 2^32, or
            entries in touching cells that are more than a factor e^epsilon apart.

    Example:
        >>> from reticent.core import Neighborhood, Norm
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> lattice = Lattice.over([[0.0], [1.9]], radius=0.5, tail=0.0)
        >>> even = np.full((2, lattice.size), 2**31, dtype=np.uint32)
        >>> table = LabelTable(lattice=lattice, shares=even, epsilon=1.0, adjacency=near)
        >>> table.probabilities([[0.3]]).tolist()
        [[0.5, 0.5]]
        >>> len(table.release([[0.3]], sampler=SecureSampler()))
        1

    Utility:
        That of the table; the best one for given public weights, and a proved bound on it, come
        from ``reticent.training.label_tables.optimal_table``. On MNIST embeddings at R = 0.5 and
        epsilon 1 and 2: docs/results/posthoc-labels.md.

    Runtime:
        O(dimension) a label, and O(labels cells) once, for the check: 13 milliseconds for 10 labels
        and 100,000 cells with 9 million touching pairs (benchmarks/runtimes.py).

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best mechanism as a linear program.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of points
          within a distance.
        - The proof: docs/label-tables.md.

    See Also:
        reticent.mechanisms.HopRelease: better where epsilon is large.
        reticent.mechanisms.ArgmaxResponse: any two inputs.
        reticent.mechanisms.StabilityRelease: by the margins of a certified network.
    """

    lattice: Lattice
    shares: Shares
    epsilon: float
    adjacency: Neighborhood

    name: ClassVar[str] = "label table"

    def __post_init__(self) -> None:
        check_lattice(self.lattice, self.adjacency)
        positive(self.epsilon, name="epsilon")
        shares = self.shares
        if (
            shares.dtype != np.uint32
            or shares.ndim != 2
            or not (2 <= len(shares) <= 1000 and shares.shape[1] == self.lattice.size)
        ):
            raise InvalidInput(
                f"shares: expected uint32 of shape (labels, {self.lattice.size}) with 2 to 1000 "
                f"labels, got {shares.dtype} {shares.shape}"
            )
        wrong = int(np.count_nonzero(shares.sum(axis=0, dtype=np.uint64) != WHOLE))
        if wrong:
            raise InvalidInput(f"shares: {wrong} columns do not sum to 2^32")
        check_shares(shares, shares, lattice=self.lattice, epsilon=self.epsilon, what="label table")
        frozen = shares.copy()  # a later change by the caller would escape the check
        frozen.setflags(write=False)
        object.__setattr__(self, "shares", frozen)

    @property
    def classes(self) -> int:
        """Number of labels."""
        return len(self.shares)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Cost of one label."""
        return Guarantee(self.epsilon, 0.0, self.adjacency)

    @property
    def event(self) -> PrivacyEvent:
        """Cost of one label, for accounting."""
        return PrivacyEvent(self.name, self.guarantee)

    def probabilities(self, points: npt.ArrayLike) -> Array:
        """Probability of each label for each point, shape (n, labels), exact. Private, where the
        points are.

        Args:
            points: shape (n, dimension), finite.
        """
        return np.asarray(self.shares[:, self.lattice.cells(points)].T / WHOLE)

    def release(self, points: npt.ArrayLike, *, sampler: Sampler) -> Labels:
        """One label for each point.

        Args:
            points: shape (n, dimension), finite.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return draw(self.shares[:, self.lattice.cells(points)], sampler)

    def describe(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        return {"lattice": self.lattice.to_dict()}, {"label_table.shares": self.shares}

    @classmethod
    def from_description(
        cls,
        settings: dict[str, Any],
        arrays: dict[str, npt.NDArray[Any]],
        *,
        epsilon: float,
        adjacency: Neighborhood,
    ) -> LabelTable:
        """The table that ``describe`` took apart, checked again.

        Raises:
            InvalidParameter, InvalidInput: as the constructor.
            KeyError, TypeError: not such a description.
        """
        return cls(
            lattice=Lattice(**settings["lattice"]),
            shares=arrays["label_table.shares"],
            epsilon=epsilon,
            adjacency=adjacency,
        )


def check_lattice(lattice: Lattice, adjacency: Neighborhood) -> None:
    """Raises unless neighbours lie in touching cells.

    Raises:
        InvalidParameter: they may not.
    """
    if not isinstance(adjacency, Neighborhood):
        raise InvalidParameter(
            f"adjacency={type(adjacency).__name__}: expected a Neighborhood, of points"
        )
    if not lattice.covers(adjacency.radius):
        raise InvalidParameter(
            f"lattice: side={lattice.side} steps of 2^{lattice.exponent} with "
            f"reach={lattice.reach} does not cover radius={adjacency.radius:g}; expected "
            "reach side to be at least ceil(radius / 2^exponent) + 1"
        )


def draw(shares: Shares, sampler: Sampler) -> Labels:
    """One row number of each column of ``shares`` with exactly the probability share / 2^32.

    Args:
        shares: shape (labels, n), uint32; columns sum to 2^32.
        sampler: source of randomness.
    """
    ends = np.cumsum(shares, axis=0, dtype=np.int64)
    uniform = sampler.uniform_integers(np.full(shares.shape[1], WHOLE, dtype=np.int64))
    return np.asarray((uniform >= ends).sum(axis=0), dtype=np.int64)
