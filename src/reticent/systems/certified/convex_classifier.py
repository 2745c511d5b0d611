"""``ConvexCertifiedClassifier``: labels of logistic regressions, perhaps beside public models,
certified by the curvature at their minimum and released with a proved guarantee.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_of
from reticent.core.errors import CorruptBundle
from reticent.core.settings import learned, with_settings
from reticent.retraining.class_weights import weights_of_prevalence
from reticent.retraining.convex import ConvexModel, ConvexSettings, convex_model
from reticent.retraining.record_keys import record_keys
from reticent.retraining.training_settings import PROTECTING, Counting
from reticent.systems.certified.query import CertifiedQuery, rows_of_pair
from reticent.systems.certified.system import CertifiedSystem
from reticent.systems.embedding.public_start import PublicStartEmbedding
from reticent.systems.public_reference import PublicReference

_FIELDS = ("regularization", "norm_bound", "counting")
_FARTHEST = 8.0
"""Log odds of public models are cut there: 1 in 3,000."""


@with_settings
class ConvexCertifiedClassifier(CertifiedSystem):
    """Releases labels of regularised logistic regressions, (epsilon, delta) for each label, for the
    records that they were trained on.

    Training goes to the minimum, which one record can move only so far: by how far, and hence how
    many records would have to come or go before a label could change, follows from the least
    curvature there. There are no epochs and no ``k_max`` to choose.

    With a ``PublicReference`` the records correct the log odds of public models, by weights of
    public features. ``regularization`` then leads from the private records to the public models,
    whose labels no record can change. Three and more labels are told by one regression for each
    pair, of the records of these two labels.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanisms
        "signed-distance" and "distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). *Why.* r = nu (1 - e^-a) +
        lambda a, with a = |o + w.z|/|z|, lambda the regularization, o the public log odds and nu
        the least eigenvalue of the Hessian of the losses at their minimiser w, moves by at most 1
        with one record, and is at most 1 on both sides where the label changes. The losses are
        functions of o + w.z, so that a public o changes nothing of that. The least r of a label's
        pairs, where it wins all, has both properties too. ``card()`` says what is assumed and
        docs/certified.md, section 8, has the proofs. ``exact_predict`` is the noise-free label and
        is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, classes, prevalence, data_set: as for ``CertifiedClassifier``.
        features: as for ``CertifiedClassifier``; or a ``PublicReference``, for which ``fit`` needs
            labelled public rows.
        regularization: lambda, at least 1/16; distances grow with it, accuracy wants it small.
        norm_bound: rows are cut to this l2 norm, above 0; public. With a ``PublicReference`` in
            root mean square lengths of public rows.
        counting: "add-remove", or "replace" for data sets of one size.
    Attributes:
        members_: the certified model of each pair of labels; as private as the records.
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
        - Knerr, Personnaz and Dreyfus (1990), "Single-layer learning revisited: a stepwise
          procedure for building and training a neural network",
          doi:10.1007/978-3-642-76153-9_5, one against one.
        - The proofs: docs/certified.md, section 8.

    See Also:
        reticent.PublicReference: what the records correct.
        reticent.LinearVoteClassifier: larger distances, for many answers.
        reticent.CertifiedClassifier: hidden layers.
        reticent.retraining.convex_model: the trained model.
        reticent.mechanisms.SignedDistanceRelease: the mechanism "signed-distance".
    """

    regularization: float = 10.0
    norm_bound: float = 1.0
    counting: Counting = "add-remove"

    members_: tuple[ConvexModel, ...] = learned()

    _corrects: ClassVar[bool] = True

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
        _, reserve = self.query_.reserves(self.checked(X))
        worth = changed + 2.0 * self.members_[0].settings.proved_error
        return np.maximum(np.ceil(reserve / worth) - 1.0, 0.0).astype(np.int64)

    @override
    def _trained(
        self,
        points: Array,
        labels: Integers,
        classes: npt.NDArray[Any],
        identities: Sequence[Any] | npt.NDArray[Any] | None,
    ) -> tuple[ConvexModel, ...]:
        one_of(self.counting, PROTECTING, name="counting")
        started = isinstance(self.features, PublicReference)
        weights = weights_of_prevalence(self.prevalence, classes)
        settings = [
            ConvexSettings(
                features=points.shape[1] - (len(classes) if started else 0),
                class_weights=of_pair,
                offset_bound=_FARTHEST if started else 0.0,
                **{name: getattr(self, name) for name in _FIELDS},
            )
            for of_pair in _weights_of_pairs(weights)
        ]
        if identities is not None:
            record_keys(points, labels, identities)  # refuses two records of one identity
        found = []
        for pair, own in zip(combinations(range(len(classes)), 2), settings, strict=True):
            chosen = (labels == pair[0]) | (labels == pair[1])
            rows, offsets = rows_of_pair(points[chosen], own, pair)
            second = (labels[chosen] == pair[1]).astype(np.int64)
            found.append(convex_model(rows, second, own, offsets=offsets))
        return tuple(found)

    @override
    def _cut(self, features: Array) -> int:
        settings = self.members_[0].settings
        with np.errstate(over="ignore"):
            lengths = np.linalg.norm(features[:, : settings.features], axis=1)
        return int((~(lengths <= settings.norm_bound * (1 + 1e-12))).sum())

    @override
    def _cut_words(self, features: Array) -> str:
        bound = self.members_[0].settings.norm_bound
        if isinstance(self.features, PublicReference) or 2 * self.clipped_ <= len(features):
            return ""  # cutting the longest rows is what a bound on the norm is for
        return (
            f"{self.clipped_} of {len(features)} records are longer than norm_bound={bound:g} and"
        )

    @classmethod
    @override
    def _check_members(cls, query: CertifiedQuery, weights: tuple[float, ...]) -> None:
        expected = list(_weights_of_pairs(weights))
        if len(query.members) != len(expected):
            raise CorruptBundle("bundle: expected a model for each pair of labels")
        bound = _FARTHEST if isinstance(query.extractor, PublicStartEmbedding) else 0.0
        for member, of_pair in zip(query.members, expected, strict=True):
            if not isinstance(member, ConvexModel) or (
                (member.settings.class_weights, member.settings.offset_bound) != (of_pair, bound)
            ):
                raise CorruptBundle("bundle: a certificate that is none of this system's")

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        return {name: getattr(query.members[0].settings, name) for name in _FIELDS}


def _weights_of_pairs(weights: tuple[float, ...]) -> Iterator[tuple[float, float]]:
    """Yield weights of the labels of each pair, the larger one 1."""
    for first, second in combinations(weights, 2):
        most = max(first, second)
        yield first / most, second / most
