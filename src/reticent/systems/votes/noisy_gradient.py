"""``NoisyGradientClassifier``: softmax regression by full-batch gradient descent on noisy sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import count, finite_array, flag, positive, probability, real
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.grids.whole_numbers import clipped, exact_product, softmax
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.record_labels import Classes
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount
from reticent.systems.votes.public_labels import public_softmax_regression
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.sums import outer_sum
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import LENGTH, directions_of, intercept_of

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RESIDUAL = 2.0**13
"""Grid steps in a residual of length 1, the longest that counts in full."""

_WEIGHT_STEPS = 2.0**20
_LONGEST_WEIGHTS = 2.0**16
_LARGEST_RATE = 2.0**60  # a step stays finite, whatever the noise
_MOST_RECORDS = 2**53


class NoisyGradientClassifier(ReleasedModel):
    """Softmax regression on public features; every step is a noisy sum of clipped residuals.

    With features phi of length at most 1 and a residual p - e_y cut to length 1, a record adds at
    most 1 in l2 to a gradient. T noisy gradients compose exactly as one Gaussian mechanism, so T
    costs nothing but noise sqrt(T) larger. What the sum is divided by, the momentum, the rates and
    the average of the iterates are post-processing of released sums with public numbers.

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
        intercept: length of the constant column beside a feature vector of length 1; from 0 to 16.
        records: a public number, about that of the private records, which sums are divided by;
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
        reticent.MomentClassifier: squares in place of the cross entropy, in one sum.
        reticent.CellsClassifier: no linear model.
        reticent.mechanisms.NoisySums: the mechanism.
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

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedModel.settings_grid``; ``warm_start`` is the caller's to add, where public
        labels are.
        """
        dimensions = sorted({min(features, size) for size in (30, 100, 400)})
        return [
            {"components": kept, "whitening": 0.5, "steps": steps, "learning_rate": rate}
            for kept in dimensions
            for steps, rate in ((10, 20.0), (20, 20.0), (40, 20.0), (60, 40.0))
        ]

    @override
    def _check_settings(self) -> None:
        count(self.steps, name="steps", minimum=0)
        if positive(self.learning_rate, name="learning_rate") > _LARGEST_RATE:
            raise InvalidParameter(
                f"learning_rate={self.learning_rate!r}: expected at most {_LARGEST_RATE:g}"
            )
        probability(self.momentum, name="momentum")
        for name in ("step_decay", "penalty"):
            value = real(getattr(self, name), name=name)
            if not 0 <= value < math.inf:
                raise InvalidParameter(f"{name}={value!r}: expected a finite number, at least 0")
        flag(self.average, name="average")
        flag(self.warm_start, name="warm_start")
        intercept_of(self.intercept)
        if self.records is not None:
            count(self.records, name="records")
            if self.records > _MOST_RECORDS:
                raise InvalidParameter(f"records: expected at most {_MOST_RECORDS}")
        if self.steps == 0 and not self.warm_start:
            raise InvalidParameter("steps=0: expected warm_start=True, or at least one step")

    @override
    def _before(self, public: PublicRows | None) -> None:
        classes = len(self.classes_)
        self._start = np.zeros((self.space_.dimension + 1, classes))
        self._signal = 0.0
        if not self.warm_start:
            return
        if public is None or public.codes is None:
            raise InvalidInput("public_y: expected labels of public rows for warm_start, got none")
        unit = directions_of(public.points, intercept=self.intercept) / LENGTH
        # Absent labels have an intercept as large as the constant column is short.
        self._start = cut_weights(public_softmax_regression(unit, public.codes, classes))
        self._signal = _first_gradient(unit, public.codes, classes)

    @override
    def _blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        width = (self.space_.dimension + 1) * len(self.classes_)
        bound = LENGTH * RESIDUAL
        if self.records is not None or self.counting == "replace":
            return (SumBlock(width, bound),), self.steps
        gradient = SumBlock(width, bound, 1.0 - COUNT_SHARE)
        return (gradient, SumBlock(1, COUNT_STEPS, COUNT_SHARE)), self.steps

    @override
    def _learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        weights, self.weights_ = self._start, self._start
        if self.steps == 0:
            return
        blocks = _Directions(voters, self.intercept)
        counted = len(session.mechanism.blocks) > 1
        noisy_count = NoisyCount(session.sigmas[1]) if counted else None
        # With counting="replace" the number of units is the same for neighbours.
        records = float(self.records if self.records is not None else voters.units)
        momentum, total = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(self.steps):
            gradient = np.zeros_like(weights)
            for part, directions in blocks:
                residuals = residual_steps(directions, part.codes, weights)
                gradient += outer_sum(part, directions, residuals, lengths=(LENGTH, RESIDUAL))
            if noisy_count is None:
                (noisy,) = session.release((gradient,))
            else:
                noisy, units = session.release((gradient, [COUNT_STEPS * voters.units]))
                noisy_count.add(units)
                records = noisy_count.value
            mean = noisy / (LENGTH * RESIDUAL * records)
            mean -= mean.mean(axis=1, keepdims=True)
            momentum = self.momentum * momentum + mean
            rate = self.learning_rate / (1.0 + self.step_decay * step)
            rate *= self._kept(
                session, records, 1.0 if noisy_count is None else noisy_count.certain
            )
            # The penalty's step is implicit, so that no rate is too large for it.
            decay = 1.0 + rate * self.penalty / (1.0 - self.momentum)
            weights = cut_weights((weights - rate * momentum) / decay)
            if step >= self.steps // 2:
                total += weights
        self.weights_ = total / (self.steps - self.steps // 2) if self.average else weights
        del self._start

    def _kept(self, session: SumSession, records: float, certain: float) -> float:
        """The share of a step that is kept: after a warm start signal^2 / (signal^2 + noise^2).

        The signal is a mean gradient of public rows; where the number of records is lost in its
        noise, so is the signal.
        """
        if not self.warm_start:
            return 1.0
        noise = session.sigmas[0] / (LENGTH * RESIDUAL * records)
        noise *= math.sqrt((self.space_.dimension + 1) * (len(self.classes_) - 1))
        signal = self._signal * certain
        return signal**2 / (signal**2 + noise**2)

    @override
    def _scores(self, points: Array) -> Array:
        return np.asarray(directions_of(points, intercept=self.intercept) / LENGTH @ self.weights_)

    @override
    def _model(self) -> dict[str, Array]:
        return {"weights": self.weights_}

    @override
    def _remodel(self, arrays: dict[str, Array]) -> None:
        self.weights_ = finite_array(
            arrays["weights"], name="weights", ndim=2, columns=len(self.classes_)
        )

    @override
    def _card_details(self) -> tuple[tuple[str, str], ...]:
        return (
            ("steps", str(self.steps)),
            ("start", "public labels" if self.warm_start else "zero"),
            ("learning rate, momentum", f"{self.learning_rate:g}, {self.momentum:g}"),
        )


class _Directions:
    """Records with their directions, as often as they are asked for: kept where the records are
    in memory, and otherwise read again.
    """

    def __init__(self, voters: Voters | ShardedVoters, intercept: float) -> None:
        self._voters = voters
        self._intercept = intercept
        self._kept = list(self._all()) if isinstance(voters, Voters) else None

    def __iter__(self) -> Iterator[tuple[Voters, Array]]:
        return self._all() if self._kept is None else iter(self._kept)

    def _all(self) -> Iterator[tuple[Voters, Array]]:
        for part in self._voters.blocks():
            yield part, directions_of(part.points, intercept=self._intercept)


def residual_steps(directions: Array, codes: Integers, weights: Array) -> Array:
    """p - e_y for every record, cut to length 1, in steps of 1 / ``RESIDUAL``: shape (n, classes),
    whole numbers; each row from that record and the weights alone, to the last bit.

    Args:
        directions: shape (n, m), whole numbers, of an l2 norm of at most ``LENGTH``.
        codes: shape (n,), places of labels.
        weights: shape (m, classes), from ``cut_weights``.
    """
    whole = np.rint(weights * _WEIGHT_STEPS)
    longest = (_LONGEST_WEIGHTS + 1.0) * _WEIGHT_STEPS
    logits = exact_product(directions, whole, bound=LENGTH * longest) / (LENGTH * _WEIGHT_STEPS)
    shares = softmax(logits)
    shares[np.arange(len(codes)), codes] -= 1.0
    return clipped(np.rint(shares * RESIDUAL), RESIDUAL)


def cut_weights(weights: Array) -> Array:
    """Weights of which no column is longer than 2^16, so that logits are exact; released numbers,
    hence public.
    """
    lengths = np.linalg.norm(weights, axis=0)
    return np.asarray(weights * np.minimum(1.0, _LONGEST_WEIGHTS / np.maximum(lengths, 1.0)))


def _first_gradient(unit: Array, codes: Integers, classes: int) -> float:
    """Length of the mean gradient at weights 0, of public rows: what a step is worth at most."""
    residuals = np.full((len(codes), classes), 1.0 / classes)
    residuals[np.arange(len(codes)), codes] -= 1.0
    return float(np.linalg.norm(unit.T @ residuals / len(codes)))
