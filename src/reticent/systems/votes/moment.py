"""``MomentClassifier``: a noisy sum of features by label, with second moments from public rows."""

from __future__ import annotations

from typing import Any

from reticent.systems.record_labels import Classes
from reticent.systems.votes.released_model import ReleasedModel


class MomentClassifier(ReleasedModel):
    """A linear classifier: public second moments, inverted, times a noisy sum of features by label.

    Args:
        epsilon, delta, classes, feature_map, feature_range, components, whitening, counting,
            data_set, random_state, student_share: see ``ReleasedModel``.
        ridge: added to the public second moments, as a share of their mean.
        intercept: length of the constant column beside a feature vector of length 1; at least 0.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        ridge: float = 0.1,
        intercept: float = 0.3,
        feature_map: Any = None,
        feature_range: Any = None,
        components: int | None = None,
        whitening: float = 0.5,
        counting: str = "add-remove",
        data_set: str | None = None,
        random_state: int = 0,
        student_share: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.ridge = ridge
        self.intercept = intercept
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
        self.student_share = student_share
