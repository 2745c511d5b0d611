"""``PosthocEncoder``: an embedding of a private picture, released to an untrusted server with a
proved guarantee.
"""

from __future__ import annotations

from typing import Any, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from typing_extensions import override

from reticent.core.norms import MAX_SIGN_BITS, Norm
from reticent.core.settings import with_settings
from reticent.systems.posthoc.plans import CODE, VECTOR_MECHANISMS
from reticent.systems.posthoc.settings import PosthocSettings
from reticent.systems.posthoc.system import PosthocSystem
from reticent.systems.releasing_system import ReleasesVectors
from reticent.training.parts.contract import needs_labels, trains_for_release
from reticent.training.parts.ladder import OBFUSCATORS
from reticent.training.parts.public_nodes import PublicNodes

_LARGE_DELTA = 1e-3


@with_settings
class PosthocEncoder(ReleasesVectors, PosthocSystem):
    """Release embeddings of private inputs: (epsilon, delta) for inputs within ``radius`` of each
    other, or for any two.

    Guarantee:
        One released row costs (epsilon, delta) for neighbours within l-infinity (or ``input_norm``)
        distance ``radius`` *in the embedding space*, withheld rows included, and without a radius
        for any two inputs. See ``card()`` for what is assumed, and docs/mechanisms.md and
        docs/certificates.md for the proofs.

    Args:
        epsilon: total epsilon of one answer, above 0.
        delta: total delta of one answer, in [0, 1). With 0 only the global path can be used.
        radius: neighbourhood radius R in the units of the embedding, above 0, or None for any two
            points of the public box that embeddings are clipped to.
        input_norm: norm of the neighbourhood, "linf", "l1" or "l2".
        embedder: part that makes embeddings: "dense" or "convolutional" (a beta-VAE, trained on X),
            "identity" (X is the embedding), a part such as ``BetaVAE(latent_dimension=4)``, or your
            own trained torch module from inputs to vectors, which is copied. Pictures reach it in
            shape (n, height, width), so that a network of channels begins with ``nn.Unflatten(1,
            (1, height))``. ``Named`` gives it a name, which answers of two systems need to share a
            budget where the code of a module cannot be read (docs/guarantees.md).
        obfuscator: part that makes released values of embeddings: "noise-aware" (ours), "identity",
            "live" (the coordinates that vary), "pca", "discriminants", "parts" and "signs" (codes
            for any two inputs, which stand for means of public embeddings), "auto" (all of these,
            scored on calibration rows, with every score in ``considered_``. Below 2,000 rows with
            labels the three best are compared over all rows, by folds, and the winner is fitted on
            all), a part such as ``NoiseAware(outputs=2)``, or your own trained torch module.
        mechanism: "auto", or one of "laplace", "k-norm-linf", "k-norm-l2", "gaussian", and "code"
            for parts and signs. With "auto" every mechanism is tried on a network that does not
            depend on it. A part that is trained for its release is trained for "k-norm-linf", and
            with a delta of 1e-3 or more for "gaussian" too.
        calibration: choice of the certificates and paths that are tried, and of the measure of
            utility. None for ``Calibration()``.
        random_state: seed of *training*. The noise of ``release`` never depends on it.

    Attributes:
        query_: the fitted release.
        embedder_: the fitted embedder, after ``fit`` only.
        obfuscator_: the fitted obfuscator that calibration chose, after ``fit`` only.
        head_: a server's classifier of released values, trained at the noise that is released, None
            without y.
        classes_: labels seen in ``fit``, None without y.
        considered_: all plans that calibration scored, best first.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from reticent import NoiseAware
        >>> X, y = load_iris(return_X_y=True)
        >>> encoder = PosthocEncoder(
        ...     epsilon=8.0, delta=0.0, radius=0.2, embedder="identity",
        ...     obfuscator=NoiseAware(outputs=2, hidden=(8,), epochs=5), random_state=0,
        ... ).fit(X, y)
        >>> encoder.release(X[:3]).values.shape
        (3, 2)

    References:
        - Singh, Vepakomma, Sharma and Raskar (2023), "Posthoc privacy guarantees for collaborative
          inference with modified propose-test-release", Advances in Neural Information Processing
          Systems (NeurIPS).
        - Dwork and Lei (2009), "Differential privacy and robust statistics",
          doi:10.1145/1536414.1536466, which introduces propose-test-release.
        - Chatzikokolakis, Andrés, Bordenabe and Palamidessi (2013), "Broadening the scope of
          differential privacy using metrics", doi:10.1007/978-3-642-39077-7_5, privacy of inputs
          within a distance.
        - Bhowmick, Duchi, Freudiger, Kapoor and Rogers (2018), "Protection against reconstruction
          and its applications in private federated learning", arXiv:1812.00984, signs for any two.

    See Also:
        reticent.PosthocClassifier: labels instead of vectors.
        reticent.CodeEncoder: codes that serve labels, recall and several targets.
        reticent.PowerEncoder: rows of tables, any two records.
        reticent.mechanisms.ProposeTestRelease: the local path.
        reticent.mechanisms.KNormMechanism: a noise of the global path.
    """

    obfuscator: Any = "auto"

    _part = "obfuscator"
    _parts = OBFUSCATORS
    _named_mechanisms = (*VECTOR_MECHANISMS, CODE)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Train, certify and calibrate on public or training data.

        Args:
            X: shape (n, features) or (n, height, width), pictures in [0, 1] for a beta-VAE.
            y: shape (n,), labels that released values should keep. It may be None for an
                ``obfuscator`` that does without.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: refused before anything is trained.
            UnsupportedNetwork, UnsupportedNorm: a network or norm that cannot be certified.
            CalibrationFailed: no plan meets the total.
        """
        choice = self._fit(X, y)
        self.head_, self.obfuscator_ = choice.head, choice.candidate.part
        return self

    @override
    def _mechanisms(
        self, part: BaseEstimator, inputs: int, settings: PosthocSettings
    ) -> tuple[str, ...]:
        if isinstance(part, PublicNodes) or settings.mechanism == CODE:
            takes = isinstance(part, PublicNodes) and settings.mechanism in ("auto", CODE)
            return (CODE,) if takes else ()
        if settings.mechanism != "auto":
            return (settings.mechanism,)
        if not trains_for_release(part):
            return tuple(n for n in VECTOR_MECHANISMS if n != "gaussian" or settings.delta > 0)
        # One network is trained for each mechanism: for the K-norm noise that fits its constant,
        # and for Gaussian noise where delta is large enough for it to win.
        sorted_pairs = settings.input_norm is Norm.L2 or (
            settings.input_norm is Norm.LINF and inputs > MAX_SIGN_BITS
        )
        pure = "k-norm-l2" if sorted_pairs else "k-norm-linf"
        return (pure, *(["gaussian"] if settings.delta >= _LARGE_DELTA else []))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = needs_labels(self.obfuscator)
        return tags
