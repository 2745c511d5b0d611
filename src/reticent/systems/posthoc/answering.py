"""A posthoc release that answers: what a device needs of one, and both estimators are built on. No
torch, unless a stored network is one of torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.core.errors import InvalidInput
from reticent.core.guarantees import GuaranteeCard
from reticent.release.bundle import Bundle, check_rebuilt, rebuilding
from reticent.release.paying import Drawn
from reticent.systems.class_labels import restored_labels
from reticent.systems.embedding import check_sizes
from reticent.systems.posthoc.cards import posthoc_card
from reticent.systems.posthoc.plans import releases_labels
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.releasing_system import ReleasingSystem, class_names
from reticent.tables.frames import kept_names, stored_names

if TYPE_CHECKING:
    from torch import nn

    from reticent.lipschitz import LipschitzBound


ESTIMATORS = ("PosthocEncoder", "PosthocClassifier")
"""Names of the estimators whose bundles hold a posthoc release."""


class PosthocRelease(ReleasingSystem):
    """A posthoc release that was fitted or read, and answers.

    Guarantee:
        As of the ``PosthocEncoder`` or ``PosthocClassifier`` that was fitted: one answer costs
        ``guarantee``, withheld ones included. Nothing here trains or chooses.

    Attributes:
        query_: the fitted release.
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        classes_: labels seen in ``fit``, None without labels.
    """

    query_: PrivateQuery
    classes_: npt.NDArray[Any] | None

    def embed(self, X: npt.ArrayLike) -> Array:
        """Embeddings of X, clipped to the public domain, shape (n, d). Private: never to be
        sent.
        """
        return self._fitted().points(self.checked(X))

    def exact(self, X: npt.ArrayLike) -> Array:
        """What would be released without noise, shape (n, outputs). Private: never to be sent."""
        return self._fitted().exact(self.checked(X))

    @property
    @override
    def bundle_identity_(self) -> str:
        """SHA-256 of the bundle; goes into every receipt."""
        self._fitted()
        return self._identity

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        return posthoc_card(self._fitted())

    @override
    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written."""
        settings, arrays = self._fitted().describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = None if self.classes_ is None else self.classes_.tolist()
        settings["feature_names"] = kept_names(self)
        return Bundle(self._estimator, settings, arrays, self.card().to_markdown())

    @property
    def _estimator(self) -> str:
        """Name of the estimator that was fitted."""
        return type(self).__name__

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

    def _become_stored(self, stored: Bundle, query: PrivateQuery) -> None:
        """Becomes what a bundle holds.

        Raises:
            CorruptBundle: it holds something else than would be stored again.
        """
        with rebuilding():
            settings = stored.settings
            shape = tuple(count(size, name="input_shape") for size in settings["input_shape"])
            check_sizes(query.embedding, shape, query.bound.domain.dimension)
            names = stored_names(settings, int(np.prod(shape)))
            released = releases_labels(query.plan.mechanism)
            expected = query.network.output_dimension if released else None
            labels = settings["labels"]
            classes = (
                None
                if labels is None and not released
                else restored_labels(labels, expected=expected)
            )
            self._become(query, shape, classes, names)
            check_rebuilt(stored, self.bundle())

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        if self.classes_ is None or not releases_labels(self.query_.plan.mechanism):
            return Drawn(values, withheld, self._released_columns())
        return Drawn(class_names(values, self.classes_, withheld=withheld), withheld)

    def _released_columns(self) -> tuple[str, ...]:
        """Names of what is released, for a data frame."""
        return ("label",)

    @override
    def _fitted(self) -> PrivateQuery:
        if not hasattr(self, "query_"):
            raise self._not_fitted()
        return self.query_


class StoredPosthoc(PosthocRelease):
    """A posthoc bundle as it stands in a folder, ready to answer and nothing else.

    Answers are those of the estimator that wrote it, from the same values; what it takes is numpy,
    unless the bundle's own embedder or a layer of its network is one of torch.

    See Also:
        reticent.systems.loading.load_answering: any bundle, as what answers.
    """

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        embedder: nn.Module | None = None,
        certificate: type[LipschitzBound] | None = None,
        trusted_key: str | Path | None = None,
    ) -> Self:
        """What answers, from what an estimator's ``save`` wrote.

        Args:
            folder: the bundle.
            embedder, certificate: the user's own module and class of bounds, where the bundle was
                fitted with them; see ``PosthocEncoder.load``.
            trusted_key: file with the public key that must have signed the bundle, or None.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing.
            CorruptBundle: the bundle is damaged.
            UntrustedSignature: not signed by ``trusted_key``.
            MissingExtra: its embedder or a layer needs torch, which is not installed.
        """
        bundle = Bundle.read(folder, trusted_key=trusted_key)
        if bundle.system not in ESTIMATORS:
            raise InvalidInput(
                f"folder={str(folder)!r}: holds a {bundle.system}, expected one of "
                f"{', '.join(ESTIMATORS)}"
            )
        stored = cls()
        stored._name = bundle.system
        query = PrivateQuery.from_description(
            bundle.settings, bundle.arrays, embedder, certificate=certificate
        )
        stored._become_stored(bundle, query)
        return stored

    @property
    @override
    def _estimator(self) -> str:
        return str(self._name)

    @override
    def _released_columns(self) -> tuple[str, ...]:
        if releases_labels(self.query_.plan.mechanism):
            return ("label",)
        name = self._name.lower()
        return tuple(f"{name}{place}" for place in range(self.query_.outputs))
