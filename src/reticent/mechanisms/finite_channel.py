"""One finite channel: a public map to nodes, which nodes are neighbours, and a table of chances
that is checked exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import as_array, count, positive, words
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.guarantees import Adjacency, Neighborhood
from reticent.grids.lattice import Lattice
from reticent.grids.public_graph import PublicGraph
from reticent.grids.shares import WHOLE, Shares, check_shares, excess, factor_below
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler

_FIRST_MIX = 2.0**-28


@dataclass(frozen=True)
class AnyTwo:
    """Nodes of which any two are neighbours. An input is the number of its node.

    Attributes:
        size: number of nodes, at least 2.
    """

    size: int

    def __post_init__(self) -> None:
        count(self.size, name="nodes", minimum=2)

    def cells(self, points: npt.ArrayLike) -> Integers:
        """Return the node of each input: ``points`` as int64, shape (n,).

        Args:
            points: shape (n,), integers in 0 .. size - 1. Private.

        Raises:
            InvalidInput: wrong shape or type, or a node out of range. Values are never shown.
        """
        given = as_array(points, name="nodes")
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise InvalidInput(
                f"nodes: expected a list of integers, got shape={given.shape}, dtype={given.dtype}"
            )
        if given.size and (given.min() < 0 or given.max() >= self.size):
            raise InvalidInput(f"nodes: expected integers from 0 to {self.size - 1}")
        return given.astype(np.int64)

    def touching_maximum(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the largest of ``values``, shape (size,), at every node."""
        return np.full(self.size, values.max())


Nodes = Lattice | PublicGraph | AnyTwo


