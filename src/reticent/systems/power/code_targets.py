"""Targets of a code beside labels, and kinds of neighbours."""

from __future__ import annotations

from dataclasses import dataclass

from reticent.core.checks import count, positive
from reticent.core.errors import InvalidParameter
from reticent.core.norms import Norm
from reticent.core.settings import Group
from reticent.grids.public_graph import MOST_NODES


@dataclass(frozen=True)
class Recall(Group):
    """A target: which of the public rows are among the nearest.

    Attributes:
        k: number of rows that an answer names, from 1.
        rows: number of rows of X, the first ones, that are looked for, or None for all.
    """

    k: int = 10
    rows: int | None = None

    @property
    def name(self) -> str:
        """The target's name, such as "recall@10"."""
        return f"recall@{self.k}"

    def check(self) -> None:
        """Raise InvalidParameter if ``k`` or ``rows`` is no whole number from 1."""
        count(self.k, name="k")
        if self.rows is not None:
            count(self.rows, name="rows", minimum=self.k + 2)


@dataclass(frozen=True)
class ExplainedVariance(Group):
    """A target: the encoded row or embedding itself, by the share of its variance that the mean
    given the answer explains.
    """

    @property
    def name(self) -> str:
        """The target's name."""
        return "explained variance"

    def check(self) -> None:
        """Do nothing: there is nothing to set."""


@dataclass(frozen=True)
class Within(Group):
    """Neighbours that are inputs within a distance of each other, by touching cells of a lattice.

    Attributes:
        radius: radius above 0, in the units of the encoded row or the embedding.
        norm: "linf", "l1" or "l2". Balls of the others lie inside that of "linf".
    """

    radius: float
    norm: str = "linf"

    def check(self) -> None:
        """Raise InvalidParameter if radius or norm cannot be used."""
        positive(self.radius, name="radius")
        Norm.parse(self.norm)


@dataclass(frozen=True)
class NearRows(Group):
    """Neighbours that are inputs whose nearest public rows are equal or joined by a public graph.

    Attributes:
        nodes: number of public rows in the graph, 2 to 20,000, drawn at random. More of them are
            closer to an input, and hide it among fewer different ones.
        neighbours: least number of rows that each is joined to, from 1. More of them hide more, and
            cost worth.
        other: name of a target that is a label, or None for the nearest rows whatever they are.
            Rows are joined to the nearest rows with another value of it, so that it is hidden among
            counterfactuals that exist.
    """

    nodes: int = 300
    neighbours: int = 10
    other: str | None = None

    def check(self) -> None:
        """Raise InvalidParameter if the numbers cannot be used."""
        if count(self.nodes, name="nodes", minimum=2) > MOST_NODES:
            raise InvalidParameter(f"nodes={self.nodes}: expected at most {MOST_NODES}")
        count(self.neighbours, name="neighbours")
