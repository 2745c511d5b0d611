"""The simplest release of a label, which demonstrations of released inputs are compared with."""

from __future__ import annotations

import math

RESPONSE = "randomised response on the label"


def response_accuracy(accuracy: float, *, epsilon: float, classes: int) -> float:
    """Expected accuracy of randomised response on the labels of a model; any two inputs are
    neighbours.

    Args:
        accuracy: of the model's labels, in [0, 1].
        epsilon: of one answer, above 0.
        classes: how many labels there are.

    Example:
        >>> round(response_accuracy(1.0, epsilon=math.log(9), classes=10), 3)
        0.5
    """
    kept = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    return accuracy * kept + (1.0 - accuracy) * (1.0 - kept) / (classes - 1)
