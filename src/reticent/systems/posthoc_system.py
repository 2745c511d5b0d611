"""What the two front doors of posthoc release share once they are fitted: answering, saving and explaining."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from torch import nn

from reticent.accounting.ledger import Ledger
from reticent.accounting.scopes import Scope
from reticent.core.errors import CorruptBundle, InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee, GuaranteeCard
from reticent.core.releases import Release
from reticent.noise import Sampler, SecureSampler, SeededSampler
from reticent.systems.booking import answer_and_book
from reticent.systems.bundle import Bundle
from reticent.systems.embedding import check_pictures
from reticent.systems.posthoc_cards import posthoc_card
from reticent.systems.private_query import PrivateQuery

Array = npt.NDArray[np.float64]


class PosthocSystem(BaseEstimator):
    """A fitted posthoc release; use ``PosthocEncoder`` or ``PosthocClassifier``.

    Attributes:
        query_: the fitted release.
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        classes_: labels seen in ``fit``, None without labels.
        bundle_identity_: SHA-256 of the bundle; goes into every receipt.
    """

    query_: PrivateQuery
    input_shape_: tuple[int, ...]
    n_features_in_: int
    classes_: npt.NDArray[Any] | None
    bundle_identity_: str

    def release(self, X: npt.ArrayLike, *, ledger: Ledger | None = None, scope: Scope | None = None) -> Release:
        """One answer for each row of X, charged before it is computed; noise from the operating system.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``.
            ledger, scope: where the cost is booked; without them the receipt says that nothing was.

        Returns:
            ``values`` (vectors with NaN, or labels with -1, where withheld), ``withheld`` and ``receipt``.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        return self._answer(X, SecureSampler(), ledger, scope)

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """As ``release`` with noise from a seed: for experiments, *not private*, and the receipt says so."""
        return self._answer(X, SeededSampler(seed), None, None)

    def embed(self, X: npt.ArrayLike) -> Array:
        """Embeddings of X, clipped to the public domain, shape (n, d). Private: never to be sent."""
        return self._fitted().points(self._inputs(X))

    def exact(self, X: npt.ArrayLike) -> Array:
        """What would be released without noise, shape (n, outputs). Private: never to be sent."""
        return self._fitted().exact(self._inputs(X))

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one answer."""
        return self._fitted().mechanism.guarantee

    def card(self) -> GuaranteeCard:
        """The guarantee in plain words."""
        return posthoc_card(self._fitted())

    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written."""
        settings, arrays = self._fitted().describe()
        settings["input_shape"] = list(self.input_shape_)
        settings["labels"] = self._stored_labels()
        return Bundle(type(self).__name__, settings, arrays, self.card().to_markdown())

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the bundle, whole or not at all; see ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

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
        bundle = Bundle.read(folder)
        if bundle.system != cls.__name__:
            raise InvalidInput(f"folder={str(folder)!r}: holds a {bundle.system}, expected a {cls.__name__}")
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
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptBundle(f"bundle: its settings do not fit together ({error})") from error
        loaded._become(query, shape, None if labels is None else np.asarray(labels))
        return loaded

    def _become(self, query: PrivateQuery, shape: tuple[int, ...], classes: npt.NDArray[Any] | None) -> None:
        self.query_ = query
        self.input_shape_ = shape
        self.n_features_in_ = int(np.prod(shape))
        self.classes_ = classes
        self.bundle_identity_ = self.bundle().identity

    def _stored_labels(self) -> list[Any] | None:
        return None if self.classes_ is None else self.classes_.tolist()

    def _answer(self, X: npt.ArrayLike, sampler: Sampler, ledger: Ledger | None, scope: Scope | None) -> Release:
        query = self._fitted()
        inputs = self._inputs(X)
        return answer_and_book(query, inputs, sampler=sampler, bundle=self.bundle_identity_, ledger=ledger, scope=scope)

    def _fitted(self) -> PrivateQuery:
        if not hasattr(self, "query_"):
            name = type(self).__name__
            raise NotFittedYet(f"this {name} is not fitted yet; call fit, or {name}.load on a bundle")
        return self.query_

    def _inputs(self, X: npt.ArrayLike) -> Array:
        self._fitted()
        inputs, shape = check_pictures(X, name="X")
        if inputs.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"X has {inputs.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        if len(shape) > 1 and len(self.input_shape_) > 1 and shape != self.input_shape_:
            raise InvalidInput(f"X: expected inputs of shape {self.input_shape_}, got {shape}")
        return inputs
