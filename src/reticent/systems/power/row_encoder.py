"""The common part of estimators that release rows of a table: the schema and its checks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.coded_rows import CodedRows
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.systems.releasing_system import ReleasesVectors
from reticent.tables.frames import Names, keep_names, names_of, plain_rows, rows_as_fitted
from reticent.tables.schema import TabularSchema, as_table


class RowEncoder(ReleasesVectors):
    """An estimator whose fitted query answers encoded rows of a public schema by vectors."""

    schema: Any

    def exact(self, X: npt.ArrayLike) -> Array:
        """Return the mean of what would be released about each row, shape (n, outputs).

        Private: never to be sent.
        """
        return np.asarray(self._fitted().exact(self.checked(X)))

    @override
    def checked(self, X: npt.ArrayLike) -> CodedRows:
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

    def _become(self, query: Any, names: Any) -> None:
        query.rehearse()
        self.query_ = query
        self.n_features_in_ = query.columns
        keep_names(self, names)
        self._identity = self.bundle().identity

    def _read(self, X: Any) -> tuple[TabularSchema, npt.NDArray[Any], Names | None]:
        """Return the schema, rows of a table to fit on, and names of their columns."""
        names = names_of(X)
        if isinstance(self.schema, TabularSchema):
            columns = np.array(self.schema.column_names, dtype=object)
            rows = self.schema.rows(X, name="X")
            return self.schema, rows, None if names is None else columns
        table = as_table(plain_rows(X), name="X")
        if not (isinstance(self.schema, (tuple, list)) and len(self.schema) == 2):
            raise InvalidParameter(
                "schema: expected a TabularSchema or a pair (lower, upper), got "
                f"{type(self.schema).__name__}"
            )
        lower, upper = self.schema
        schema = TabularSchema.numbers(table.shape[1], lower, upper, names=names)
        return schema, table, names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
