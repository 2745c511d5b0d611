"""A fitted release of labels by the nearest public row: the table that answers, and its card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays
from reticent.core.checks import count, one_of
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import GuaranteeCard
from reticent.grids.public_graph import PublicGraph
from reticent.mechanisms import FiniteChannel
from reticent.noise import Sampler
from reticent.systems import clauses as say

NEAREST, COUNTERFACTUAL = "nearest", "counterfactual"
"""How public rows are joined: to the nearest, or to the nearest of another value."""

_JOINED = {
    NEAREST: "each public row is joined to the {number} nearest to it",
    COUNTERFACTUAL: (
        "each public row is joined to the {number} nearest with another value of one attribute"
    ),
}


@dataclass(frozen=True, eq=False)
class NearestRowQuery:
    """Everything that answering takes, all of it public.

    Attributes:
        mechanism: the table that answers.
        graph: public rows, and which are joined: the nodes of the table.
        labels: the likeliest label of each node, shape (nodes,).
        joined: "nearest" or "counterfactual".
        neighbours: how many public rows each was joined to at least.
        worth: expected accuracy of a released label on the public rows, by the classifier's
            probabilities.
        bound: no table on this graph is worth more on these rows; proved.
    """

    mechanism: FiniteChannel
    graph: PublicGraph
    labels: npt.NDArray[np.int64]
    joined: str
    neighbours: int
    worth: float
    bound: float

    def __post_init__(self) -> None:
        one_of(self.joined, _JOINED, name="joined")
        count(self.neighbours, name="neighbours")
        fits = (
            self.labels.shape == (self.graph.size,)
            and self.labels.dtype == np.int64
            and self.labels.min() >= 0
            and self.labels.max() < self.mechanism.classes
        )
        if not fits or not 0.0 <= self.worth <= self.bound < math.inf:
            raise InvalidInput(
                "query: expected one label for each node, and a worth of at most its bound"
            )

    @property
    def certificate(self) -> str:
        """No bound of a network is used."""
        return "none"

    def worst_joined(self, nodes: npt.NDArray[np.int64]) -> tuple[int, int]:
        """Of the nodes given and those joined to one of them, the two whose chances of some label
        differ most; for audits and attacks.

        Args:
            nodes: shape (n,), at least one.
        """
        near = np.unique(nodes)
        start, end = np.nonzero(self.graph.hop_counts(self.graph.points[near]) <= 1.0)
        logs = np.log(self.mechanism.probabilities(self.graph.points))
        worst = int(np.abs(logs[near[start]] - logs[end]).max(axis=1).argmax())
        return int(near[start[worst]]), int(end[worst])

    def answer(
        self, inputs: Array, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """One answer for each row of checked ``inputs``; none is withheld.

        Args:
            inputs: shape (n, features), finite.
            sampler: source of randomness.
        """
        answers = self.mechanism.release(inputs, sampler=sampler)
        return answers, np.zeros(len(answers), dtype=np.bool_)

    def describe(self) -> tuple[dict[str, Any], Arrays]:
        """Plain JSON values and named arrays that ``from_description`` reads."""
        settings = {
            "epsilon": self.mechanism.epsilon,
            "joined": self.joined,
            "neighbours": self.neighbours,
            "worth": self.worth,
            "bound": self.bound,
        }
        nodes, arrays = self.mechanism.describe()
        return {**settings, **nodes}, {**arrays, "labels": self.labels}

    @classmethod
    def from_description(cls, settings: Mapping[str, Any], arrays: Arrays) -> NearestRowQuery:
        """The query that ``describe`` took apart, its table checked again from the first entry to
        the last.

        Raises:
            InvalidInput, InvalidParameter: a graph or a table that is refused.
            KeyError, TypeError: not such a description.
        """
        graph = PublicGraph(points=arrays["graph.points"], edges=arrays["graph.edges"])
        return cls(
            FiniteChannel(
                nodes=graph,
                shares=arrays["channel.shares"],
                epsilon=settings["epsilon"],
                adjacency=graph.adjacency,
            ),
            graph,
            arrays["labels"],
            settings["joined"],
            settings["neighbours"],
            settings["worth"],
            settings["bound"],
        )


def nearest_row_card(query: NearestRowQuery) -> GuaranteeCard:
    """Return the card of ``query``: what is protected, from whom, and what is assumed."""
    guarantee, graph = query.mechanism.guarantee, query.graph
    joined = _JOINED[query.joined].format(number=query.neighbours)
    return say.input_card(
        query,
        title="Released label, hidden among inputs like the nearest public row",
        protected="Which of two inputs an answer came from, whenever the public rows that are "
        f"nearest to them are the same or joined ({graph.size:,} public rows; {joined}): "
        f"{say.odds(guarantee, between='between them ')}. {say.naming_words(guarantee)} "
        f"{say.ALWAYS_ANSWERED}",
        from_whom=say.INTO_THE_BUNDLE.format(values="labels"),
        assumptions=say.phrases(
            say.OWNERS_AGREED.of(
                data="the rows that the release was fitted on",
                more=": the bundle holds some of them as they are",
            ),
            say.TRUSTED_DEVICE.of(input="input"),
        ),
        not_protected=say.phrases(
            say.REFUSED,
            "which rough kind of input it is: public rows that are not joined may have labels of "
            "very different probabilities",
            say.farther_words(
                guarantee,
                "inputs whose nearest public rows are h edges apart, h a whole number (nothing is "
                "promised where no way leads from one to the other)",
            ),
            say.TWICE.of(input="input"),
            "the public rows",
        ),
        details=(
            *query.mechanism.rests_on(),
            ("mechanism", query.mechanism.name),
            ("expected accuracy, by the classifier's probabilities", f"{query.worth:.4f}"),
            ("no table on this graph is better than", f"{query.bound:.4f}"),
        ),
    )
