"""``ConvexCertifiedClassifier``: labels of a logistic regression, certified by the curvature at its
minimum and released with a proved guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import Tags
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import CorruptBundle, InvalidInput
from reticent.core.settings import learned, with_settings
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.convex import ConvexModel, ConvexSettings, convex_model
from reticent.retraining.record_keys import record_keys
from reticent.retraining.training_settings import PROTECTING, Counting
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.certified.system import CertifiedSystem

_FIELDS = ("regularization", "norm_bound", "counting")


@with_settings
class ConvexCertifiedClassifier(CertifiedSystem):
    """Releases labels of a regularised logistic regression with two labels, (epsilon, delta) for
    each label, for the records that it was trained on.

    Training goes to the minimum, which one record can move only so far: by how far, and hence how
    many records would have to come or go before a label could change, follows from the least
    curvature there. There are no epochs and no ``k_max`` to choose.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanisms
        "signed-distance" and "distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). ``card()`` says what is
        assumed and docs/certified.md, section 8, has the proofs. ``exact_predict`` is the
        noise-free label and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, features, classes, prevalence, data_set: as for
            ``CertifiedClassifier``; two classes.
        regularization: lambda, at least 1/16; distances grow with it, accuracy wants it small.
        norm_bound: rows are cut to this l2 norm, above 0; public.
        counting: "add-remove", or "replace" for data sets of one size.
    Attributes:
        members_: the certified model, one entry; as private as the records.
        clipped_: how many records were longer than ``norm_bound``, or not finite; private.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> classifier = ConvexCertifiedClassifier(
        ...     epsilon=0.5, classes=[0, 1], norm_bound=6.0
        ... ).fit(X, y)
        >>> labels, distances = classifier.stable_distances([[2.0, 2.0], [0.1, -0.1]])
        >>> labels.tolist()[0], bool(distances[0] > 10), distances.tolist()[1]
        (1, True, 0)

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, labels by stable distances.
        - Bach (2010), "Self-concordant analysis for logistic regression", arXiv:0910.4627,
          proposition 1.
        - The proofs: docs/certified.md, section 8.

    See Also:
        reticent.CertifiedClassifier: several labels, hidden layers, and larger distances where the
            number of records is large and accuracy may be lower.
        reticent.retraining.convex_model: the trained model.
        reticent.mechanisms.SignedDistanceRelease: the mechanism "signed-distance".
    """

    regularization: float = 10.0
    norm_bound: float = 1.0
    counting: Counting = "add-remove"

    members_: tuple[ConvexModel, ...] = learned()

    def unlearning(self, X: npt.ArrayLike) -> Integers:
        """For each row, how many training records at least could be taken away, whichever they are,
        and the minimum for the rest would still give the label of ``exact_predict``.
        Deterministic, and as private as the records.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.

        Returns:
            Shape (n,), int64. Private.
        """
        return self._survived(X, 1)

    def poisoning(
        self, X: npt.ArrayLike, *, change: Literal["insert", "replace"] = "insert"
    ) -> Integers:
        """For each row, how many records at least somebody would have to slip in among the training
        records, or to exchange, to get another label than that of ``exact_predict``, less 1.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.
            change: "insert" or "replace".

        Returns:
            Shape (n,), int64. Private.
        """
        one_of(change, ("insert", "replace"), name="change")
        return self._survived(X, 1 if change == "insert" else 2)

    def _survived(self, X: npt.ArrayLike, changed: int) -> Integers:
        inputs = self.checked(X)
        [model] = self.members_
        _, reserve = model.reserves(self.extractor_.embed(inputs))
        worth = changed + 2.0 * model.settings.proved_error
        return np.maximum(np.ceil(reserve / worth) - 1.0, 0.0).astype(np.int64)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @override
    def _trained(
        self,
        points: Array,
        labels: Integers,
        classes: npt.NDArray[Any],
        identities: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> tuple[ConvexModel, ...]:
        if len(classes) != 2:
            raise InvalidInput(
                f"classes: Only binary classification is supported; expected 2, got {len(classes)} "
                "classes. Use CertifiedClassifier for more"
            )
        one_of(self.counting, PROTECTING, name="counting")
        settings = ConvexSettings(
            features=points.shape[1],
            class_weights=weights_of_prevalence(self.prevalence, classes),
            **{name: getattr(self, name) for name in _FIELDS},
        )
        if identities is not None:
            record_keys(points, labels, identities)  # refuses two records of one identity
        return (convex_model(points, labels, settings),)

    @override
    def _cut(self, features: Array) -> int:
        bound = self.members_[0].settings.norm_bound
        with np.errstate(over="ignore"):
            return int((~(np.linalg.norm(features, axis=1) <= bound * (1 + 1e-12))).sum())

    @override
    def _cut_words(self, features: Array) -> str:
        bound = self.members_[0].settings.norm_bound
        if 2 * self.clipped_ <= len(features):
            return ""  # cutting the longest rows is what a bound on the norm is for
        return (
            f"{self.clipped_} of {len(features)} records are longer than norm_bound={bound:g} and"
        )

    @classmethod
    @override
    def _check_members(cls, query: CertifiedQuery, weights: tuple[float, ...]) -> None:
        for member in query.members:
            if not isinstance(member, ConvexModel) or member.settings.class_weights != weights:
                raise CorruptBundle("bundle: a certificate that is none of this system's")
        if len(query.members) != 1:
            raise CorruptBundle("bundle: expected one model")

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        [member] = query.members
        return {name: getattr(member.settings, name) for name in _FIELDS}
