"""``NoisyGradientClassifier``: softmax regression by full-batch gradient descent on noisy sums."""

from __future__ import annotations

from typing import Any

from reticent.systems.record_labels import Classes
from reticent.systems.votes.released_model import ReleasedModel


class NoisyGradientClassifier(ReleasedModel):
    """Softmax regression on public features; every step is a noisy sum of clipped residuals.

    Args:
        epsilon, delta, classes, feature_map, feature_range, components, whitening, counting,
            data_set, random_state, student_share: see ``ReleasedModel``.
        steps: T, gradient steps; 0 for a model of the public labels alone, which costs nothing.
        learning_rate: of the mean gradient of feature vectors of length 1.
        momentum: in [0, 1).
        step_decay: the rate of step t is learning_rate / (1 + step_decay t); at least 0.
        penalty: l2 regularisation of the mean loss; at least 0.
        average: whether the iterates of the second half of the steps are averaged.
        warm_start: whether training starts from softmax regression on ``public_y``.
        intercept: length of the constant column beside a feature vector of length 1; at least 0.
        records: a public number, about that of the private records, which sums are divided by;
            None for a noisy count, paid from the total.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        classes: Classes,
        steps: int = 40,
        learning_rate: float = 20.0,
        momentum: float = 0.9,
        step_decay: float = 0.0,
        penalty: float = 0.0,
        average: bool = True,
        warm_start: bool = False,
        intercept: float = 0.3,
        records: int | None = None,
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
        self.steps = steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.step_decay = step_decay
        self.penalty = penalty
        self.average = average
        self.warm_start = warm_start
        self.intercept = intercept
        self.records = records
        self.feature_map = feature_map
        self.feature_range = feature_range
        self.components = components
        self.whitening = whitening
        self.counting = counting
        self.data_set = data_set
        self.random_state = random_state
        self.student_share = student_share
