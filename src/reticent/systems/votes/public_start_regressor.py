"""``PublicStartRegressor``: a few noisy gradients, started from regressors of public targets."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import RESIDUAL
from reticent.systems.votes.outputs import TARGET_STEPS, Output
from reticent.systems.votes.released_regressor import ReleasedRegressor
from reticent.systems.votes.started_model import StartedModel
from reticent.training.public_pool import TargetColumn, checked_pool, usual_regressors

_CUT = 2.0  # deviations of public residuals to which a residual is cut
_LEAST_CUT = 1e-3


@with_settings
class PublicStartRegressor(StartedModel, ReleasedRegressor):
    """The best public regression, moved by a few noisy gradients as far as they are worth.

    Regressors of public rows are pooled. Their prediction is the offset of a model that is linear
    in public features. Noisy sums of residuals, cut to two deviations of those of left-out public
    rows, give its gradients. Curvature and shrinkage are as in ``PublicStartClassifier``.

    A record adds a direction of length at most 1 times a residual of at most one cut, whatever its
    offset is. Several targets have an offset, a residual and a block of the sum each.

    Args:
        epsilon, delta, counting, data_set: arguments of ``ReleasedModel``.
        target_range: argument of ``ReleasedRegressor``.
        features: the number of components and their whitening, or None for the rule of ``rows``.
        pool: regressors of scikit-learn for the public rows, not fitted, or None for ridge
            regressions, boosted trees and forests. A bundle holds these kinds alone. An empty list
            is a start from the mean of public targets.
        rows: argument of ``PublicStartClassifier``.
        records: argument of ``PublicStartClassifier``.

    Runtime:
        4 to 9 CPU seconds for the public rows of a table, and less than one for 10,000 records.

    Example:
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.linear_model import Ridge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = PublicStartRegressor(
        ...     epsilon=4.0, delta=1e-5, target_range=(0, 400), pool=[Ridge()], records=300
        ... )
        >>> model.fit(X[:300], y[:300], public_X=X[300:], public_y=y[300:]).predict(X[:3]).shape
        (3,)

    References:
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).
        - Huber (1964), "Robust estimation of a location parameter", doi:10.1214/aoms/1177703732
          (residuals that are cut).

    See Also:
        reticent.PublicStartClassifier: the same for labels.
        reticent.NoisyGradientRegressor: without a start from trees.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    cuts_: Array = learned()
    _spreads: Array = learned()
    _kept_share: Array = learned()

    @override
    def check_settings(self) -> None:
        super().check_settings()
        checked_pool(self.pool, asked="predict")

    @override
    def _column(self, output: Output, codes: Integers | None) -> TargetColumn:
        if codes is None:
            raise InvalidInput("public_y: expected targets of public rows, got none")
        models = checked_pool(self.pool, asked="predict")
        if models is None:
            models = usual_regressors(len(codes), table=self.rows == "table")
        return TargetColumn(codes / TARGET_STEPS, models)

    @override
    def prepare(self, public: PublicRows | None) -> None:
        super().prepare(public)
        assert public is not None
        assert public.codes is not None
        told = [codes / TARGET_STEPS for _, codes in self._columns.each(public.codes)]
        away = np.column_stack(told) - self.held_out_
        deviations = np.sqrt(np.square(away).mean(axis=0))
        self.cuts_ = np.clip(_CUT * deviations, _LEAST_CUT, 2.0)
        cut = np.clip(away / self.cuts_, -1.0, 1.0)
        self._kept_share = np.maximum((np.abs(cut) < 1.0).mean(axis=0), 0.1)
        self._spreads = np.square(cut).mean(axis=0)

    @property
    @override
    def _middle(self) -> float:
        return 0.1

    @override
    def _free(self, output: Output) -> int:
        """Return 1."""
        return 1

    @override
    def _sampling(self, at: int) -> float:
        return float(self._spreads[at] / self._kept_share[at])

    @override
    def _residuals(self, at: int, offsets: Array, linear: Array, codes: Integers) -> Array:
        """Return targets less predictions in cuts, cut to 1."""
        away = (codes[:, None] / TARGET_STEPS - offsets) / self.cuts_[at] - linear
        return np.asarray(np.clip(np.rint(away * RESIDUAL), -RESIDUAL, RESIDUAL))

    @override
    def _bends(self, at: int, offsets: Array, linear: Array) -> Array:
        return np.full_like(offsets, self._kept_share[at])

    @override
    def scores(self, points: Array) -> Array:
        return np.asarray(self._offsets(points) + super().scores(points) * self.cuts_)

    @override
    def arrays(self) -> Arrays:
        return super().arrays() | {"cuts": self.cuts_}

    @override
    def restore(self, arrays: Arrays) -> None:
        super().restore(arrays)
        self.cuts_ = finite_array(arrays["cuts"], name="cuts", ndim=1)
        if len(self.cuts_) != self._columns.width or not (self.cuts_ > 0).all():
            raise InvalidInput("cuts: expected a number above 0 for each target")
