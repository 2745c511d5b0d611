"""``PublicModelsClassifier``: the pool of public models alone, with the interface of the others."""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from reticent.core.settings import with_settings
from reticent.mechanisms import SumBlock, SumSession
from reticent.systems.votes.estimator import PublicRows
from reticent.systems.votes.public_start import PublicStartClassifier
from reticent.systems.votes.voters import ShardedVoters, Voters


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
        self, voters: Voters | ShardedVoters, public: PublicRows | None, session: SumSession
    ) -> None:
        self.weights_ = np.zeros((self._unit.shape[1], self._parts[-1].stop))
        del self._unit
