"""``PublicStartClassifier``: a few noisy gradients, started from models of labelled public rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from typing_extensions import override

from reticent.core.arrays import Array, Arrays, Integers
from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.grids.whole_numbers import clipped, logarithm, softmax
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.linear_model import COUNT_SHARE, COUNT_STEPS, RESIDUAL
from reticent.systems.votes.outputs import Output
from reticent.systems.votes.released_classifier import ReleasedClassifier
from reticent.systems.votes.started_model import StartedModel, all_scores
from reticent.systems.votes.sums import unit_sum
from reticent.systems.votes.voters import ReadVoters, Voters
from reticent.training.public_pool import ClassColumn, checked_pool, usual_pool

_SOFTER = 0.75
_LABELS_SHARE = 2.0 * COUNT_SHARE
_LEAST_RECORDS = 1.0  # of a label, where noisy counts say less


@with_settings
class PublicStartClassifier(StartedModel, ReleasedClassifier):
    """The best public model, moved by a few noisy gradients as far as they are worth.

    Models of labelled public rows are pooled. Their log probabilities are the offset of a softmax
    model that is linear in public features. Noisy sums of clipped residuals give its gradients.
    The curvature of public rows stands in for a rate, and is raised where a released gradient is
    longer than it allows. How far the model moves from the public one is read off the released
    gradients: it stays where they show nothing but noise.

    A record adds a direction of length at most 1 times a residual cut to length 1, whatever its
    offset is. T noisy gradients compose exactly as one Gaussian mechanism. Pool, offset, features,
    public curvature and T follow from public rows and public numbers. What released gradients add
    to the curvature, and the shrinkage, are post-processing. Several labels of a record have an
    offset, a residual and a block of the sum each.

    Public rows without labels are a start from the constant: the sums hold a noisy count of every
    label, whose logarithms are the offset, and features are columns and bins alone.

    Args:
        epsilon, delta, counting, data_set: arguments of ``ReleasedModel``.
        features: the number of components and their whitening, or None for the rule of ``rows``.
        classes: the labels that there are, one public list, or "observed".
        student_share: argument of ``ReleasedClassifier``.
        pool: classifiers of scikit-learn for the public rows, not fitted, or None for logistic
            regressions, boosted trees and forests. A bundle holds these kinds alone. An empty list
            is a start from the shares of public labels.
        rows: "table" (150 features, of leaves, columns and bins), "embedding" (all columns, up to
            400 components) or "picture" (100 components of given features).
        records: public number, about that of the private records, or None for a noisy count, paid
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
        - Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional covariance
          matrices", doi:10.1016/S0047-259X(03)00096-4 (public curvature).

    See Also:
        reticent.NoisyGradientClassifier: without a start.
        reticent.mechanisms.NoisySums: the mechanism.
    """

    bias_: Array = learned()

    @override
    def check_settings(self) -> None:
        super().check_settings()
        checked_pool(self.pool)

    @override
    def _column(self, output: Output, codes: Integers | None) -> ClassColumn:
        models, told = checked_pool(self.pool), 0 if codes is None else len(codes)
        if models is None:
            models = usual_pool(told, output.width, table=self.rows == "table")
        return ClassColumn(codes, output.width, models)

    @override
    def _free(self, output: Output) -> int:
        """Return the number of logits: one for two labels."""
        return 1 if output.width == 2 else output.width

    @property
    @override
    def _middle(self) -> float:
        return 2.0 if self._alone else 0.5

    @property
    @override
    def _alone(self) -> bool:
        if self._start is not None:
            return self._start.alone
        return not any(pool.models for pool in self.space_.pools)

    @property
    def _told(self) -> bool:
        return self.public_labels_ > 0

    @override
    def prepare(self, public: PublicRows | None) -> None:
        super().prepare(public)
        self.bias_ = np.zeros(self.space_.parts[-1].stop)

    @override
    def _count_blocks(self) -> tuple[SumBlock, ...]:
        if self._told:
            return super()._count_blocks()
        outputs = self._columns.outputs
        share = _LABELS_SHARE / len(outputs)
        return tuple(SumBlock(output.width, COUNT_STEPS, share) for output in outputs)

    @override
    def _counter(self, session: SumSession) -> Any:
        self.bias_ = np.zeros_like(self.bias_)  # of its own for every fit of the same public rows
        if self._told:
            return super()._counter(session)
        sigmas = session.sigmas[len(self._columns.outputs) :]
        return _LabelCounter(sigmas, self.records)

    @override
    def _counts(self, voting: Voters) -> list[Array]:
        if self._told:
            return super()._counts(voting)
        found = []
        for output, codes in self._columns.each(voting.codes):
            votes = np.zeros((len(codes), output.width))
            votes[np.arange(len(codes)), codes] = COUNT_STEPS
            found.append(unit_sum(voting, votes, bound=COUNT_STEPS))
        return found

    @override
    def _recentred(self, counter: Any, records: float) -> Array | float:
        """Return what the first gradient, of like shares of labels, lacks beside counted ones.

        The sum of directions that it takes is that of public rows, for the private one is not
        released.
        """
        if self._told:
            return 0.0
        found = np.zeros((self._unit.shape[1], self._parts[-1].stop))
        middle = records * self._unit.mean(axis=0)
        for at, output in enumerate(self._columns.outputs):
            part, own = self._parts[at], self.space_.parts[at]
            self.bias_[own] = logarithm(counter.shares(at))
            away = softmax(self.bias_[None, own])[0] - 1.0 / output.width
            found[:, part] = -np.outer(middle, away[-(part.stop - part.start) :])
        return found

    @override
    def _offsets(self, points: Array) -> Array:
        return super()._offsets(points) + self.bias_

    @override
    def _residuals(self, at: int, offsets: Array, linear: Array, codes: Integers) -> Array:
        """Return e_y - p of every record, cut to length 1."""
        shares = -softmax(offsets + all_scores(linear, offsets.shape[1]))
        shares[np.arange(len(codes)), codes] += 1.0
        return clipped(np.rint(shares[:, -linear.shape[1] :] * RESIDUAL), RESIDUAL)

    @override
    def _bends(self, at: int, offsets: Array, linear: Array) -> Array:
        scores = offsets + self.bias_[self.space_.parts[at]] + all_scores(linear, offsets.shape[1])
        shares = softmax((1.0 if self._alone else _SOFTER) * scores)
        return (shares * (1.0 - shares))[:, -linear.shape[1] :]

    @override
    def scores(self, points: Array) -> Array:
        linear, found = super().scores(points), self._offsets(points)
        for part, own in zip(self._parts, self.space_.parts, strict=True):
            found[:, own] += all_scores(linear[:, part], own.stop - own.start)
        return found

    @override
    def arrays(self) -> Arrays:
        return super().arrays() | {"bias": self.bias_}

    @override
    def restore(self, arrays: Arrays) -> None:
        super().restore(arrays)
        self.bias_ = finite_array(arrays["bias"], name="bias", ndim=1)
        if len(self.bias_) != self.space_.parts[-1].stop:
            raise InvalidInput("bias: expected a number for each label")


class _LabelCounter:
    """Records, and how many have each label, from the mean of noisy counts."""

    def __init__(self, sigmas: tuple[float, ...], records: int | None) -> None:
        self._sigmas, self._stated = sigmas, records
        self._totals: list[Array] = []
        self._seen = 0

    def add(self, noisy: list[Array]) -> None:
        """Take in one noisy count of every label, for each column, in ``COUNT_STEPS``."""
        counts = [np.asarray(each, dtype=np.float64).reshape(-1) / COUNT_STEPS for each in noisy]
        self._totals = (
            [old + new for old, new in zip(self._totals, counts, strict=True)]
            if self._seen
            else counts
        )
        self._seen += 1

    @property
    def records(self) -> float:
        """The number of records, stated or counted, and never below two deviations of the count."""
        if self._stated is not None:
            return float(self._stated)
        noise = self._sigmas[0] / COUNT_STEPS * (len(self._totals[0]) / self._seen) ** 0.5
        return float(max(1.0, 2.0 * noise, self._totals[0].sum() / self._seen))

    def shares(self, at: int) -> Array:
        """Return shares of labels of one column, each at least a deviation of its count."""
        counts, noise = self._totals[at] / self._seen, self._sigmas[at] / COUNT_STEPS
        least = max(_LEAST_RECORDS, noise / self._seen**0.5)
        found = np.maximum(counts, least)
        return np.asarray(found / found.sum())


@with_settings
class PublicModelsClassifier(PublicStartClassifier):
    """The public models from which ``PublicStartClassifier`` starts, and no step from there.

    No sum of private records is drawn, so nothing is charged or booked. The card states the total
    of the constructor, of which nothing is used. Private records may be given, and their values
    have no part in the model.

    Args:
        epsilon, delta, counting, data_set, features, classes, student_share, pool, rows, records:
            arguments of ``PublicStartClassifier``.

    Runtime:
        The time of the public part of ``PublicStartClassifier``.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = PublicModelsClassifier(
        ...     epsilon=1.0, delta=1e-5, classes=(0, 1), pool=[LogisticRegression()]
        ... )
        >>> model.fit(X[:0], y[:0], public_X=X[400:], public_y=y[400:]).predict(X[:3]).shape
        (3,)

    References:
        - Genest and Zidek (1986), "Combining probability distributions: a critique and an
          annotated bibliography", doi:10.1214/ss/1177013825 (logarithmic pools).

    See Also:
        reticent.PublicStartClassifier: moves from there by private records.
        reticent.plan: takes it where records are too few to add anything.
    """

    @override
    def blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        return super().blocks()[0], 0

    @override
    def learn(
        self, voters: Voters | ReadVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        self.weights_ = np.zeros((self._unit.shape[1], self._parts[-1].stop))
        del self._unit
