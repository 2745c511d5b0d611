"""``PosthocClassifier``: the label of a private picture, released to anyone with a proved
guarantee.

When the client can run the classifier itself, a label is worth far more per epsilon than an
embedding.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import ClassifierMixin
from torch import nn
from typing_extensions import override

from reticent.core.checks import flag, one_of
from reticent.core.errors import InvalidInput
from reticent.core.releases import Release
from reticent.networks import from_torch
from reticent.noise import Sampler
from reticent.systems.class_labels import restored_labels
from reticent.systems.posthoc.calibration import Candidate, calibrate
from reticent.systems.posthoc.certificates import certificate
from reticent.systems.posthoc.plans import LABEL_MECHANISMS
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.posthoc.settings import PosthocSettings, Prepared, prepare
from reticent.systems.posthoc.system import Array, PosthocSystem
from reticent.systems.releasing_system import with_class_names
from reticent.tables.feature_names import names_of
from reticent.training.heads import HeadConfig
from reticent.training.label_aware import LabelAwareConfig, train_label_release
from reticent.training.progress import Report, progress


class PosthocClassifier(ClassifierMixin, PosthocSystem):
    """Releases labels of private inputs: (epsilon, delta) for inputs within ``radius`` of each
    other.

    Guarantee:
        One released label costs (epsilon, delta) for neighbours within l-infinity (or
        ``input_norm``) distance ``radius`` *in the embedding space*, withheld answers included. See
        ``card()`` for what is assumed, and docs/mechanisms.md and docs/certificates.md for the
        proofs. ``predict`` is the client's own, noise-free prediction and is *not* private.

    Args:
        epsilon: total epsilon of one label, above 0.
        delta: total delta of one label, in [0, 1). With 0 only the global path can be used.
        radius: neighbourhood radius R in the units of the embedding, above 0.
        embedder: "dense" or "convolutional" (a beta-VAE, trained on X), "identity" (X is the
            embedding), or your own trained torch module from inputs to vectors, which is copied.
        embedder_name: what you call the embedder, and vouch that everything of this name maps
            inputs alike; answers of two systems share a budget only if their embedders, names
            included, are the same. A torch module whose code cannot be read (see
            docs/guarantees.md) needs one for that; without, every fit is a space of its own.
        classifier: "noise-aware" (trained for exactly the mechanism that releases), or your own
            trained torch module from embeddings to logits, in the order of the sorted labels.
        mechanism: "auto", "softmax" or "stability".
        path: "auto", "global" (bound over the whole domain, nothing withheld) or "local"
            (propose-test-release).
        certificate: "auto", "interval", "enumeration", "layered" or "exact" (the constant itself,
            by complete search; small ReLU networks and l-infinity only, and ``path="global"``: the
            time of a search depends on the point).
        input_norm: norm of the neighbourhood, "linf" or "l1" (intervals: "l2" too).
        latent_dimension: size of a beta-VAE's embedding.
        beta: weight of the beta-VAE's divergence term.
        hidden: hidden widths of the classifier.
        epochs: passes of every classifier over the embeddings.
        embedder_epochs: passes of the beta-VAE over the pictures.
        calibration_share: share of the fitted rows that calibration is measured on, in (0, 1).
        random_state: seed of *training*; the randomness of ``release`` never depends on it.
        verbose: whether training shows progress bars on standard error.

    Attributes:
        query_: the fitted release.
        classes_: the labels, sorted.
        considered_: all plans that calibration scored, best first.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = PosthocClassifier(
        ...     epsilon=4.0,
        ...     delta=0.0,
        ...     radius=0.2,
        ...     embedder="identity",
        ...     hidden=(8,),
        ...     epochs=5,
        ...     random_state=0,
        ... ).fit(X, y)
        >>> set(classifier.release(X).values) <= {0, 1, 2}
        True
    """

    classes_: npt.NDArray[Any]

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        radius: float,
        embedder: str | nn.Module = "dense",
        embedder_name: str | None = None,
        classifier: str | nn.Module = "noise-aware",
        mechanism: str = "auto",
        path: str = "auto",
        certificate: str = "auto",
        input_norm: str = "linf",
        latent_dimension: int = 8,
        beta: float = 5.0,
        hidden: tuple[int, ...] = (64,),
        epochs: int = 20,
        embedder_epochs: int = 20,
        calibration_share: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.embedder = embedder
        self.embedder_name = embedder_name
        self.classifier = classifier
        self.mechanism = mechanism
        self.path = path
        self.certificate = certificate
        self.input_norm = input_norm
        self.latent_dimension = latent_dimension
        self.beta = beta
        self.hidden = hidden
        self.epochs = epochs
        self.embedder_epochs = embedder_epochs
        self.calibration_share = calibration_share
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Trains, certifies and calibrates on public or training data.

        Args:
            X: shape (n, features) or (n, height, width); pictures in [0, 1] for a beta-VAE.
            y: shape (n,), labels.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: before anything is trained.
            InvalidInput: a module of your own with another number of outputs than there are labels.
            UnsupportedNetwork, UnsupportedNorm: a module or norm that cannot be certified.
            CalibrationFailed: no plan meets the total.
        """
        names = names_of(X)
        settings = PosthocSettings.of(self)
        one_of(self.mechanism, ("auto", *LABEL_MECHANISMS), name="mechanism")
        if not isinstance(self.classifier, nn.Module):
            one_of(self.classifier, ("noise-aware", "a torch module"), name="classifier")
        mechanisms = LABEL_MECHANISMS if self.mechanism == "auto" else (self.mechanism,)
        with (
            torch.random.fork_rng(devices=[]),
            progress(flag(self.verbose, name="verbose")) as report,
        ):
            prepared = prepare(
                settings, X, y, labels_needed=True, random_state=self.random_state, report=report
            )
            requirement = settings.requirement(prepared.embedding, prepared.domain)
            choice = calibrate(
                [self._candidate(prepared, mechanism, report) for mechanism in mechanisms],
                requirement,
                prepared.data,
                paths=settings.paths,
                head_config=HeadConfig(seed=prepared.seed),
                report=report,
            )
        self.considered_ = choice.considered
        chosen = choice.candidate
        query = PrivateQuery(
            prepared.embedding, chosen.network, chosen.bound, requirement, choice.plan
        )
        self._become(query, prepared.input_shape, prepared.classes, names)
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The classifier's own labels, without noise. Private: for the owner of X, never to be
        sent.
        """
        logits = self.exact(X)
        return np.asarray(self.classes_[logits.argmax(axis=1)])

    def probabilities(self, X: npt.ArrayLike) -> Array:
        """Probability of every label under the released distribution, shape (n, classes), given
        that it is not withheld.

        Private: for expected accuracies on public data, never to be sent.
        """
        query = self._fitted()
        return query.label_mechanism.probabilities(query.exact(self._inputs(X)))

    def _answer(self, X: npt.ArrayLike, sampler: Sampler, ledger: Any, scope: Any) -> Release:
        """As for vectors, with positions turned into the user's own labels; withheld answers
        stay -1 (or None).
        """
        return with_class_names(super()._answer(X, sampler, ledger, scope), self.classes_)

    @classmethod
    @override
    def _restored_labels(cls, stored: Any, query: PrivateQuery) -> npt.NDArray[Any] | None:
        return restored_labels(stored, expected=query.network.output_dimension)

    def _candidate(self, prepared: Prepared, mechanism: str, report: Report) -> Candidate:
        settings = prepared.settings
        if isinstance(self.classifier, nn.Module):
            module = self.classifier
        else:
            config = LabelAwareConfig(
                epsilon=settings.epsilon,
                radius=settings.radius,
                mechanism=mechanism,
                input_norm=settings.input_norm,
                hidden=settings.hidden,
                epochs=settings.epochs,
                batch_size=prepared.batch_size,
                seed=prepared.seed,
            )
            module = train_label_release(
                prepared.data.train, prepared.train_labels, config, report=report
            )
        network = from_torch(module, (prepared.domain.dimension,))
        classes = 0 if prepared.classes is None else len(prepared.classes)
        if network.output_dimension != classes:
            raise InvalidInput(
                f"classifier: expected one logit for each of {classes} labels of y, got "
                f"{network.output_dimension} outputs"
            )
        bound = certificate(
            self.certificate,
            network,
            domain=prepared.domain,
            input_norm=settings.input_norm,
            output="spread",
        )
        return Candidate(network, mechanism, bound)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
