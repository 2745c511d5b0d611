"""``MomentClassifier``: a noisy sum of features by label, with second moments from public rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.checks import finite_array, positive
from reticent.core.errors import InvalidParameter
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.record_labels import Classes
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.noisy_counts import COUNT_SHARE, COUNT_STEPS, NoisyCount
from reticent.systems.votes.released_model import ReleasedModel
from reticent.systems.votes.sums import centred_labels, centred_length, outer_sum
from reticent.systems.votes.voters import ShardedVoters, Voters
from reticent.training.public_space import LENGTH, directions_of, intercept_of

Array = npt.NDArray[np.float64]

_LABEL_STEPS = 2.0**10


class MomentClassifier(ReleasedModel):
    """A linear classifier: public second moments, inverted, times a noisy sum of features by label.

    With features phi of length at most 1, the sum of phi (e_y - 1/K) has sensitivity sqrt(1 - 1/K).
    Divided by a (noisy) number of records and multiplied by the inverse of the second moments it is
    least-squares regression of the labels, but with moments of public rows, which cost nothing.

    Args:
        epsilon, delta, classes, feature_map, feature_range, components, whitening, counting,
            data_set, random_state, student_share: see ``ReleasedModel``.
        ridge: added to the public second moments, as a share of their mean.
        intercept: length of the constant column beside a feature vector of length 1; from 0 to 16.

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
        reticent.NoisyGradientClassifier: the cross entropy in place of squares, by steps.
        reticent.LinearVoteClassifier: the same model, asked one query at a time.
        reticent.mechanisms.NoisySums: the mechanism.
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

    @classmethod
    @override
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """See ``ReleasedModel.settings_grid``."""
        dimensions = sorted({min(features, size) for size in (20, 60, 200)})
        return [
            {"components": kept, "whitening": 0.5, "ridge": ridge}
            for kept in dimensions
            for ridge in (0.1, 1.0)
        ]

    @override
    def _check_settings(self) -> None:
        positive(self.ridge, name="ridge")
        intercept_of(self.intercept)

    @override
    def _before(self, public: PublicRows | None) -> None:
        self._inverse = inverse_moments(
            None if public is None else directions_of(public.points, intercept=self.intercept),
            self.space_.dimension + 1,
            ridge=self.ridge,
        )

    @override
    def _blocks(self) -> tuple[tuple[SumBlock, ...], int]:
        classes = len(self.classes_)
        bound = LENGTH * _LABEL_STEPS * centred_length(classes)
        sums = SumBlock((self.space_.dimension + 1) * classes, bound, 1.0 - COUNT_SHARE)
        return (sums, SumBlock(1, COUNT_STEPS, COUNT_SHARE)), 1

    @override
    def _learn(
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        classes = len(self.classes_)
        total = np.zeros((self.space_.dimension + 1, classes))
        for part in voters.blocks():
            total += outer_sum(
                part,
                directions_of(part.points, intercept=self.intercept),
                _LABEL_STEPS * centred_labels(part.codes, classes),
                lengths=(LENGTH, _LABEL_STEPS * centred_length(classes)),
            )
        noisy, counted = session.release((total, [COUNT_STEPS * voters.units]))
        count = NoisyCount(session.sigmas[1])
        count.add(counted)
        sums = noisy / (LENGTH * _LABEL_STEPS * classes)
        sums -= sums.mean(axis=1, keepdims=True)
        self.weights_ = classes * self._inverse @ sums / count.value
        del self._inverse

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


def inverse_moments(directions: Array | None, width: int, *, ridge: float) -> Array:
    """The inverse of the second moments of public directions, with a ridge; the identity without
    public rows.

    Args:
        directions: shape (n, width), of length ``LENGTH``, or None.
        width: number of columns.
        ridge: added to the moments, as a share of their mean.

    Raises:
        InvalidParameter: a ridge with which they have no inverse in doubles.
    """
    if directions is None:
        return np.eye(width)
    unit = directions / LENGTH
    moments = unit.T @ unit / len(unit)
    moments += ridge * np.trace(moments) / width * np.eye(width)
    try:
        inverse = np.asarray(np.linalg.inv(moments))
    except np.linalg.LinAlgError:
        inverse = np.full_like(moments, np.nan)
    if not bool(np.isfinite(inverse).all()):
        raise InvalidParameter(
            f"ridge={ridge!r}: expected one with which public second moments have an inverse"
        )
    return inverse
