"""``Features``: what the columns of a record are, and how they become numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array
from reticent.core.checks import count
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.core.settings import Group
from reticent.tables.drafting import schema_for
from reticent.tables.frames import Names, named_rows, rows_named_alike
from reticent.tables.schema import TabularSchema
from reticent.training.public_space import reach_of, whitening_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Features(Group):
    """What the columns of a record are, and how a row becomes a vector, by public things alone.

    Every estimator that protects records takes one. An estimator refuses a setting that it does
    not use.

    Args:
        schema: public description of the columns of a table, whose rows are encoded by it. None
            drafts one from public rows that are a data frame with words, dates or missing values,
            and takes numbers as they are.
        map: from inputs to features, the same for everybody: None for the inputs themselves,
            ``PatchFeatures``, ``PublicPCA``, any other ``FeatureMap``, or your own torch module
            that was trained on public data only. The estimators of neighbours also take "hog" and
            "upright hog" (pictures, the second for handwriting), certified ones a torch module
            alone.
        range: public (lower, upper) ends of the features, numbers or one for each; for neighbours
            also a ``PointGrid``. None where the map, the schema or public rows in ``fit`` tell.
        components: principal components of the public rows that are kept; None for all.
        whitening: exponent w in [0, 1]: a component is divided by its standard deviation over
            public rows to the power w.
        reach: of linear regression: the length to which vectors, with their constant column, are
            cut, in root mean square lengths of public rows; from 0.1 to 16, None for 2. Elsewhere
            all vectors have one length, and it is None.

    Raises:
        InvalidParameter: a value out of its range.

    Example:
        >>> Features(range=(0, 16), whitening=0.0).get_params()["range"]
        (0, 16)

    References:
        - Coates, Ng and Lee (2011), "An analysis of single-layer networks in unsupervised feature
          learning", International Conference on Artificial Intelligence and Statistics (AISTATS),
          PMLR 15, the triangle-like encoding and the pooling.
        - docs/votes.md, section 2, the sensitivity of vectors of one length.

    See Also:
        reticent.NoisyGradientClassifier: an estimator that takes it.
        reticent.tables.TabularSchema: descriptions of columns.
        reticent.training.public_features: feature maps.
    """

    schema: TabularSchema | None = None
    map: Any = None
    range: Any = None
    components: int | None = None
    whitening: float = 0.5
    reach: float | None = None

    def __post_init__(self) -> None:
        if not (self.schema is None or isinstance(self.schema, TabularSchema)):
            raise InvalidParameter(
                f"schema: expected a TabularSchema or None, got {type(self.schema).__name__}"
            )
        if self.components is not None:
            count(self.components, name="components")
        whitening_of(self.whitening)
        if self.reach is not None:
            reach_of(self.reach)

    def only(self, *used: str, of: Any) -> Self:
        """Return this part. Refuse what an estimator does not use.

        Args:
            used: names of the settings that it uses.
            of: the estimator.

        Raises:
            InvalidParameter: another setting was given.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            given = value is not None if field.default is None else value != field.default
            if given and field.name not in used:
                raise InvalidParameter(
                    f"features, {field.name}: expected {field.default}; a {type(of).__name__} uses "
                    f"{', '.join(used)}"
                )
        return self


def rows_to_fit(
    estimator: Any, features: Features, X: Any, public_X: Any = None
) -> tuple[npt.NDArray[Any], Any, Names | None]:
    """Return private records and public rows as numbers, and names of columns.

    Sets ``schema_``, which later rows are encoded by (``rows_as_fitted``) and a bundle holds; None
    where all columns are numbers. Private records have no part in it.

    Args:
        estimator: about to be fitted.
        features: its part.
        X: private records. There may be none of them.
        public_X: public rows, or None.

    Raises:
        InvalidInput: rows that do not fit the schema, or no schema for words.
    """
    schema = schema_for(features.schema, public_X)
    estimator.schema_ = schema
    if schema is None:
        records, names = named_rows(X)
        if names is not None and getattr(records, "dtype", np.dtype(float)).kind == "O":
            raise InvalidInput(
                "X: expected numbers, got columns of words, dates or missing values; pass "
                "features=Features(schema=...), or public_X as a data frame, from which a schema "
                "is drafted"
            )
        alike = (
            None
            if public_X is None
            else rows_named_alike(public_X, names, of="the private records", name="public_X")
        )
        return records, alike, names
    public = None if public_X is None else encoded(schema, public_X, name="public_X")
    return encoded(schema, X, name="X"), public, None


def numbers_of(estimator: Any, X: Any) -> Any:
    """Return private records as numbers once ``rows_to_fit`` has settled the schema; they are
    themselves where there is none.
    """
    return X if estimator.schema_ is None else encoded(estimator.schema_, X, name="X")


def encoded(schema: TabularSchema, X: Any, *, name: str) -> Array:
    """Return encoded rows, shape (n, dimension). There may be none of them.

    Args:
        schema: of the columns.
        X: a data frame, or an array by position.
        name: what the caller calls it.
    """
    if len(X) == 0:
        return np.zeros((0, schema.dimension))
    return schema.encode(X, name=name)


def ends_of(schema: TabularSchema | None) -> tuple[Array, Array] | None:
    """Return the public ends of the columns of encoded rows; None without a schema."""
    return None if schema is None else (schema.domain.lower, schema.domain.upper)
