"""The common part of systems that answer each row by itself: answers, bundles, and checks of what
they are asked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.errors import InvalidInput, NotFittedYet
from reticent.core.guarantees import Guarantee
from reticent.mechanisms.mechanism import Mechanism
from reticent.noise import Sampler
from reticent.release.bundle import Bundle
from reticent.release.fits import DataUse
from reticent.release.paying import Drawn, Price
from reticent.release.system import Releasing, answers_in_parallel
from reticent.systems.input_rows import input_rows
from reticent.tables.frames import keep_names, rows_as_fitted


class Query(Protocol):
    """A fitted query that answers each row by itself."""

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that answers."""

    @property
    def certificate(self) -> str:
        """Kind of the certificate that its guarantee rests on, or "none"."""

    def answer(
        self, inputs: Any, *, sampler: Sampler
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """One answer for each row of checked ``inputs``, and which of them are withheld."""


class ReleasingSystem(Releasing, BaseEstimator):
    """A system whose fitted query answers each row by itself, at a cost a row.

    Attributes:
        query_: the fitted query.
        input_shape_: shape of one input.
        n_features_in_: number of input features.
        feature_names_in_: names of the columns, where ``fit`` saw a data frame.
    """

    query_: Any
    input_shape_: tuple[int, ...]
    n_features_in_: int

    _identity: str
    _data_use: DataUse | None = None
    """What ``fit`` noted of the records that it protects, where it protects any."""

    @abstractmethod
    def bundle(self) -> Bundle:
        """Return everything that ``release`` needs, ready to be written."""

    @abstractmethod
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        """Return what the query answered, in the user's own labels, with names of columns."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write the bundle, whole or not at all, by ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

    @property
    def bundle_identity_(self) -> str:
        """The SHA-256 of the bundle, which goes into every receipt."""
        self._fitted()
        return self._identity

    @property
    def guarantee(self) -> Guarantee:
        """The cost of one answer."""
        guarantee: Guarantee = self._fitted().mechanism.guarantee
        return guarantee

    @override
    def checked(self, X: npt.ArrayLike) -> Any:
        """Return X as ``query_`` takes it: in the units of the fitted system. Private.

        Raises:
            NotFittedYet, InvalidInput: as ``release``.
        """
        self._fitted()
        return inputs_as_fitted(self, X)

    @override
    def price(self, inputs: Any) -> Price:
        """Return what answers for checked inputs cost: that of one answer, for each row."""
        query: Query = self._fitted()
        return Price(
            query.mechanism.event,
            len(inputs),
            query.mechanism.name,
            bundle=self.bundle_identity_,
            certificate=query.certificate,
            use=self._data_use,
        )

    @override
    def draw(self, inputs: Any, sampler: Sampler) -> Drawn:
        """Return one answer for each of the checked inputs, which must be paid for."""
        return self._named(*answers_in_parallel(self._fitted(), inputs, sampler=sampler))

    def _fitted(self) -> Any:
        """The fitted query, or ``NotFittedYet``."""
        if not hasattr(self, "query_"):
            raise self._not_fitted()
        return self.query_

    def _not_fitted(self) -> NotFittedYet:
        name = type(self).__name__
        return NotFittedYet(f"this {name} is not fitted yet; call fit, or {name}.load on a bundle")

    def _takes(self, shape: tuple[int, ...], names: Iterable[str] | None) -> None:
        keep_names(self, names)
        self.input_shape_ = shape
        self.n_features_in_ = int(np.prod(shape))


class ReleasesVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ReleasingSystem):
    """A system that answers each row by a vector, whose entries are columns of a data frame."""

    def transform(self, X: npt.ArrayLike) -> Array:
        """Return the values of ``release(X)``, NaN where withheld.

        Every call has fresh noise, and a cost.
        """
        return np.asarray(self.release(X).values)

    @property
    def _n_features_out(self) -> int:
        outputs: int = self._fitted().outputs
        return outputs

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        return Drawn(values, withheld, tuple(self.get_feature_names_out()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


class TakesInputs(Protocol):
    """A system that knows what it was fitted on."""

    input_shape_: tuple[int, ...]
    n_features_in_: int


def inputs_as_fitted(system: TakesInputs, X: npt.ArrayLike, *, records: bool = False) -> Array:
    """Return X as rows of numbers, shape (n, features), if it is such as ``system`` was fitted on.

    Args:
        system: the fitted system.
        X: inputs of the shape or with the columns of ``fit``, or flat.
        records: whether these are private records, of which there may be none.

    Raises:
        InvalidInput: another number of features, other columns, or another shape where both have
            one.
    """
    inputs, shape = input_rows(rows_as_fitted(system, X), records=records)
    if inputs.shape[1] != system.n_features_in_:
        name, expected = type(system).__name__, system.n_features_in_
        raise InvalidInput(
            f"X has {inputs.shape[1]} features, but {name} is expecting {expected} features as "
            "input"
        )
    if len(shape) > 1 and len(system.input_shape_) > 1 and shape != system.input_shape_:
        raise InvalidInput(f"X: expected inputs of shape {system.input_shape_}, got {shape}")
    return inputs


def class_names(
    places: npt.NDArray[np.int64], classes: npt.NDArray[Any], *, withheld: npt.NDArray[np.bool_]
) -> npt.NDArray[Any]:
    """Return the classes at ``places``.

    Withheld answers stay -1 where the classes are 0, 1, ..., and are None otherwise.
    """
    if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
        return places
    names = classes[np.maximum(places, 0)].astype(object)
    names[withheld] = None
    return np.asarray(names)
