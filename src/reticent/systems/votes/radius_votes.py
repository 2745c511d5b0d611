"""``RadiusVotesClassifier``: the records within a public radius of the query vote."""

from __future__ import annotations

from typing import Any

from reticent.systems.record_labels import Classes
from reticent.systems.votes.query_votes import QueryVotes


class RadiusVotesClassifier(QueryVotes):
    """Every record within a public radius of the query has one vote for its label.

    Args:
        epsilon, delta, classes, answers, response, feature_map, feature_range, components,
            whitening, counting, data_set, random_state: see ``QueryVotes``.
        share: of the public rows that lie within the radius of a query, in (0, 1]; so every query
            has a radius of its own, from public rows.
        radius: one radius for all queries in place of ``share``, in units of the root mean square
            length of public rows (of the box, without public rows); None where ``share`` is meant.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        answers: int,
        response: str = "auto",
        share: float | None = 0.02,
        radius: float | None = None,
        feature_map: Any = None,
        feature_range: Any = None,
        components: int | None = None,
        whitening: float = 0.5,
        counting: str = "add-remove",
        data_set: str | None = None,
        random_state: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.answers = answers
        self.response = response
        self.share = share
        self.radius = radius
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
