"""``ReleasedModel``: a classifier that is itself the release, so that it answers for good."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from reticent.bundles.bundle import Bundle
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.scopes import Scope
from reticent.ledger.ledger import Ledger

Array = npt.NDArray[np.float64]


class ReleasedModel(ClassifierMixin, BaseEstimator):
    """What the classifiers share whose noise is drawn in ``fit``, once, for any number of answers.

    Guarantee:
        A fitted model is (epsilon, delta)-differentially private for its private records, and so is
        everything that is computed from it: ``predict`` is for anyone, any number of times.

    Args:
        epsilon, delta: of the total.
        classes: the labels that there are, a public list; or "observed", which publishes them.
        feature_map: from inputs to features, the same for everybody: None for the inputs
            themselves, ``PatchFeatures``, ``PublicPCA`` or any other ``FeatureMap``.
        feature_range: public (lower, upper) ends of the features; needed where ``fit`` gets no
            public rows.
        components: principal components of the public rows that are kept; None for all.
        whitening: exponent w in [0, 1]: a component is divided by its standard deviation over
            public rows to the power w.
        counting: "add-remove", or "replace" (one record in place of another: twice the noise).
        data_set: what the private records are called, by their owner; None books in no ledger.
        random_state: public seed, for centroids; never for noise.
        student_share: share of the public rows, the surest, whose released labels a linear support
            vector machine is trained on, which then answers in place of the model; None for no such
            student. It is post-processing.
    """

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        sampler: str = "exact",
    ) -> Self:
        """Charges the whole total, then releases the model; noise from the operating system."""
        raise NotImplementedError

    def simulate_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        seed: int,
        noise_scale: float = 1.0,
        public_X: npt.ArrayLike | None = None,
        public_y: npt.ArrayLike | None = None,
        keys: Sequence[Any] | None = None,
    ) -> Self:
        """As ``fit`` with noise from a seed, times ``noise_scale``: for experiments, *not
        private*; the card says so.

        Args:
            noise_scale: n_here / n_private, so that noise has the effect that it will have on
                ``n_private`` records; ``records`` is to be given for those here.
        """
        raise NotImplementedError

    @classmethod
    def settings_grid(
        cls, *, n_private: int, n_public: int, features: int, classes: int, epsilon: float
    ) -> list[dict[str, Any]]:
        """A few candidate settings, as constructor arguments, that are worth trying."""
        raise NotImplementedError

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Labels, shape (n,)."""
        raise NotImplementedError

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Probabilities, shape (n, classes)."""
        raise NotImplementedError

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Scores: shape (n,) for two classes (above 0 for the second), otherwise (n, classes)."""
        raise NotImplementedError

    @property
    def guarantee(self) -> Guarantee:
        """Cost of the fitted model."""
        raise NotImplementedError

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        raise NotImplementedError

    def bundle(self) -> Bundle:
        """Everything that ``predict`` needs, ready to be written. It may be published."""
        raise NotImplementedError

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the bundle, whole or not at all."""
        return self.bundle().write(folder, overwrite=overwrite)

    @classmethod
    def load(
        cls, folder: str | Path, *, feature_map: Any = None, trusted_key: str | Path | None = None
    ) -> Self:
        """A model that answers, from what ``save`` wrote; with your own feature map, if any."""
        raise NotImplementedError
