"""``CertifiedEnsemble``: the vote of classifiers trained on disjoint parts of the records,
released with a proved guarantee.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from reticent.core.checks import count
from reticent.core.settings import with_settings
from reticent.systems.certified.interval_system import IntervalSystem
from reticent.systems.certified.query import CertifiedQuery


@with_settings
class CertifiedEnsemble(IntervalSystem):
    """Release the label that most members vote for, (epsilon, delta) for each label, for all
    training records together.

    Every record is in one member, drawn from its key. To change the vote, enough members that vote
    for the winner must each lose more records than their label survives. The least total is the
    distance that the answer's noise is calibrated to.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more.
        ``card()`` says what is assumed and docs/certified.md has the proofs. ``exact_predict`` is
        the noise-free vote and is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon, delta, mechanism, k_max, training, prevalence, features, classes, data_set:
            arguments of ``CertifiedClassifier``, with k_max for each member.
        members: number of classifiers, at least 1.
    Attributes:
        members_: the certified parameter intervals of each member, as private as the records.
        public_check_: private comparison of the model with a constant on the public rows that
            ``fit`` was given, or None.
        clipped_: private number of feature values of the records that were cut to the training's
            ``input_bound``, or were not finite.
        classes_: the labels, sorted.
        n_features_in_: number of input features.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(600, 2)) + 2.0
        >>> X[:300] -= 4.0
        >>> y = np.repeat([0, 1], 300)
        >>> ensemble = CertifiedEnsemble(epsilon=0.5, classes=[0, 1], members=5, k_max=10).fit(X, y)
        >>> labels, distances = ensemble.stable_distances([[2.0, 2.0]])
        >>> labels.tolist(), distances.tolist()  # three of five votes, 11 records each, less one
        ([1], [32])

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433, section 5.2 and theorem 5.3.
        - Levine and Feizi (2021), "Deep partition aggregation: provable defenses against general
          poisoning attacks", arXiv:2006.14768, votes of models on disjoint parts.
        - Nissim, Raskhodnikova and Smith (2007), "Smooth sensitivity and sampling in private data
          analysis", doi:10.1145/1250790.1250803, sample and aggregate.

    See Also:
        reticent.CertifiedClassifier: one model.
        reticent.retraining.vote_distances: the distance of a vote.
    """

    members: int = 10
    k_max: int = 20
    counting = "add-remove"  # a replaced record can change two members

    @override
    def _member_count(self) -> int:
        return count(self.members, name="members")

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        return {**super()._arguments(query), "members": len(query.members)}
