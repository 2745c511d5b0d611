"""A label drawn from a table on a public lattice: no Lipschitz constant, and an exact check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.grids.lattice import Lattice
from reticent.mechanisms.checked_table import CheckedTable


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTable(CheckedTable):
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
        >>> import numpy as np
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
        reticent.mechanisms.GraphTable: neighbours by a public graph.
        reticent.mechanisms.HopRelease: better where epsilon is large.
        reticent.mechanisms.ArgmaxResponse: any two inputs.
        reticent.mechanisms.StabilityRelease: by the margins of a certified network.
    """

    lattice: Lattice

    name: ClassVar[str] = "label table"
    rests_on_float64: ClassVar[bool] = False

    @property
    def cells(self) -> Lattice:
        """The lattice."""
        return self.lattice

    def _check_adjacency(self) -> None:
        check_lattice(self.lattice, self.adjacency)

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
