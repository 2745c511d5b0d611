"""What the two front doors of posthoc release share once they are fitted: embedding, storing and explaining."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from torch import nn
from typing_extensions import override

from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import GuaranteeCard
from reticent.systems.bundle import Bundle
from reticent.systems.feature_names import kept_names, stored_names
from reticent.systems.posthoc.cards import posthoc_card
from reticent.systems.posthoc.query import PrivateQuery
from reticent.systems.releasing_system import ReleasingSystem

Array = npt.NDArray[np.float64]


class PosthocSystem(ReleasingSystem):
    """A fitted posthoc release; use ``PosthocEncoder`` or ``PosthocClassifier``.

    Attributes:
        query_: the fitted release.
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        classes_: labels seen in ``fit``, None without labels.
    """

    query_: PrivateQuery
    classes_: npt.NDArray[Any] | None

    def embed(self, X: npt.ArrayLike) -> Array:
        """Embeddings of X, clipped to the public domain, shape (n, d). Private: never to be sent."""
        return self._fitted().points(self._inputs(X))

    def exact(self, X: npt.ArrayLike) -> Array:
        """What would be released without noise, shape (n, outputs). Private: never to be sent."""
        return self._fitted().exact(self._inputs(X))

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
        settings["labels"] = self._stored_labels()
        settings["feature_names"] = kept_names(self)
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    @classmethod
    def load(cls, folder: str | Path, *, embedder: nn.Module | None = None) -> Self:
        """A system that is ready to release, from what ``save`` wrote.

        Args:
            folder: the bundle.
            embedder: an instance of your own module, if the bundle was fitted with one.

        Raises:
            InvalidInput: no such folder, a bundle of another system, or a module that is missing.
            CorruptBundle: the bundle is damaged.
        """
        bundle = Bundle.read(folder, system=cls.__name__)
        query = PrivateQuery.from_description(bundle.settings, bundle.arrays, embedder)
        total = query.requirement
        loaded = cls(
            epsilon=total.epsilon,
            delta=total.delta,
            radius=total.adjacency.radius,
            input_norm=total.adjacency.metric.value,
            embedder="identity" if embedder is None else embedder,
        )
        try:
            shape = tuple(int(size) for size in bundle.settings["input_shape"])
            labels = bundle.settings["labels"]
            names = stored_names(bundle.settings, int(np.prod(shape)))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptBundle(f"bundle: its settings do not fit together ({error})") from error
        loaded._become(query, shape, None if labels is None else np.asarray(labels), names)
        return loaded

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

    def _stored_labels(self) -> list[Any] | None:
        return None if self.classes_ is None else self.classes_.tolist()

    @override
    def _fitted(self) -> PrivateQuery:
        if not hasattr(self, "query_"):
            raise self._not_fitted()
        return self.query_
