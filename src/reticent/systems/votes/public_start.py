"""``PublicStartClassifier``: a few noisy gradients, started from models of labelled public rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import count, one_of
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import clipped, softmax
from reticent.mechanisms import SumBlock, SumSession
from reticent.mechanisms.gaussian import analytic_sigma
from reticent.systems.votes.descent import RESIDUAL, cut_weights, scores_of
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import Directions, LinearModel
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount
from reticent.systems.votes.outputs import is_several
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.systems.votes.sums import outer_sum
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_pool import checked_pool, usual_pool
from reticent.training.public_space import LENGTH, RowMap
from reticent.training.public_start import OFFSET_STEPS, PublicStart

KINDS = {"table": 150, "embedding": 400, "picture": 100}
"""Kinds of rows, and how many principal components of each are kept at most."""

_STEPS = 3
_NOISE_RULES = 50.0  # variance of one gradient over mean curvature, beyond which one step is taken
_SOFTER = 0.75
_VARIANCES = np.exp(np.linspace(np.log(1e-2), np.log(1e5), 40))
_MIDDLE, _SPREAD, _UNCHANGED = np.log(0.5), 1.0, 0.3
_MOST_RECORDS = 2**53


@with_settings
class PublicStartClassifier(LinearModel, ReleasedClassifier):
    """The best public model, moved by a few noisy gradients as far as they are worth.

    Models of labelled public rows are pooled. Their log probabilities are the offset of a softmax
    model that is linear in public features. Noisy sums of clipped residuals give its gradients.
    The curvature of public rows stands in for a rate. How far the model moves from the public one
    is read off the released gradients: it stays where they show nothing but noise.

    A record adds a direction of length at most 1 times a residual cut to length 1, whatever its
    offset is. T noisy gradients compose exactly as one Gaussian mechanism. Pool, offset, features,
    curvature and T follow from public rows and public numbers. The shrinkage is post-processing.

    Args:
        epsilon, delta, counting, data_set: see ``ReleasedModel``.
        features: the number of components and their whitening; None for the rule of ``rows``.
        classes: the labels that there are, one public list, or "observed".
        student_share: see ``ReleasedClassifier``.
        pool: classifiers of scikit-learn for the public rows, not fitted; None for logistic
            regressions, boosted trees and forests. A bundle holds these kinds alone.
        rows: "table" (150 features, of leaves, columns and bins), "embedding" (all columns, up to
            400 components) or "picture" (100 components of given features).
        records: a public number, about that of the private records; None for a noisy count, paid
            from the total.

    Runtime:
        4 to 9 CPU seconds for the public rows of a table, and less than one for 10,000 records.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = PublicStartClassifier(
        ...     epsilon=1.0, delta=1e-5, classes=(0, 1), pool=[LogisticRegression()], records=400
        ... )
        >>> model.fit(X[:400], y[:400], public_X=X[400:], public_y=y[400:]).predict(X[:3]).shape
        (3,)

    References:
        - Dong, Roth and Su (2022), "Gaussian differential privacy", arXiv:1905.02383, corollary 3.3
          (composition).
        - Bassily, Smith and Thakurta (2014), "Private empirical risk minimization: efficient
          algorithms and tight error bounds", doi:10.1109/FOCS.2014.56.

    See Also:
        reticent.NoisyGradientClassifier: without labelled public rows.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    pool: Sequence[Any] | None = None
    rows: str = "table"
    records: int | None = None

    _held_out: Array = learned()
    _unit: Array = learned()

    _space_kind: ClassVar[Any] = PublicStart

    @override
    def check_settings(self) -> None:
        super().check_settings()
        one_of(self.rows, tuple(KINDS), name="rows")
        checked_pool(self.pool)
        if is_several(self.classes):
            raise InvalidParameter(
                f"classes: expected one list of labels for {type(self).__name__}"
            )
        if self.records is not None and count(self.records, name="records") > _MOST_RECORDS:
            raise InvalidParameter(f"records: expected at most {_MOST_RECORDS}")
        if self._shaping.range is not None:
            raise InvalidParameter("features, range: expected None; public rows give it")

    @override
    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        classes: int,
    ) -> tuple[Any, Array | None]:
        if public_features is None or public_codes is None:
            raise InvalidInput("public_X, public_y: expected labelled public rows, got none")
        table, asked = self.rows == "table", self._shaping
        models = checked_pool(self.pool)
        space, self._held_out = PublicStart.around(
            public_features,
            public_codes,
            classes,
            models=usual_pool(len(public_codes), classes, table=table)
            if models is None
            else models,
            components=KINDS[self.rows] if asked.components is None else asked.components,
            whitening=asked.whitening,
            table=table,
        )
        return space, space.points(public_features)

    @property
    def _width(self) -> int:
        """Columns of weights: one logit for two labels."""
        classes = self._columns.width
        return 1 if classes == 2 else classes

    @override
    def _directions(self, points: Array) -> Array:
        return super()._directions(points[:, : self.space_.dimension - self._columns.width])

    def _offsets(self, points: Array) -> Array:
        return points[:, self.space_.dimension - self._columns.width :] / OFFSET_STEPS

    @override
    def prepare(self, public: PublicRows | None) -> None:
        assert public is not None  # ``_space`` refused
        self._unit = self._directions(public.points) / LENGTH

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        counted = self.records is None and self.counting != "replace"
        width = self._unit.shape[1] * self._width
        gradient = SumBlock(width, LENGTH * RESIDUAL, 1.0 - COUNT_SHARE * counted)
        steps = self._steps()
        return (
            (gradient, SumBlock(1, COUNT_STEPS, COUNT_SHARE)) if counted else (gradient,)
        ), steps

    def _steps(self) -> int:
        """Return T, from public numbers: one step where noise is all that three would show."""
        if self.records is None:
            return _STEPS
        moved = 2.0 if self.counting == "replace" else 1.0
        sigma = moved * analytic_sigma(sensitivity=1.0, epsilon=self.epsilon, delta=self.delta)
        start = np.zeros((self._unit.shape[1], self._width))
        curvature, _ = self._curvature(start, float(self.records))
        return 1 if sigma**2 > _NOISE_RULES * np.trace(curvature) / len(curvature) else _STEPS

    @override
    def learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        blocks = Directions(voters, self)
        counted = len(session.mechanism.blocks) > 1
        noisy_count = NoisyCount(session.sigmas[-1]) if counted else None
        # With counting="replace" the number of units is the same for neighbours. It may be 0.
        records = float(self.records if self.records is not None else max(1, voters.units))
        weights = np.zeros((self._unit.shape[1], self._width))
        unit = LENGTH * RESIDUAL
        shift, curvature, scale = np.zeros_like(weights), 0.0, 0.0
        for step in range(1, session.mechanism.sums + 1):
            gradient = np.zeros_like(weights)
            for voting, directions in blocks:
                residuals = self._residuals(voting, directions, weights)
                gradient += outer_sum(voting, directions, residuals, lengths=(LENGTH, RESIDUAL))
            if noisy_count is None:
                [noisy] = session.release([gradient])
            else:
                noisy, units = session.release([gradient, [COUNT_STEPS * voters.units]])
                noisy_count.add(units)
                records = noisy_count.value
            public_curvature, each = self._curvature(weights, records)
            shift = shift + noisy / unit + public_curvature @ (weights * each)
            curvature, scale = curvature + public_curvature, scale + each
            noise = (session.sigmas[0] / unit) ** 2 / step
            weights = cut_weights(moved(shift / step, curvature / step, scale / step, noise))
        self.weights_ = weights
        del self._held_out, self._unit

    def _residuals(self, voting: Voters, directions: Array, weights: Array) -> Array:
        """e_y - p of every record, cut to length 1, in steps of 1 / ``RESIDUAL``."""
        scores = self._offsets(voting.points)
        scores += self._spread(scores_of(directions, weights))
        shares = -softmax(scores)
        shares[np.arange(len(voting.codes)), voting.codes] += 1.0
        return clipped(np.rint(shares[:, -self._width :] * RESIDUAL), RESIDUAL)

    def _spread(self, scores: Array) -> Array:
        """Scores of all labels, of which the first of two has none of its own."""
        if self._columns.width != 2:
            return scores
        return np.column_stack([np.zeros(len(scores)), scores])

    def _curvature(self, weights: Array, records: float) -> tuple[Array, Array]:
        """Return the curvature of so many records like the public ones, and its share by label.

        Returns:
            Shape (m, m), shrunk to its trace, and shape (width,), of mean 1.
        """
        unit = self._unit
        shares = softmax(_SOFTER * (self._held_out + self._spread(unit @ weights)))
        spread = (shares * (1.0 - shares))[:, -self._width :]
        found = (unit * spread.mean(axis=1)[:, None]).T @ unit * (records / len(unit))
        size = len(found)
        kept = 0.5 * size / (size + 2 * len(unit))
        found = (1.0 - kept) * found + kept * np.trace(found) / size * np.eye(size)
        return found, spread.mean(axis=0) / spread.mean()

    @override
    def scores(self, points: Array) -> Array:
        linear = np.asarray(self._directions(points) / LENGTH @ self.weights_)
        return self._offsets(points) + self._spread(linear)

    @override
    def restore(self, arrays: Arrays) -> None:
        weights = np.asarray(arrays["weights"], dtype=np.float64)
        rows = self.space_.dimension - self._columns.width + 1
        if weights.shape != (rows, self._width) or not np.isfinite(weights).all():
            raise InvalidInput("weights: expected a finite column for each label")
        self.weights_ = weights

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        stated = "a noisy count" if self.records is None else f"{self.records:,}, stated as public"
        return (
            ("start", f"{len(self.space_.pool.models)} models of labelled public rows"),
            ("trust in them", f"{self.space_.pool.alpha:g}"),
            ("records, for the curvature of public rows", stated),
        )


