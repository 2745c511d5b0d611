"""``LinearVoteClassifier``: records vote for their label as far as they point the query's way."""

from __future__ import annotations

from typing import Any

from reticent.systems.record_labels import Classes
from reticent.systems.votes.query_votes import QueryVotes


class LinearVoteClassifier(QueryVotes):
    """A record with features phi votes clip(<phi, u_x> / tau_x, -1, 1) for its label at query x.

    u_x is the query's feature vector times the inverse of the public second moments; tau_x is a
    quantile of |<phi, u_x>| over the public rows.

    Args:
        epsilon, delta, classes, answers, response, feature_map, feature_range, components,
            whitening, counting, data_set, random_state: see ``QueryVotes``.
        ridge: added to the public second moments, as a share of their mean.
        clip_quantile: share of public rows whose vote is not clipped, in (0, 1].
        intercept: length of the constant column beside a feature vector of length 1; at least 0.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        answers: int,
        response: str = "auto",
        ridge: float = 0.1,
        clip_quantile: float = 0.5,
        intercept: float = 0.3,
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
        self.ridge = ridge
        self.clip_quantile = clip_quantile
        self.intercept = intercept
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
