"""A label drawn from a table on a public graph: neighbours by data, and an exact check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from reticent.core.errors import InvalidParameter
from reticent.core.guarantees import Neighborhood
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import Shares
from reticent.mechanisms.checked_table import CheckedTable


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphTable(CheckedTable):
    """One label for each point, with the probabilities of the public point that is nearest to it.

    **Guarantee.** One label is (epsilon, 0)-private for inputs whose nodes are equal or joined,
    whatever the table was made from, as long as graph and table are public. Inputs whose nodes are
    h edges apart are told apart by at most a factor e^(h epsilon); where no way leads from one to
    the other, nothing is promised.

    *Why.* A label's distribution is its node's column, and for every two joined nodes and every
    label the entries differ by at most a factor e^epsilon. There are finitely many pairs, and the
    constructor compares every one of them: a table that exists has passed. Along a way of h edges
    the factors multiply.

    *Floating point.* Which node is nearest is computed in double precision, each point by itself:
    neighbours are inputs for which *that computation* gives equal or joined nodes. Entries are
    whole multiples of 2^-32 that sum to 1 exactly; e^epsilon is replaced by a rational number below
    it; and a label is drawn by one uniform integer below 2^32.

    Attributes:
        graph: public.
        shares: shape (labels, nodes), uint32: probabilities in multiples of 2^-32. Public.
        epsilon: above 0.
        adjacency: that of the graph.

    Raises:
        InvalidParameter: an adjacency that is not the graph's.
        InvalidInput: a table of another shape or type, a column that does not sum to 2^32, or
            entries of joined nodes that are more than a factor e^epsilon apart.

    Example:
        >>> import numpy as np
        >>> from reticent.noise import SecureSampler
        >>> graph = PublicGraph.nearest([[0.0], [1.0], [3.0]], neighbours=1)
        >>> table = GraphTable.of(np.full((2, 3), 2**31, dtype=np.uint32), graph=graph, epsilon=1.0)
        >>> table.probabilities([[0.3]]).tolist()
        [[0.5, 0.5]]
        >>> len(table.release([[0.3]], sampler=SecureSampler()))
        1

    Utility:
        That of the table; the best one for given public weights, and a proved bound on it, come
        from ``reticent.training.label_tables.exact_graph_table``. On MNIST embeddings:
        docs/results/posthoc-nearest-rows.md.

    Runtime:
        O(nodes dimension) a label, and O(labels edges) once, for the check.

    References:
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best mechanism as a linear program.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of points
          within a distance.
        - The proof: docs/label-tables.md.

    See Also:
        reticent.mechanisms.LabelTable: points within a radius of an embedding.
        reticent.NearestRowClassifier: makes graph and table from public rows.
    """

    graph: PublicGraph

    name: ClassVar[str] = "graph table"

    @classmethod
    def of(cls, shares: Shares, *, graph: PublicGraph, epsilon: float) -> Self:
        """The table under the adjacency of its graph."""
        return cls(shares=shares, epsilon=epsilon, adjacency=graph.adjacency, graph=graph)

    @property
    def cells(self) -> PublicGraph:
        """The graph."""
        return self.graph

    def _check_adjacency(self) -> None:
        if self.adjacency != self.graph.adjacency:
            given = self.adjacency
            raise InvalidParameter(
                f"adjacency: expected that of the graph, {self.graph.adjacency.describe()}, got "
                f"{given.describe() if isinstance(given, Neighborhood) else type(given).__name__}"
            )
