"""``PosthocEncoder``: an embedding of a private picture, released to an untrusted server with a
proved guarantee.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from reticent.core.checks import counts, flag, one_of, shown
from reticent.core.errors import InvalidParameter
from reticent.networks import from_torch
from reticent.systems.posthoc.calibration import Candidate, calibrate
from reticent.systems.posthoc.certificates import certificate
from reticent.systems.posthoc.plans import VECTOR_MECHANISMS, output_of
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.posthoc.settings import PosthocSettings, Prepared, prepare
from reticent.systems.posthoc.system import PosthocSystem
from reticent.tables.feature_names import names_of
from reticent.training.heads import HeadConfig
from reticent.training.noise_aware import NoiseAwareConfig, train_noise_aware
from reticent.training.obfuscators import ObfuscatorConfig, train_obfuscator
from reticent.training.progress import Report, progress

_LARGE_DELTA = 1e-3


class PosthocEncoder(PosthocSystem):
    """Releases embeddings of private inputs: (epsilon, delta) for inputs within ``radius`` of each
    other.

    Guarantee:
        One released row costs (epsilon, delta) for neighbours within l-infinity (or ``input_norm``)
        distance ``radius`` *in the embedding space*, withheld rows included. See ``card()`` for
        what is assumed, and docs/mechanisms.md and docs/certificates.md for the proofs.

    Args:
        epsilon: total epsilon of one answer, above 0.
        delta: total delta of one answer, in [0, 1). With 0 only the global path can be used.
        radius: neighbourhood radius R in the units of the embedding, above 0.
        embedder: "dense" or "convolutional" (a beta-VAE, trained on X), "identity" (X is the
            embedding), or your own trained torch module from inputs to vectors, which is copied.
        embedder_name: what you call the embedder, and vouch that everything of this name maps
            inputs alike; answers of two systems share a budget only if their embedders, names
            included, are the same. A torch module whose code cannot be read (see
            docs/guarantees.md) needs one for that; without, every fit is a space of its own.
        obfuscator: "noise-aware" (ours), a tuple of published regularisers ("arl", "contrastive",
            "noise"; () is the plain encoder), or your own trained torch module on embeddings.
        mechanism: "auto", or one of "laplace", "k-norm-linf", "k-norm-l2", "gaussian". With "auto"
            every mechanism is tried on a given or published obfuscator; a noise-aware one is
            trained for "k-norm-linf", and with a delta of 1e-3 or more for "gaussian" too.
        path: "auto", "global" (bound over the whole domain, nothing withheld) or "local"
            (propose-test-release).
        certificate: "auto", "interval", "enumeration", "layered" or "exact" (the constant itself,
            by complete search; small ReLU networks and l-infinity only, and ``path="global"``: the
            time of a search depends on the point).
        input_norm: norm of the neighbourhood, "linf" or "l1" (intervals: "l2" too).
        latent_dimension: size of a beta-VAE's embedding.
        beta: weight of the beta-VAE's divergence term (published: 5 for pictures of 784 pixels and
            more).
        outputs: released values per row; a tuple is tried out on calibration data.
        hidden: hidden widths of the obfuscator.
        epochs: passes of every obfuscator over the embeddings.
        embedder_epochs: passes of the beta-VAE over the pictures.
        head_epochs: passes of the heads that utility is measured with.
        calibration_share: share of the fitted rows that calibration is measured on, in (0, 1).
        random_state: seed of *training*; the noise of ``release`` never depends on it.
        verbose: whether training shows progress bars on standard error.

    Attributes:
        query_: the fitted release.
        head_: a server's classifier of released values, trained at the noise that is released; None
            without y.
        classes_: labels seen in ``fit``, None without y.
        considered_: all plans that calibration scored, best first.
        n_features_in_: number of input features.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> encoder = PosthocEncoder(
        ...     epsilon=8.0,
        ...     delta=0.0,
        ...     radius=0.2,
        ...     embedder="identity",
        ...     outputs=2,
        ...     hidden=(8,),
        ...     epochs=5,
        ...     random_state=0,
        ... ).fit(X, y)
        >>> encoder.release(X[:3]).values.shape
        (3, 2)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        radius: float,
        embedder: str | nn.Module = "dense",
        embedder_name: str | None = None,
        obfuscator: str | tuple[str, ...] | nn.Module = "noise-aware",
        mechanism: str = "auto",
        path: str = "auto",
        certificate: str = "auto",
        input_norm: str = "linf",
        latent_dimension: int = 8,
        beta: float = 5.0,
        outputs: int | tuple[int, ...] = (4, 6),
        hidden: tuple[int, ...] = (64,),
        epochs: int = 20,
        embedder_epochs: int = 20,
        head_epochs: int = 5,
        calibration_share: float = 0.2,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.embedder = embedder
        self.embedder_name = embedder_name
        self.obfuscator = obfuscator
        self.mechanism = mechanism
        self.path = path
        self.certificate = certificate
        self.input_norm = input_norm
        self.latent_dimension = latent_dimension
        self.beta = beta
        self.outputs = outputs
        self.hidden = hidden
        self.epochs = epochs
        self.embedder_epochs = embedder_epochs
        self.head_epochs = head_epochs
        self.calibration_share = calibration_share
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> Self:
        """Trains, certifies and calibrates on public or training data.

        Args:
            X: shape (n, features) or (n, height, width); pictures in [0, 1] for a beta-VAE.
            y: shape (n,), labels that released values should keep; may be None for a torch
                ``obfuscator``.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: before anything is trained.
            UnsupportedNetwork, UnsupportedNorm: a module or norm that cannot be certified.
            CalibrationFailed: no plan meets the total.
        """
        names = names_of(X)
        settings = PosthocSettings.of(self, head_epochs=self.head_epochs)
        mechanisms, sizes = self._mechanisms(settings), self._sizes()
        needed = not isinstance(self.obfuscator, nn.Module)
        with (
            torch.random.fork_rng(devices=[]),
            progress(flag(self.verbose, name="verbose")) as report,
        ):
            prepared = prepare(
                settings, X, y, labels_needed=needed, random_state=self.random_state, report=report
            )
            requirement = settings.requirement(prepared.embedding, prepared.domain)
            choice = calibrate(
                self._candidates(prepared, mechanisms, sizes, report),
                requirement,
                prepared.data,
                paths=settings.paths,
                head_config=HeadConfig(epochs=settings.head_epochs, seed=prepared.seed),
                report=report,
            )
        self.head_ = choice.head
        self.considered_ = choice.considered
        chosen = choice.candidate
        query = PrivateQuery(
            prepared.embedding, chosen.network, chosen.bound, requirement, choice.plan
        )
        self._become(query, prepared.input_shape, prepared.classes, names)
        return self

    def _mechanisms(self, settings: PosthocSettings) -> list[str]:
        if one_of(self.mechanism, ("auto", *VECTOR_MECHANISMS), name="mechanism") != "auto":
            return [one_of(self.mechanism, VECTOR_MECHANISMS, name="mechanism")]
        if isinstance(self.obfuscator, str) and self.obfuscator == "noise-aware":
            # One network is trained for each mechanism. K-norm noise in l-infinity wins at small
            # delta, Gaussian noise may at large.
            return ["k-norm-linf", *(["gaussian"] if settings.delta >= _LARGE_DELTA else [])]
        return [
            mechanism
            for mechanism in VECTOR_MECHANISMS
            if mechanism != "gaussian" or settings.delta > 0
        ]

    def _sizes(self) -> tuple[int, ...]:
        sizes = self.outputs if isinstance(self.outputs, tuple) else (self.outputs,)
        return counts(sizes, name="outputs")

    def _candidates(
        self, prepared: Prepared, mechanisms: list[str], sizes: tuple[int, ...], report: Report
    ) -> list[Candidate]:
        settings = prepared.settings
        modules: list[tuple[nn.Module, str]] = []
        if isinstance(self.obfuscator, nn.Module):
            modules = [(self.obfuscator, mechanism) for mechanism in mechanisms]
        elif isinstance(self.obfuscator, str) and self.obfuscator == "noise-aware":
            modules = [
                (self._noise_aware(prepared, mechanism, size, report), mechanism)
                for mechanism in mechanisms
                for size in sizes
            ]
        elif isinstance(self.obfuscator, tuple):
            for size in sizes:
                config = ObfuscatorConfig(
                    regularisers=self.obfuscator,
                    hidden=settings.hidden,
                    outputs=size,
                    epochs=settings.epochs,
                    seed=prepared.seed,
                )
                trained = train_obfuscator(
                    prepared.data.train, prepared.train_labels, config, report=report
                )
                modules += [(trained, mechanism) for mechanism in mechanisms]
        else:
            raise InvalidParameter(
                f"obfuscator={shown(self.obfuscator)}: expected noise-aware, a tuple of names, "
                "or a module"
            )
        candidates = []
        for module, mechanism in modules:
            network = from_torch(module, (prepared.domain.dimension,))
            bound = certificate(
                self.certificate,
                network,
                domain=prepared.domain,
                input_norm=settings.input_norm,
                output=output_of(mechanism),
            )
            candidates.append(Candidate(network, mechanism, bound))
        return candidates

    def _noise_aware(
        self, prepared: Prepared, mechanism: str, outputs: int, report: Report
    ) -> nn.Module:
        settings = prepared.settings
        config = NoiseAwareConfig(
            epsilon=settings.epsilon,
            radius=settings.radius,
            output_norm=VECTOR_MECHANISMS[mechanism],
            input_norm=settings.input_norm,
            outputs=outputs,
            hidden=settings.hidden,
            # A small budget drowns an untrained network: there the noise starts lower, and rises
            # while the network learns.
            first_noise=float(np.clip(0.1 * settings.epsilon, 0.2, 0.7)),
            epochs=settings.epochs,
            batch_size=prepared.batch_size,
            seed=prepared.seed,
        )
        return train_noise_aware(
            prepared.data.train, prepared.train_labels, config, report=report
        ).network

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = not isinstance(self.obfuscator, nn.Module)
        return tags