def moved(shift: Array, curvature: Array, scale: Array, noise: float) -> Array:
    """Return the weights that noisy gradients tell, shrunk to none where they tell nothing.

    In the basis of the curvature a shift is b = lam w + N(0, lam + noise), with w ~ N(0, tau) of
    log tau ~ N(log .5, 1), or w = 0 with probability .3. The weights are the mean of w given b.

    Args:
        shift: shape (m, width), released.
        curvature: shape (m, m), symmetric, public.
        scale: shape (width,), the curvature's share by column.
        noise: the variance of the noise in ``shift``.

    Returns:
        Shape (m, width). It is post-processing.
    """
    values, basis = np.linalg.eigh(curvature)
    lam = np.maximum(values, 1e-6)[:, None] * scale[None, :]
    b, error = basis.T @ shift, lam + noise
    totals = lam**2 * _VARIANCES[:, None, None] + error
    likely = -0.5 * (np.log(totals) + b**2 / totals).sum(axis=(1, 2))
    prior = -0.5 * ((np.log(_VARIANCES) - _MIDDLE) / _SPREAD) ** 2
    prior -= np.logaddexp.reduce(prior)
    none = -0.5 * (np.log(error) + b**2 / error).sum() + np.log(_UNCHANGED)
    logs = np.r_[none, likely + prior + np.log(1.0 - _UNCHANGED)]
    chances = np.exp(logs - np.logaddexp.reduce(logs))[1:]
    means = (chances * _VARIANCES)[:, None, None] * lam / totals
    return np.asarray(basis @ (b * means.sum(axis=0)))
