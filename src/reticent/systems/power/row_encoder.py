"""What estimators share that release rows of a table: the schema, checks, saving."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import Guarantee
from reticent.release.bundle import Bundle
from reticent.release.paying import Drawn
from reticent.systems.releasing_system import RowWise
from reticent.tables.frames import Names, names_of, rows_as_fitted
from reticent.tables.schema import TabularSchema, as_table


class RowEncoder(RowWise, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator whose fitted query answers encoded rows of a public schema by vectors."""

    schema: Any
    query_: Any
    n_features_in_: int

    @abstractmethod
    def bundle(self) -> Bundle:
        """Everything that ``release`` needs, ready to be written."""

    def transform(self, X: npt.ArrayLike) -> Array:
        """The values of ``release(X)``: fresh noise, and a cost, at every call; NaN where
        withheld.
        """
        return np.asarray(self.release(X).values)

    @property
    @override
    def bundle_identity_(self) -> str:
        """SHA-256 of the bundle."""
        self._fitted()
        return self._identity

    @property
    def guarantee(self) -> Guarantee:
        """Cost of one answer."""
        guarantee: Guarantee = self._fitted().mechanism.guarantee
        return guarantee

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Writes the bundle, whole or not at all; see ``Bundle.write``."""
        return self.bundle().write(folder, overwrite=overwrite)

    def _become(self) -> None:
        query = self._fitted()
        query.rehearse()
        self.n_features_in_ = query.columns
        self._identity = self.bundle().identity

    def _schema(self, table: npt.NDArray[Any], names: Names | None) -> TabularSchema:
        if isinstance(self.schema, TabularSchema):
            return self.schema
        if not (isinstance(self.schema, (tuple, list)) and len(self.schema) == 2):
            raise InvalidParameter(
                "schema: expected a TabularSchema or a pair (lower, upper), got "
                f"{type(self.schema).__name__}"
            )
        lower, upper = self.schema
        return TabularSchema.numbers(table.shape[1], lower, upper, names=names)

    @override
    def _named(self, values: npt.NDArray[Any], withheld: npt.NDArray[np.bool_]) -> Drawn:
        return Drawn(values, withheld, tuple(self.get_feature_names_out()))

    @property
    def _n_features_out(self) -> int:
        outputs: int = self._fitted().outputs
        return outputs

    @override
    def _fitted(self) -> Any:
        if not hasattr(self, "query_"):
            name = type(self).__name__
            raise NotFittedYet(
                f"this {name} is not fitted yet; call fit, or {name}.load on a bundle"
            )
        return self.query_

    @override
    def checked(self, X: npt.ArrayLike) -> Any:
        """Return X as ``query_`` takes it: encoded by the schema. Private.

        Raises:
            NotFittedYet, InvalidInput: as ``release``.
        """
        return self._checked_table(X, self._fitted().schema)

    def _checked_table(self, X: npt.ArrayLike, schema: TabularSchema) -> CodedRows:
        query = self._fitted()
        if isinstance(self.schema, TabularSchema) and names_of(X) is not None:
            read: CodedRows = query.encode(X)
            return read
        table = as_table(rows_as_fitted(self, X), name="X")
        if table.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        coded: CodedRows = query.encode(table)
        return coded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.non_deterministic = True
        return tags
