"""``CertifiedClassifier``: labels of a classifier that was trained without noise, released with
a proved guarantee.
"""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from reticent.core.settings import with_settings
from reticent.retraining.training_settings import Counting
from reticent.systems.certified.interval_system import IntervalSystem
from reticent.systems.certified.query import CertifiedQuery


@with_settings
class CertifiedClassifier(IntervalSystem):
    """Release labels of one classifier, (epsilon, delta) for each label, for the records that it
    was trained on.

    Training proves how far the weights could have moved if k records had come or gone, for every k
    up to ``k_max``. A query's label survives as many changes as all those weights agree on it, and
    the more it survives the less it has to be randomised.

    Guarantee:
        One released label costs (epsilon, 0), or (epsilon, delta) with the mechanism
        "signed-distance", for two training sets one of which has one record more
        (``counting="replace"``: of one size, with one record replaced). ``card()`` says what is
        assumed and docs/certified.md has the proofs. ``exact_predict`` is the noise-free label and
        is *not* private, and neither are the fitted object and its bundle.

    Args:
        epsilon: epsilon of one answer, above 0. See ``calibrate`` for a total over many.
        delta: delta of one answer, in [0, 1), for the mechanism "signed-distance".
        mechanism: "stability" (calibrated randomised response), "signed-distance" (Gaussian noise
            on the signed distance, for many answers).
            "auto" is "stability" where delta is 0 and "signed-distance" where it is not.
            ``calibrate`` then takes whichever the number of answers asks for.
        k_max: largest number of changed records that is certified. Training takes k_max + 1 times
            as long.
        training: settings of the network's training, or None for ``ClippedDescent()``, logistic or
            softmax regression.
        counting: "add-remove" or "replace".
        prevalence: share of each label, by label, known from elsewhere, which makes every label
            count alike in training. None for records that count alike.
        features: meaning of a record's columns (schema), and your own torch module from inputs
            to features, trained on public data only (map). None for ``Features()``.
        classes: the labels that there are, a public list, or "observed" to take those that occur
            among the records. That publishes them: the card then says that they are not protected.
        data_set: the owner's name for the records. It stays the same whenever they are the
            same, since a ledger charges every fit on them to it. None books in no ledger.
    Attributes:
        members_: the certified parameter intervals, one entry, as private as the records.
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
        >>> classifier = CertifiedClassifier(epsilon=0.5, classes=[0, 1], k_max=30).fit(X, y)
        >>> labels, distances = classifier.stable_distances([[2.0, 2.0], [0.1, -0.1]])
        >>> labels.tolist(), distances.tolist()
        ([1, 1], [30, 0])
        >>> len(classifier.release([[2.0, 2.0]]))
        1

    References:
        - Wicker et al. (2025), "Certification for differentially private prediction in
          gradient-based training", arXiv:2406.13433.
        - Sosnin, Müller, Baader, Tsay and Wicker (2024), "Certified robustness to data poisoning in
          gradient-based training", arXiv:2406.05670, intervals around trained parameters.

    See Also:
        reticent.CertifiedEnsemble: votes of several, for more records and answers.
        reticent.PrivateKNNClassifier: records that vote, no training.
        reticent.retraining.parameter_intervals: the certificate.
        reticent.mechanisms.StabilityResponse: the default mechanism.
    """

    k_max: int = 50
    counting: Counting = "add-remove"

    @override
    def _member_count(self) -> int:
        return 1

    @classmethod
    @override
    def _arguments(cls, query: CertifiedQuery) -> dict[str, Any]:
        return {**super()._arguments(query), "counting": query.members[0].settings.counting}
