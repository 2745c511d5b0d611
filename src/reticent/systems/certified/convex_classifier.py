"""``ConvexCertifiedClassifier``: labels of logistic regressions, perhaps beside public models,
certified by the curvature at their minimum and released with a proved guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from reticent.core.settings import learned, with_settings
from reticent.retraining.convex import ConvexModel, ConvexSettings, convex_model
from reticent.retraining.reserves import ReserveModel
from reticent.systems.certified.query import CertifiedQuery
from reticent.systems.certified.reserve_system import COMMON, Pair, ReserveSystem


@with_settings
class ConvexCertifiedClassifier(ReserveSystem):
    """Release labels of regularised logistic regressions, (epsilon, delta) for each label, for the
    records that they were trained on.

    Training goes to the minimum, which one record can move only so far: by how far, and hence how
    many records would have to come or go before a label could change, follows from the least
    curvature there. There are no epochs and no ``k_max`` to choose.

    With a ``PublicReference`` the records correct the log odds of public models, by weights of
    public features. ``regularization`` then leads from the private records to the public models,
    whose labels no record can change. Three and more labels are told by one regression for each
    pair, of the records of these two labels.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). *Why.* Let a = |o +
        w.z|/|z|, lambda the regularization, o the public log odds and nu the least eigenvalue of
        the Hessian of the losses at their minimiser w. Then r = nu (1 - e^-a) + lambda a moves by
        at most 1 with one record, and is at most 1 on both sides where the label changes. The
        losses are functions of o + w.z, so that a public o changes nothing of that. The least r of
        a label's pairs, where it wins all, has both properties too. ``card()`` says what is assumed
        and docs/certified.md, section 8, has the proofs. ``exact_predict`` is the noise-free label
        and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, classes, prevalence, data_set: arguments of
            ``CertifiedClassifier``.
        features: argument of ``CertifiedClassifier``, or a ``PublicReference``, for which ``fit``
            needs labelled public rows.
        regularization: lambda, at least 1/16. Distances grow with it, accuracy wants it small.
        norm_bound: public l2 norm above 0, to which rows are cut. With a ``PublicReference`` in
            root mean square lengths of public rows.
        counting: "add-remove", or "replace" for data sets of one size.
    Attributes:
        members_: the certified model of each pair of labels, as private as the records.
        clipped_: private number of records that were longer than ``norm_bound``, or not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> import numpy as np
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
        reticent.CertifiedNetwork: a hidden layer.
        reticent.retraining.convex_model: the trained model.
        reticent.mechanisms.SignedDistanceRelease: the mechanism "signed-distance".
    """

    regularization: float = 10.0

    members_: tuple[ConvexModel, ...] = learned()

    _model: ClassVar[type[ReserveModel]] = ConvexModel

    @override
    def _settings(self, **common: Any) -> ConvexSettings:
        return ConvexSettings(regularization=self.regularization, **common)

    @override
    def _models(self, settings: Sequence[Any], pairs: Sequence[Pair]) -> tuple[ConvexModel, ...]:
        return tuple(
            convex_model(rows, second, own, offsets=offsets)
            for own, (rows, second, offsets) in zip(settings, pairs, strict=True)
        )

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        settings = query.members[0].settings
        return {name: getattr(settings, name) for name in ("regularization", *COMMON)}
