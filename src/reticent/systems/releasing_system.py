"""What certified and posthoc systems share once they are fitted: answering, saving, and checking
what they are asked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from reticent.bundles.booking import Books, Query, Scopes, answer_and_book
from reticent.bundles.bundle import Bundle
from reticent.core.checks import count
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee
from reticent.core.releases import Release
from reticent.noise import Sampler, SeededSampler, release_sampler
from reticent.systems.embedding import check_pictures
from reticent.systems.streaming import ReleasesStreams
from reticent.tables.feature_names import keep_names, rows_as_fitted
from reticent.tables.frames import framed

Array = npt.NDArray[np.float64]


class ReleasingSystem(ReleasesStreams, BaseEstimator):
    """A system that answers each row of its input by a released value.

    Attributes:
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.
    """

    input_shape_: tuple[int, ...]
    n_features_in_: int

    def release(
        self,
        X: npt.ArrayLike,
        *,
        ledger: Books | None = None,
        scope: Scopes | None = None,
        sampler: str = "exact",
        n_jobs: int | None = None,
    ) -> Release:
        """One answer for each row of X, charged before it is computed; randomness from the
        operating system.

        Args:
            X: shape (n, n_features_in_), or with the input shape seen in ``fit``. ``guarantee``
                says what is protected: X, or the records seen in ``fit``.
            ledger, scope: where the cost is booked, a ``Ledger`` or its ``Leases``; without them
                the receipt says that nothing was.
                A sequence charges each row to a scope of its own, all or none; only where X is what
                is protected.
            sampler: where noise comes from: "exact", our own samplers, or "opendp", those of OpenDP
                (an extra; docs/noise.md).
            n_jobs: workers that answer, as of ``joblib.Parallel``; None for one, or for those of
                ``joblib.parallel_config``, a Dask cluster among them (docs/size.md). All rows are
                charged before any worker starts.

        Returns:
            ``values`` (vectors with NaN, or labels with -1 or None, where withheld), ``withheld``
            and ``receipt``.

        Raises:
            NotFittedYet, InvalidInput, BudgetExceeded, LedgerUnavailable: nothing is answered.
        """
        return self._answer(X, release_sampler(sampler), ledger, scope, n_jobs)

    def simulate(self, X: npt.ArrayLike, *, seed: int) -> Release:
        """As ``release`` with randomness from a seed: for experiments, *not private*, and the
        receipt says so.
        """
        return self._answer(X, SeededSampler(count(seed, name="seed", minimum=0)), None, None)

    def checked_inputs(self, X: npt.ArrayLike) -> Any:
        """X as ``query_`` takes it: checked, and in the units of the fitted system. Private.

        Raises:
            NotFittedYet, InvalidInput: as ``release`` does.
        """
        return self._inputs(X)

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one answer."""
        return self._fitted().mechanism.guarantee

    @property
    @abstractmethod
    def bundle_identity_(self) -> str:
        """SHA-256 of the bundle; goes into every receipt."""

    @abstractmethod
    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the bundle, whole or not at all; see ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

    @abstractmethod
    def _fitted(self) -> Query[Array]:
        """The fitted query, or ``NotFittedYet``."""

    def _not_fitted(self) -> NotFittedYet:
        name = type(self).__name__
        return NotFittedYet(f"this {name} is not fitted yet; call fit, or {name}.load on a bundle")

    def _takes(self, shape: tuple[int, ...], names: Iterable[str] | None) -> None:
        keep_names(self, names)
        self.input_shape_ = shape
        self.n_features_in_ = int(np.prod(shape))

    def _answer(
        self,
        X: npt.ArrayLike,
        sampler: Sampler,
        ledger: Books | None,
        scope: Scopes | None,
        n_jobs: int | None = None,
    ) -> Release:
        query = self._fitted()
        inputs = self._inputs(X)
        release = answer_and_book(
            query,
            inputs,
            sampler=sampler,
            bundle=self.bundle_identity_,
            ledger=ledger,
            scope=scope,
            n_jobs=n_jobs,
        )
        return framed(release, X, self._released_columns())

    def _released_columns(self) -> Iterable[str]:
        """Names of what is released, for a data frame."""
        return ("label",)

    def _inputs(self, X: npt.ArrayLike) -> Array:
        self._fitted()
        rows = rows_as_fitted(self, X)
        return inputs_as_fitted(self, *check_pictures(rows, name="X"))


class TakesInputs(Protocol):
    """A system that knows what it was fitted on."""

    input_shape_: tuple[int, ...]
    n_features_in_: int


def inputs_as_fitted(system: TakesInputs, inputs: Array, shape: tuple[int, ...]) -> Array:
    """``inputs``, if they are such as ``system`` was fitted on.

    Args:
        system: fitted.
        inputs: shape (n, features).
        shape: of one input before it was flattened.

    Raises:
        InvalidInput: another number of features, or another shape where both have one.
    """
    if inputs.shape[1] != system.n_features_in_:
        name, expected = type(system).__name__, system.n_features_in_
        raise InvalidInput(
            f"X has {inputs.shape[1]} features, but {name} is expecting {expected} features as "
            "input"
        )
    if len(shape) > 1 and len(system.input_shape_) > 1 and shape != system.input_shape_:
        raise InvalidInput(f"X: expected inputs of shape {system.input_shape_}, got {shape}")
    return inputs


def with_class_names(release: Release, classes: npt.NDArray[Any]) -> Release:
    """A release of positions in ``classes`` as one of the classes themselves.

    Withheld answers stay -1 where the classes are 0, 1, ..., and are None otherwise.
    """
    return replace(release, values=class_names(release.values, classes, withheld=release.withheld))


def class_names(
    places: npt.NDArray[np.int64], classes: npt.NDArray[Any], *, withheld: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Positions in ``classes`` as the classes themselves; see ``with_class_names``."""
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        return places
    names = classes[np.maximum(places, 0)].astype(object)
    names[withheld] = None
    return np.asarray(names)
