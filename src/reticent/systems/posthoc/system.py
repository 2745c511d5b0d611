"""The common part of the two estimators of posthoc release: fitting, answering and loading."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.core.errors import CorruptBundle, InvalidParameter
from reticent.core.extras import require
from reticent.core.guarantees import GuaranteeCard
from reticent.core.settings import learned, with_settings
from reticent.lipschitz import LipschitzBound
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.systems.embedding import check_sizes
from reticent.systems.posthoc.cards import posthoc_card
from reticent.systems.posthoc.plans import PosthocSetting, releases_labels
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.posthoc.settings import Calibration, PosthocSettings
from reticent.systems.record_labels import restored_labels
from reticent.systems.releasing_system import ReleasingSystem
from reticent.tables.frames import kept_names, named_rows, stored_names
from reticent.training.parts.contract import module_of
from reticent.training.parts.embedders import Named

if TYPE_CHECKING:
    from torch import nn

    from reticent.systems.posthoc.calibration import Choice

_EXAMPLES = {
    "embedder": "BetaVAE()",
    "obfuscator": "NoiseAware()",
    "classifier": "LabelAware()",
    "calibration": "Calibration()",
}


@with_settings
class PosthocSystem(ReleasingSystem):
    """A fitted posthoc release, for ``PosthocEncoder`` and ``PosthocClassifier``.

    Attributes:
        query_: the fitted release.
        embedder_: the fitted embedder, after ``fit`` only.
        considered_: all plans that calibration scored, best first, after ``fit`` only.
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        classes_: labels seen in ``fit``, None without labels.
    """

    epsilon: float
    delta: float
    radius: float | None
    input_norm: str = "linf"
    embedder: Any = "dense"
    mechanism: str = "auto"
    calibration: Calibration | None = None
    random_state: int | np.random.RandomState | None = None

    query_: PrivateQuery = learned()
    embedder_: BaseEstimator = learned()
    considered_: tuple[PosthocSetting, ...] = learned()
    classes_: npt.NDArray[Any] | None = learned()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parts: ``set_params(obfuscator__hidden=(32,))``.

        Raises:
            InvalidParameter: a parameter of a part that is only named.
            ValueError: no such parameter.
        """
        for key in params:
            name, nested, _ = key.partition("__")
            part = params.get(name, getattr(self, name, None))
            if nested and name in _EXAMPLES and isinstance(part, str | None):
                raise InvalidParameter(
                    f"{key}: {name}={part!r} stands for a part and has no parameters; pass the "
                    f"part itself, as {name}={_EXAMPLES[name]}"
                )
        super().set_params(**params)
        return self

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        embedder: nn.Module | BaseEstimator | None = None,
        certificate: type[LipschitzBound] | None = None,
        trusted_key: str | Path | None = None,
    ) -> Self:
        """Return a system that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            embedder: an instance of your own module, or a fitted part whose ``network()`` is one,
                if the bundle was fitted with one whose code cannot be read (docs/guarantees.md).
                Passing it is your word that it is the same. Any other is built again.
            certificate: the class of your own bound, if the bundle was fitted with one.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing or
                another one.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
        """
        bundle = Bundle.read(folder, system=cls.__name__, trusted_key=trusted_key)
        module: nn.Module | None = None
        if embedder is not None:
            module = module_of(embedder, parameter="embedder")
        query = PrivateQuery.from_description(
            bundle.settings, bundle.arrays, module, certificate=certificate
        )
        total = query.requirement
        chosen = getattr(query.embedding, "module", "identity") if embedder is None else embedder
        name = query.embedding.name
        loaded = cls(
            epsilon=total.epsilon,
            delta=total.delta,
            radius=None if query.any_two_points else total.adjacency.radius,
            input_norm=total.adjacency.metric.value,
            embedder=Named(chosen, name) if name else chosen,
            calibration=None if certificate is None else Calibration(certificate=certificate),
        )
        with rebuilding():
            settings = bundle.settings
            shape = tuple(count(size, name="input_shape") for size in settings["input_shape"])
            check_sizes(query.embedding, shape, query.bound.domain.dimension)
            names = stored_names(settings, int(np.prod(shape)))
            released = releases_labels(query.plan.mechanism)
            if released != issubclass(cls, ClassifierMixin):
                raise CorruptBundle("bundle: its mechanism is none of this system's")
            expected = query.network.output_dimension if released else None
            labels = settings["labels"]
            classes = (
                None
                if labels is None and not released
                else restored_labels(labels, expected=expected)
            )
            loaded._become(query, shape, classes, names)
            check_rebuilt(bundle, loaded.bundle())
        return loaded

    def embed(self, X: npt.ArrayLike) -> Array:
        """Return embeddings of X, clipped to the public domain, shape (n, d).

        They are private, never to be sent.
        """
        return self._fitted().points(self.checked(X))

    def exact(self, X: npt.ArrayLike) -> Array:
        """Return what would be released without noise, shape (n, outputs). Private: never to be
        sent.
        """
        return self._fitted().exact(self.checked(X))

    def card(self) -> GuaranteeCard:
        """Return the guarantee in plain words."""
        return posthoc_card(self._fitted())

    @override
    def bundle(self) -> Bundle:
        """Return everything that ``release`` needs, ready to be written."""
        settings, arrays = self._fitted().describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = None if self.classes_ is None else self.classes_.tolist()
        settings["feature_names"] = kept_names(self)
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    _part: ClassVar[str]
    """The argument that makes the released function."""

    _parts: ClassVar[Mapping[str, Any]]
    """Parts that can be named there."""

    _named_mechanisms: ClassVar[tuple[str, ...]]
    """Mechanisms that can be named."""

    @abstractmethod
    def _mechanisms(
        self, part: BaseEstimator, inputs: int, settings: PosthocSettings
    ) -> tuple[str, ...]:
        """Return the mechanisms that are tried with ``part``, for embeddings of ``inputs``
        values.
        """

    def _fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> Choice:
        """Fit everything, and become it. Return the choice of calibration."""
        require("torch", extra="networks")  # only a fit needs it
        from reticent.systems.posthoc.fitting import fit_release

        settings = PosthocSettings.of(self)
        rows, names = named_rows(X)
        query, fit, choice = fit_release(
            settings,
            rows,
            y,
            mechanisms=lambda part, inputs: self._mechanisms(part, inputs, settings),
            random_state=self.random_state,
        )
        self.embedder_, self.considered_ = fit.embedder, choice.considered
        self._become(query, fit.input_shape, fit.classes, names)
        return choice

    def _become(
        self,
        query: PrivateQuery,
        shape: tuple[int, ...],
        classes: npt.NDArray[Any] | None,
        names: Iterable[str] | None,
    ) -> None:
        query.rehearse()
        self.query_ = query
        self._takes(shape, names)
        self.classes_ = classes
        self._identity = self.bundle().identity

    @override
    def _fitted(self) -> PrivateQuery:
        found: PrivateQuery = super()._fitted()
        return found
