"""``PosthocClassifier``: the label of a private picture, released to anyone with a proved
guarantee.

When the client can run the classifier itself, a label is worth far more per epsilon than an
embedding.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.settings import learned, with_settings
from reticent.release.paying import Drawn
from reticent.release.system import PredictsByRelease
from reticent.systems.posthoc.label_lattice import worth_trying
from reticent.systems.posthoc.plans import LABEL_MECHANISMS, LABEL_RULES
from reticent.systems.posthoc.settings import PosthocSettings
from reticent.systems.posthoc.system import PosthocSystem
from reticent.systems.releasing_system import class_names
from reticent.training.parts.label_classifiers import CLASSIFIERS


@with_settings
class PosthocClassifier(PredictsByRelease, ClassifierMixin, PosthocSystem):
    """Release labels of private inputs: (epsilon, delta) for inputs within ``radius`` of each
    other.

    Guarantee:
        One released label costs (epsilon, delta) for neighbours within l-infinity (or
        ``input_norm``) distance ``radius`` *in the embedding space*, withheld answers included. See
        ``card()`` for what is assumed, and docs/mechanisms.md and docs/certificates.md for the
        proofs. ``exact_predict`` is the client's own, noise-free prediction and is *not* private.

    Args:
        epsilon: total epsilon of one label, above 0.
        delta: total delta of one label, in [0, 1). With 0 only the global path can be used.
        radius: neighbourhood radius R in the units of the embedding, above 0.
        input_norm: norm of the neighbourhood, "linf" or "l1" (intervals: "l2" too).
        embedder: argument of ``PosthocEncoder``.
        classifier: part that makes logits of embeddings: "noise-aware" (trained for exactly the
            mechanism that releases), a part such as ``LabelAware(hidden=(128,))``, or your own
            trained torch module from embeddings to logits, in the order of the sorted labels.
        mechanism: "auto" (the best of all on calibration rows), "noisy-max" or
            "stability" (by a network's certified slope). Or "table" or "hop" (checked cell by cell
            on a public lattice) or "response" (private for any two inputs). See
            docs/label-tables.md.
        calibration: choice of the certificates and paths that are tried, and of the measure of
            utility. None for ``Calibration()``.
        random_state: seed of *training*. The randomness of ``release`` never depends on it.
        fallback: the public label that ``predict`` gives where an answer is withheld, or None where
            none is.

    Attributes:
        query_: the fitted release.
        embedder_: the fitted embedder, after ``fit`` only.
        classifier_: the fitted classifier that calibration chose, after ``fit`` only.
        classes_: the labels, sorted.
        considered_: all plans that calibration scored, best first.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from reticent import LabelAware
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = PosthocClassifier(
        ...     epsilon=4.0, delta=0.0, radius=0.2, embedder="identity",
        ...     classifier=LabelAware(hidden=(8,), epochs=5), random_state=0,
        ... ).fit(X, y)
        >>> set(classifier.release(X).values) <= {0, 1, 2}
        True

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS).
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466, which introduces propose-test-release.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of inputs
          within a distance.

    See Also:
        reticent.PosthocEncoder: vectors for any server.
        reticent.PowerEncoder: rows of tables, any two records.
        reticent.mechanisms.StabilityRelease: a mechanism of labels.
    """

    classifier: Any = "noise-aware"
    fallback: Any = None

    classes_: npt.NDArray[Any] = learned()

    _part = "classifier"
    _parts = CLASSIFIERS
    _named_mechanisms = (*LABEL_MECHANISMS, *LABEL_RULES)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Train, certify and calibrate on public or training data.

        Args:
            X: shape (n, features) or (n, height, width), pictures in [0, 1] for a beta-VAE.
            y: shape (n,), labels.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: refused before anything is trained.
            InvalidInput: a network with another number of outputs than there are labels.
            UnsupportedNetwork, UnsupportedNorm: a network or norm that cannot be certified.
            CalibrationFailed: no plan meets the total.
        """
        self.classifier_ = self._fit(X, y).candidate.part
        return self

    @property
    @override
    def _withholds(self) -> bool:
        return self._fitted().test is not None

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        return Drawn(class_names(values, self.classes_, withheld=withheld), withheld)

    def exact_predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the classifier's own labels, without noise. Private: for the owner of X, never to
        be sent.
        """
        logits = self.exact(X)
        return np.asarray(self.classes_[logits.argmax(axis=1)])

    def probabilities(self, X: npt.ArrayLike) -> Array:
        """Return the probability of every label under the released distribution, shape (n,
        classes).

        It is given that the label is not withheld. It is private, for expected accuracies on public
        data, never to be sent.
        """
        query = self._fitted()
        return query.label_chances(self.checked(X))

    @override
    def _mechanisms(
        self, part: BaseEstimator, inputs: int, settings: PosthocSettings
    ) -> tuple[str, ...]:
        if settings.mechanism != "auto":
            return (settings.mechanism,)
        # a rule withholds nothing, so it is no way to release with a test
        rules = LABEL_RULES if "global" in settings.paths else ()
        return (*LABEL_MECHANISMS, *worth_trying(rules, epsilon=settings.epsilon))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
