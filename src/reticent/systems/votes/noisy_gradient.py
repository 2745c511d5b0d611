"""``NoisyGradientClassifier``: softmax regression by full-batch gradient descent on noisy sums."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter
from reticent.core.settings import with_settings
from reticent.grids.whole_numbers import clipped, softmax
from reticent.systems.votes.descent import Descent
from reticent.systems.votes.linear_model import RESIDUAL, scores_of
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.released_classifier import ReleasedClassifier

_LARGEST_RATE = 2.0**60  # a step stays finite, whatever the noise


@with_settings
class NoisyGradientClassifier(Descent, ReleasedClassifier):
    """Softmax regression on public features, of which every step is a noisy sum of clipped
    residuals.

    With features phi of length at most 1 and a residual p - e_y cut to length 1, a record adds at
    most 1 in l2 to a gradient. T noisy gradients compose exactly as one Gaussian mechanism, so T
    costs nothing but noise sqrt(T) larger. What the sum is divided by, the momentum, the rate and
    the average of the iterates are post-processing of released sums with public numbers.

    Args:
        epsilon, delta, features, counting, data_set: arguments of ``ReleasedModel``.
        classes, student_share: arguments of ``ReleasedClassifier``.
        steps: number of gradient steps, T.
        learning_rate: rate of the mean gradient of feature vectors of length 1, above 0.
        records: public number, about that of the private records, which sums are divided by, or
            None for a noisy count, paid from the total.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> model = NoisyGradientClassifier(epsilon=2.0, delta=1e-5, classes=range(10), steps=10)
        >>> model.fit(X[:1300], y[:1300], public_X=X[1300:]).predict(X[:3]).shape
        (3,)

    References:
        - Song, Chaudhuri and Sarwate (2013), "Stochastic gradient descent with differentially
          private updates", doi:10.1109/GlobalSIP.2013.6736861.
        - Bassily, Smith and Thakurta (2014), "Private empirical risk minimization: efficient
          algorithms and tight error bounds", doi:10.1109/FOCS.2014.56.
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).

    See Also:
        reticent.PublicStartClassifier: where public rows have labels.
        reticent.NoisyGradientRegressor: squares in place of the cross entropy, for targets.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    steps: int = 40
    learning_rate: float = 20.0

    _momentum = 0.9

    @override
    def check_settings(self) -> None:
        super().check_settings()
        if positive(self._rate, name="learning_rate") > _LARGEST_RATE:
            raise InvalidParameter(
                f"learning_rate={self._rate!r}: expected at most {_LARGEST_RATE:g}"
            )

    @property
    @override
    def _rate(self) -> float:
        return self.learning_rate

    @override
    def _residuals(
        self, directions: Array, codes: Integers, weights: Array, output: Output
    ) -> Array:
        return residual_steps(directions, codes, weights)


def residual_steps(directions: Array, codes: Integers, weights: Array) -> Array:
    """Return p - e_y for every record, cut to length 1, in steps of 1 / ``RESIDUAL``.

    They have shape (n, classes) and are whole numbers. Each row is from that record and the weights
    alone, to the last bit.

    Args:
        directions: shape (n, m), whole numbers, of an l2 norm of at most ``LENGTH``.
        codes: shape (n,), places of labels.
        weights: shape (m, classes), from ``cut_weights``.
    """
    shares = softmax(scores_of(directions, weights))
    shares[np.arange(len(codes)), codes] -= 1.0
    return clipped(np.rint(shares * RESIDUAL), RESIDUAL)
