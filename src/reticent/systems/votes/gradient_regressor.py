"""``NoisyGradientRegressor``: linear regression by full-batch gradient descent on noisy sums."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import real
from reticent.core.errors import InvalidParameter
from reticent.core.settings import with_settings
from reticent.mechanisms import SumSession
from reticent.systems.votes.descent import Descent
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import RESIDUAL, inverse_moments, scores_of
from reticent.systems.votes.outputs import TARGET_STEPS, Output
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.systems.votes.voters import ReadVoters, Voters

_RATE = 0.7  # in the metric of public rows, where 1 is the step to the minimum of squares
_RIDGE = 0.1
"""Added to the public second moments, as a share of their mean."""


@with_settings
class NoisyGradientRegressor(Descent, ReleasedRegressor):
    """Linear regression on public features, of which every step is a noisy sum of clipped
    residuals.

    Features phi are cut to a length of 1 and a residual to ``residual`` halves of the public range
    of targets. So a record adds at most ``residual`` in l2 to a gradient, and sqrt(L) times that to
    those of L targets. A record in place of another moves it by at most twice as much. With
    ``persons`` a person's sum is cut as one record's is. T noisy gradients compose exactly as one
    Gaussian mechanism. Steps are turned by the inverse of the second moments of public rows, so
    that few of them suffice. That, the rate, the average of the iterates and what is divided by are
    post-processing of released sums with public numbers.

    Args:
        epsilon, delta, features, counting, data_set: arguments of ``ReleasedModel``.
        target_range: argument of ``ReleasedRegressor``.
        steps: number of gradient steps, T.
        residual: number of halves of the range to which a residual is cut, from .001 to 2, which
            cuts none.
        records: public number, about that of the private records, which sums are divided by, or
            None for a noisy count, paid from the total.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = NoisyGradientRegressor(epsilon=10.0, delta=1e-5, target_range=(0, 400))
        >>> model.fit(X[:300], y[:300], public_X=X[300:]).predict(X[:3]).shape
        (3,)

    References:
        - Bassily, Smith and Thakurta (2014), "Private empirical risk minimization: efficient
          algorithms and tight error bounds", doi:10.1109/FOCS.2014.56.
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).

    See Also:
        reticent.PublicStartRegressor: where public rows have targets.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    steps: int = 5
    residual: float = 0.5

    _reach = 2.0
    _shapes = ("schema", "map", "range", "components", "whitening", "reach")

    @override
    def check_settings(self) -> None:
        super().check_settings()
        if not 0.001 <= real(self.residual, name="residual") <= 2:
            raise InvalidParameter(f"residual={self.residual!r}: expected a number from .001 to 2")

    @property
    @override
    def _rate(self) -> float:
        return _RATE

    @override
    def prepare(self, public: PublicRows | None) -> None:
        super().prepare(public)
        self._inverse = inverse_moments(
            None if public is None else self._directions(public.points),
            self.space_.dimension + 1,
            ridge=_RIDGE,
        )

    @override
    def learn(
        self, voters: Voters | ReadVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        super().learn(voters, public, session)
        del self._inverse

    @override
    def _turned(self, gradient: Array) -> Array:
        return self.residual * self._inverse @ gradient

    @override
    def _residuals(
        self, directions: Array, codes: Integers, weights: Array, output: Output
    ) -> Array:
        away = scores_of(directions, weights) - codes[:, None] / TARGET_STEPS
        return np.clip(np.rint(away * (RESIDUAL / self.residual)), -RESIDUAL, RESIDUAL)