@dataclass(frozen=True, kw_only=True, eq=False)
class FiniteChannel(Mechanism):
    """One answer for each input, with the probabilities that stand in the column of its node.

    **Guarantee.** One answer is (epsilon, 0)-private, whatever the table was made from, as long as
    nodes and table are public. For whom depends on the nodes:

    - ``Lattice``: inputs within ``adjacency.radius`` of each other, in l1, l2 or l-infinity. Inputs
      h R apart, h a whole number, are told apart by at most a factor e^(h epsilon).
    - ``PublicGraph``: inputs whose nearest public rows are equal or joined. Inputs h edges apart
      are told apart by at most a factor e^(h epsilon). Where no way leads from one to the other,
      nothing is promised.
    - ``AnyTwo``: any two inputs, and so neighbours under every ``adjacency``.

    *Why.* An input acts on the answer through its node alone. For every two neighbouring nodes and
    every answer the table's entries differ by at most a factor e^epsilon. There are finitely many
    pairs, and the constructor compares every one of them: a channel that exists has passed. Points
    within the radius lie in cells that touch (``Lattice``), and between points h R apart lie h - 1
    points in steps of at most R, because the box that the cells cover is convex.

    *Floating point.* None, but on a graph. Entries are whole multiples of 2^-32 that sum to 1
    exactly. e^epsilon is replaced by a rational number below it, cells are found in whole numbers,
    and an answer is drawn by one uniform integer below 2^32. Which public row is nearest is
    computed in double precision, each input by itself: neighbours on a graph are inputs for which
    *that computation* gives equal or joined nodes.

    Attributes:
        nodes: the public map, and which nodes are neighbours.
        shares: shape (answers, nodes), uint32: probabilities in multiples of 2^-32, for 2 to 1000
            answers. Public.
        epsilon: above 0.
        adjacency: definition of neighbours, that of the graph where there is one.

    Raises:
        InvalidParameter: nodes whose neighbours are not those of ``adjacency``.
        InvalidInput: a table of another shape or type, a column that does not sum to 2^32, or
            entries of neighbouring nodes that are more than a factor e^epsilon apart.

    Example:
        >>> import numpy as np
        >>> from reticent.core import Neighborhood, Norm
        >>> from reticent.noise import SecureSampler
        >>> near = Neighborhood(Norm.LINF, 0.5, "embedding")
        >>> lattice = Lattice.over([[0.0], [1.9]], radius=0.5, tail=0.0)
        >>> even = np.full((2, lattice.size), 2**31, dtype=np.uint32)
        >>> channel = FiniteChannel(nodes=lattice, shares=even, epsilon=1.0, adjacency=near)
        >>> channel.probabilities([[0.3]]).tolist()
        [[0.5, 0.5]]
        >>> response = FiniteChannel.response(10, epsilon=5.0, adjacency=near)
        >>> response.probabilities([0]).round(4).tolist()[0][:2]
        [0.9428, 0.0064]
        >>> len(response.release([0, 3], sampler=SecureSampler()))
        2

    Utility:
        The utility of the table. The best one for given public weights, and a proved bound on it,
        come from ``reticent.training.label_tables``. The best one for any two inputs comes from a
        linear program over staircases. Randomised response names the input's own node with
        probability 0.23, 0.45, 0.943 and 0.9996 for ten nodes at epsilon = 1, 2, 5 and 10. No more
        is possible for any two inputs (Kairouz et al.). On MNIST embeddings at R = 0.5:
        docs/results/posthoc-labels.md.

    Runtime:
        O(answers) an answer, and the map to nodes. The check is O(answers nodes), once: 13
        milliseconds for 10 labels and 100,000 cells with 9 million touching pairs
        (benchmarks/runtimes.py).

    References:
        - Warner (1965), "Randomized response: a survey technique for eliminating evasive answer
          bias", doi:10.1080/01621459.1965.10480775.
        - Kasiviswanathan, Lee, Nissim, Raskhodnikova and Smith (2011), "What can we learn
          privately?", doi:10.1137/090756090, local differential privacy.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of points
          within a distance.
        - Kairouz, Oh and Viswanath (2014), "Extremal mechanisms for local differential privacy",
          arXiv:1407.1338, the best mechanism as a linear program.
        - The proof: docs/label-tables.md.

    See Also:
        reticent.mechanisms.HopRelease: a formula in place of a table, for large epsilon.
        reticent.mechanisms.StabilityResponse: labels that may be far from changing.
        reticent.PosthocClassifier: chooses lattice and table on public rows.
        reticent.CodeEncoder: makes nodes and table from public rows, for each of the three.
    """

    nodes: Nodes
    shares: Shares
    epsilon: float
    adjacency: Adjacency

    name: ClassVar[str] = "finite channel"
    rests_on_float64: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_nodes(self.nodes, self.adjacency)
        positive(self.epsilon, name="epsilon")
        shares, size = self.shares, self.nodes.size
        if (
            shares.dtype != np.uint32
            or shares.ndim != 2
            or not (2 <= len(shares) <= 1000 and shares.shape[1] == size)
        ):
            raise InvalidInput(
                f"shares: expected uint32 of shape (answers, {size}) with 2 to 1000 answers, got "
                f"{shares.dtype} {shares.shape}"
            )
        wrong = int(np.count_nonzero(shares.sum(axis=0, dtype=np.uint64) != WHOLE))
        if wrong:
            raise InvalidInput(f"shares: {wrong} columns do not sum to 2^32")
        check_shares(shares, shares, lattice=self.nodes, epsilon=self.epsilon, what=self.name)
        frozen = shares.copy()  # a later change by the caller would escape the check
        frozen.setflags(write=False)
        object.__setattr__(self, "shares", frozen)
        object.__setattr__(self, "rests_on_float64", isinstance(self.nodes, PublicGraph))

    @classmethod
    def response(cls, nodes: int, *, epsilon: float, adjacency: Adjacency) -> Self:
        """Randomised response: the input's own node, or any other one with a share of 1 /
        (e^epsilon + nodes - 1), the least multiple of 2^-32 for which the check passes.

        Args:
            nodes: number of nodes, 2 to 1000.
            epsilon: above 0.
            adjacency: definition of neighbours.
        """
        if not 2 <= count(nodes, name="nodes") <= 1000:
            raise InvalidParameter(f"nodes={nodes!r}: expected 2 to 1000")
        factor = factor_below(epsilon)
        unit = 1 << factor.shift
        both: int = factor.numerator + (nodes - 1) * unit
        wrong = -(-WHOLE * unit // both)
        right = WHOLE - (nodes - 1) * wrong
        shares = np.full((nodes, nodes), wrong, dtype=np.uint32)
        np.fill_diagonal(shares, right)
        if right < wrong:  # an epsilon below what whole shares can tell apart: nothing is told
            shares[:] = WHOLE // nodes
            shares[: WHOLE % nodes] += 1
        return cls(nodes=AnyTwo(nodes), shares=shares, epsilon=epsilon, adjacency=adjacency)

    @property
    def classes(self) -> int:
        """Number of answers."""
        return len(self.shares)

    @cached_property
    def matrix(self) -> Array:
        """Probability of each answer given the node, shape (nodes, answers), exact. Public."""
        return np.asarray(self.shares.T / WHOLE)

    def probabilities(self, inputs: npt.ArrayLike) -> Array:
        """Probability of each answer for each input, shape (n, answers), exact. Private, where the
        inputs are.

        Args:
            inputs: shape (n, dimension), finite, or for ``AnyTwo`` shape (n,), numbers of nodes.
        """
        return np.asarray(self.shares[:, self.nodes.cells(inputs)].T / WHOLE)

    def release(self, inputs: npt.ArrayLike, *, sampler: Sampler) -> Integers:
        """Return one answer for each input.

        Args:
            inputs: inputs that ``probabilities`` takes.
            sampler: source of randomness.

        Returns:
            Shape (n,), int64, in 0 .. classes - 1.

        Raises:
            InvalidInput: wrong shape, NaN or infinity. Values are never shown.
        """
        return draw(self.shares[:, self.nodes.cells(inputs)], sampler)

    def at(self, points: npt.ArrayLike, logits: npt.ArrayLike) -> Shares:
        """Shares of the answers at points that a classifier gives logits, shape (answers, n). Of
        any two inputs the node is the label with the largest logit, the first of equal ones.

        Args:
            points: shape (n, dimension), finite. Private.
            logits: shape (n, labels), the classifier's at the points. Private.
        """
        if not isinstance(self.nodes, AnyTwo):
            return self.shares[:, self.nodes.cells(points)]
        return self.shares[:, self.nodes.cells(np.asarray(logits).argmax(axis=1))]

    def posterior(self, joint: Array) -> Array:
        """Return the probability of each label given the answer, shape (answers, labels).

        Args:
            joint: shape (nodes, labels), how likely node and label are together. Public.
        """
        together = self.matrix.T @ joint
        return np.asarray(together / together.sum(axis=1, keepdims=True))

    def rests_on(self) -> tuple[tuple[str, str], ...]:
        """Return what the guarantee rests on, as a card's details."""
        return nodes_in_words(self.nodes)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Return plain JSON values and named arrays that ``from_description`` reads."""
        settings, arrays = described_nodes(self.nodes)
        return settings, {**arrays, "channel.shares": self.shares}

    @classmethod
    def from_description(
        cls, settings: dict[str, Any], arrays: Arrays, *, epsilon: float, adjacency: Adjacency
    ) -> Self:
        """The channel that ``describe`` took apart, checked again from the first entry to the last.

        Raises:
            InvalidParameter, InvalidInput: as the constructor.
            KeyError, TypeError: not such a description.
        """
        return cls(
            nodes=rebuilt_nodes(settings, arrays),
            shares=cast(Shares, arrays["channel.shares"]),
            epsilon=epsilon,
            adjacency=adjacency,
        )


def whole_shares(table: Array, *, epsilon: float) -> Shares:
    """``table`` in whole multiples of 2^-32 that meet the condition of privacy exactly, shape
    (outputs, bins), as ``FiniteChannel`` takes them.

    Rounding breaks a factor that is met with equality, so the table is mixed with the uniform one,
    with the smallest power of two as its weight for which the exact check passes; weight 1 always
    does.

    Args:
        table: shape (bins, outputs), rows sum to 1.
        epsilon: above 0.
    """
    bins, weight = AnyTwo(len(table)), _FIRST_MIX
    while True:
        mixed = (1.0 - weight) * table + weight / table.shape[1]
        shares = np.maximum(np.floor(mixed * WHOLE).astype(np.int64), 1)
        # What is missing is at most a unit for each output: it goes to the likeliest one.
        rows = np.arange(len(shares))
        shares[rows, mixed.argmax(axis=1)] += WHOLE - shares.sum(axis=1)
        whole = shares.T.astype(np.uint32)
        if weight >= 1.0 or not excess(whole, whole, lattice=bins, epsilon=epsilon):
            return np.asarray(whole)
        weight = min(2.0 * weight, 1.0)


def draw(shares: Shares, sampler: Sampler) -> Integers:
    """Return one row number of each column of ``shares`` with exactly the probability share / 2^32.

    Args:
        shares: shape (answers, n), uint32, whose columns sum to 2^32.
        sampler: source of randomness.
    """
    ends = np.cumsum(shares, axis=0, dtype=np.int64)
    uniform = sampler.uniform_integers(np.full(shares.shape[1], WHOLE, dtype=np.int64))
    return np.asarray((uniform >= ends).sum(axis=0), dtype=np.int64)


def check_nodes(nodes: Nodes, adjacency: Adjacency) -> None:
    """Raises unless neighbours under ``adjacency`` have nodes that are neighbours.

    Raises:
        InvalidParameter: they may not.
    """
    if isinstance(nodes, AnyTwo):
        return
    if not isinstance(adjacency, Neighborhood):
        raise InvalidParameter(
            f"adjacency={type(adjacency).__name__}: expected a Neighborhood, of points"
        )
    if isinstance(nodes, PublicGraph):
        if adjacency != nodes.adjacency:
            raise InvalidParameter(
                f"adjacency: expected that of the graph, {nodes.adjacency.describe()}, got "
                f"{adjacency.describe()}"
            )
    elif not nodes.covers(adjacency.radius):
        raise InvalidParameter(
            f"lattice: side={nodes.side} steps of 2^{nodes.exponent} with reach={nodes.reach} does "
            f"not cover radius={adjacency.radius:g}; expected reach side to be at least "
            "ceil(radius / 2^exponent) + 1"
        )


def nodes_in_words(nodes: Nodes) -> tuple[tuple[str, str], ...]:
    """Return names and values for a card: what neighbours share."""
    if isinstance(nodes, AnyTwo):
        return (("holds for", "any two inputs, however far apart"),)
    if isinstance(nodes, PublicGraph):
        return (("public rows", f"{nodes.size:,}"), ("joined pairs", f"{len(nodes.edges):,}"))
    side = math.ldexp(nodes.side, nodes.exponent)
    cells = " x ".join(str(size) for size in nodes.shape)
    return (("lattice", f"{cells} cells of side {side:.6g}, {nodes.size} in all"),)


def described_nodes(nodes: Nodes) -> tuple[dict[str, Any], Arrays]:
    """Return plain JSON values and named arrays that ``rebuilt_nodes`` reads."""
    if isinstance(nodes, AnyTwo):
        return {"any_two": nodes.size}, {}
    if isinstance(nodes, PublicGraph):
        settings = {"origin": nodes.origin} if nodes.origin else {}
        return settings, {"graph.points": nodes.points, "graph.edges": nodes.edges}
    return {"lattice": nodes.to_dict()}, {}


def rebuilt_nodes(settings: dict[str, Any], arrays: Arrays) -> Nodes:
    """Return the nodes that ``described_nodes`` took apart.

    Raises:
        InvalidParameter, InvalidInput: as their constructor.
        KeyError, TypeError: not such a description.
    """
    if "any_two" in settings:
        return AnyTwo(settings["any_two"])
    if "lattice" in settings:
        return Lattice(**settings["lattice"])
    return PublicGraph(
        points=arrays["graph.points"],
        edges=arrays["graph.edges"],
        origin=words(settings.get("origin", ""), name="origin", minimum=0),
    )
