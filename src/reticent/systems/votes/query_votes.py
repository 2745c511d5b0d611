"""``QueryVotes``: classifiers that answer each public query by a noisy sum of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger

Array = npt.NDArray[np.float64]


class QueryVotes(ClassifierMixin, BaseEstimator):
    """What the classifiers share whose records vote on each query.

    Guarantee:
        All labels that one fitted classifier ever releases, at most ``answers``, are (epsilon,
        delta)-differentially private together. The queries are public. ``predict`` is the owner's
        own, noise-free answer and is *not* private.

    Args:
        epsilon, delta: of the total of all answers; delta may be 0 with the response "stability".
        classes: the labels that there are, a public list; or "observed", which publishes them.
        answers: how many labels will ever be released.
        response: "gaussian" (the largest noisy sum), "stability" (randomised response whose
            probability grows with the exact margin), or "auto": stability for one answer.
        feature_map, feature_range, components, whitening, counting, data_set, random_state: see
            ``ReleasedModel``.
    """

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Self:
        """Keeps the private records, and settles the noise without looking at them."""
        raise NotImplementedError

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        sampler: str = "exact",
    ) -> Release:
        """A label for each public query, within the one total; counted, and with a ledger
        charged as a whole before the first answer."""
        raise NotImplementedError

    def simulate(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Release:
        """As ``release`` with noise from a seed, times ``noise_scale``: for experiments, *not
        private*, and not counted."""
        raise NotImplementedError

    def simulate_scores(self, X: npt.ArrayLike, *, seed: int, noise_scale: float = 1.0) -> Array:
        """Noisy votes, shape (n, classes), in records: as ``simulate`` before the argmax."""
        raise NotImplementedError

    @classmethod
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """A few candidate settings, as constructor arguments, that are worth trying."""
        raise NotImplementedError

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The label with most votes, without noise. Private: for the owner of the records only."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """Cost of everything that this fitted classifier will ever release."""
        raise NotImplementedError

    @property
    def remaining_(self) -> int:
        """Answers that may still be given."""
        raise NotImplementedError

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        raise NotImplementedError
