"""``MomentClassifier`` and ``MomentRegressor``: a noisy sum of features times labels, with second
moments from public rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.checks import positive
from reticent.core.settings import with_settings
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.features import Features
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import Directions, LinearModel, inverse_moments
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.systems.votes.sums import outer_sum
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import LENGTH


@with_settings
class _Moments(LinearModel):
    """Public second moments, inverted, times a noisy sum of features times label vectors."""

    ridge: float = 0.1

    @override
    def check_settings(self) -> None:
        super().check_settings()
        positive(self.ridge, name="ridge")

    @override
    def prepare(self, public: PublicRows | None) -> None:
        self._inverse = inverse_moments(
            None if public is None else self._directions(public.points),
            self.space_.dimension + 1,
            ridge=self.ridge,
        )

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        sums = tuple(
            SumBlock(
                (self.space_.dimension + 1) * output.width,
                LENGTH * output.length,
                (1.0 - COUNT_SHARE) * share,
            )
            for output, share in zip(self._columns.outputs, self._columns.shares, strict=True)
        )
        return (*sums, SumBlock(1, COUNT_STEPS, COUNT_SHARE)), 1

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        outputs = self._columns.outputs
        totals = [np.zeros((self.space_.dimension + 1, output.width)) for output in outputs]
        for part, directions in Directions(voters, self):
            for total, (output, codes) in zip(totals, self._columns.each(part.codes), strict=True):
                lengths = (LENGTH, output.length)
                total += outer_sum(part, directions, output.vectors(codes), lengths=lengths)
        *noisy, counted = session.release((*totals, [COUNT_STEPS * voters.units]))
        count = NoisyCount(session.sigmas[-1])
        count.add(counted)
        self.weights_ = np.concatenate(
            [
                output.gain
                * self._inverse
                @ output.contrast(sums / (LENGTH * output.unit))
                / count.value
                for output, sums in zip(outputs, noisy, strict=True)
            ],
            axis=1,
        )
        del self._inverse


@with_settings
class MomentClassifier(_Moments, ReleasedClassifier):
    """A linear classifier: public second moments, inverted, times a noisy sum of features by label.

    With features phi of length at most 1, the sum of phi (e_y - 1/K) has sensitivity sqrt(1 - 1/K).
    Divided by a (noisy) number of records and multiplied by the inverse of the second moments it is
    least-squares regression of the labels, but with moments of public rows, which cost nothing.

    Args:
        epsilon, delta, features, counting, data_set: see ``ReleasedModel``.
        classes, student_share: see ``ReleasedClassifier``.
        ridge: added to the public second moments, as a share of their mean.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> model = MomentClassifier(epsilon=2.0, delta=1e-5, classes=range(10))
        >>> model.fit(X[:1300], y[:1300], public_X=X[1300:]).predict(X[:3]).shape
        (3,)

    References:
        - Fisher (1936), "The use of multiple measurements in taxonomic problems",
          doi:10.1111/j.1469-1809.1936.tb02137.x, linear discriminants.
        - Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
          prediction & estimation in unbounded domain", arXiv:1803.02596, regression from noisy
          moments; here the second moments are public and have no noise.

    See Also:
        reticent.MomentRegressor: the same for targets.
        reticent.NoisyGradientClassifier: the cross entropy in place of squares, by steps.
        reticent.LinearVoteClassifier: the same model, asked one query at a time.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedClassifier.settings_grid``."""
        dimensions = sorted({min(features, size) for size in (20, 60, 200)})
        return [
            {"features": Features(components=kept), "ridge": ridge}
            for kept in dimensions
            for ridge in (0.1, 1.0)
        ]


@with_settings
class MomentRegressor(_Moments, ReleasedRegressor):
    """Linear regression: public second moments, inverted, times a noisy sum of features times
    targets.

    With features phi cut to a length of 1, and a target t in [-1, 1] (halves of its public range
    from the middle), one record more or less moves the sum of phi t by at most 1 in l2; a record in
    place of another by at most 2; with ``persons`` a person's sum is cut to 1. With L targets the
    joint sum moves by at most sqrt(L). The sum is divided by a noisy number of records and
    multiplied by the inverse of the second moments of public rows: everything but the sum and the
    count is public.

    Args:
        epsilon, delta, features, counting, data_set: see ``ReleasedModel``.
        target_range: see ``ReleasedRegressor``.
        ridge: added to the public second moments, as a share of their mean.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = MomentRegressor(epsilon=10.0, delta=1e-5, target_range=(0, 400))
        >>> model.fit(X[:300], y[:300], public_X=X[300:]).predict(X[:3]).shape
        (3,)

    References:
        - Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
          prediction & estimation in unbounded domain", arXiv:1803.02596, regression from noisy
          moments; here the second moments are public and have no noise.

    See Also:
        reticent.NoisyGradientRegressor: by steps, of residuals that are cut more closely.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    _reach = 2.0
    _shapes = ("schema", "map", "range", "components", "whitening", "reach")

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, targets: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedRegressor.settings_grid``."""
        dimensions = sorted({min(features, size) for size in (5, 20, 60)})
        return [
            {"features": Features(components=kept), "ridge": ridge}
            for kept in dimensions
            for ridge in (0.03, 0.3, 3.0)
        ]
