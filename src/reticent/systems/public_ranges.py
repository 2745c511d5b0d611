"""``PublicRanges``: features brought into one range by public numbers, in place of a scaler that
is fitted on private records.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from reticent.core.arrays import Array
from reticent.core.checks import finite_array, real, shown
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.regions import Box
from reticent.systems.input_rows import input_rows
from reticent.tables.frames import keep_names, names_of, plain_rows, rows_as_fitted
from reticent.tables.schema import TabularSchema


class PublicRanges(TransformerMixin, BaseEstimator):
    """Scale each column from its public range to a common one. ``fit`` learns nothing from the
    rows.

    ``StandardScaler``, ``MinMaxScaler`` and ``PCA`` keep means, ends and directions of the records
    that they are fitted on. One record moves them, and through them the features of *all* records.
    Whoever puts one in front of an estimator that protects records has no guarantee. Here the
    ranges are the caller's: from a schema, from the format of the data (pixels are 0 to 255), or
    from rows that are public.

    Guarantee:
        None of its own, and it voids none: a row's output is a function of that row and of the
        parameters alone, to the last bit. Values beyond a range count as its end, so every finite
        row has an output in the box of ``to``.

    Args:
        ranges: public (lower, upper) ends, each a number for all columns or one for each column, or
            a ``TabularSchema``, whose encoding is scaled.
        to: range of the output.

    Attributes:
        n_features_in_: number of columns seen in ``fit``.
        feature_names_in_: their names, where ``fit`` saw a data frame.

    Example:
        >>> PublicRanges((0, 255)).fit_transform([[0, 51], [255, 300]]).tolist()
        [[-1.0, -0.6], [1.0, 1.0]]
        >>> from sklearn.pipeline import make_pipeline
        >>> from reticent import CertifiedClassifier
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.uniform(0, 100, size=(200, 2)), np.arange(200) % 2
        >>> classifier = CertifiedClassifier(epsilon=1.0, classes=[0, 1], k_max=5)
        >>> model = make_pipeline(PublicRanges((0, 100)), classifier).fit(X, y)
        >>> len(model[-1].release(model[:-1].transform(X[:3])))
        3

    References:
        - Dwork and Roth (2014), "The algorithmic foundations of differential privacy",
          doi:10.1561/0400000042, proposition 2.1 (post-processing).

    See Also:
        reticent.tables.TabularSchema: public descriptions of tables with words and missing values.
        reticent.CertifiedClassifier: an estimator that needs bounded inputs.
    """

    def __init__(
        self,
        ranges: TabularSchema | tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        to: tuple[float, float] = (-1.0, 1.0),
    ) -> None:
        self.ranges = ranges
        self.to = to

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Check that X has as many columns as there are ranges. No value of it is kept.

        Args:
            X: shape (n, columns).
            y: not used.

        Raises:
            InvalidInput, InvalidParameter: ranges that are none, or rows that do not fit them.
        """
        names = names_of(X)
        self._to()
        rows = self._rows(X)
        if names is not None and isinstance(self.ranges, TabularSchema):
            names = np.array(self.ranges.column_names, dtype=object)
        self._box(rows.shape[1])
        self.n_features_in_ = int(rows.shape[1])
        keep_names(self, names)
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """X in the range ``to``, shape (n, columns), or (n, encoded coordinates) with a schema.

        Args:
            X: shape (n, columns), finite.

        Raises:
            NotFittedYet, InvalidInput: nothing is transformed.
        """
        if not hasattr(self, "n_features_in_"):
            raise NotFittedYet(
                "this PublicRanges is not fitted yet; call fit, which only looks at the number "
                "of columns"
            )
        rows = self._rows(X if isinstance(self.ranges, TabularSchema) else rows_as_fitted(self, X))
        if rows.shape[1] != self.n_features_in_:
            raise InvalidInput(
                f"X has {rows.shape[1]} features, but PublicRanges is expecting "
                f"{self.n_features_in_} features as input"
            )
        values = self.ranges.encode(rows) if isinstance(self.ranges, TabularSchema) else rows
        box = self._box(rows.shape[1])
        low, high = self._to()
        share = (box.clip(values) - box.lower) / (box.upper - box.lower)
        return np.asarray(np.clip(low + share * (high - low), low, high))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the outputs: of the columns, or of a schema's encoded coordinates."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedYet(
                "this PublicRanges is not fitted yet; call fit, which only looks at the number "
                "of columns"
            )
        if isinstance(self.ranges, TabularSchema):
            groups = self.ranges.groups
            return np.array(
                [
                    f"{name}_{place}"
                    for name, part, _ in groups
                    for place in range(part.stop - part.start)
                ],
                dtype=object,
            )
        known = getattr(self, "feature_names_in_", None)
        given = known if input_features is None else np.asarray(input_features, dtype=object)
        if given is None:
            given = np.array([f"x{index}" for index in range(self.n_features_in_)], dtype=object)
        if len(given) != self.n_features_in_:
            raise InvalidInput(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_})"
            )
        if known is not None and list(given) != list(known):
            raise InvalidInput("input_features is not equal to feature_names_in_")
        return np.asarray(given)

    def _rows(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        if isinstance(self.ranges, TabularSchema):
            return self.ranges.rows(X, name="X")
        rows, _ = input_rows(plain_rows(X))
        return rows

    def _to(self) -> tuple[float, float]:
        if not isinstance(self.to, (tuple, list)) or len(self.to) != 2:
            raise InvalidParameter(f"to={shown(self.to)}: expected a pair (lower, upper)")
        low, high = (real(end, name="to") for end in self.to)
        if not (np.isfinite([low, high]).all() and low < high and np.isfinite(high - low)):
            raise InvalidParameter(f"to={shown(self.to)}: expected finite lower < upper")
        return low, high

    def _box(self, columns: int) -> Box:
        if isinstance(self.ranges, TabularSchema):
            return self.ranges.domain
        if not isinstance(self.ranges, (tuple, list)) or len(self.ranges) != 2:
            raise InvalidParameter(
                "ranges: expected a pair (lower, upper) of public ends or a TabularSchema, "
                f"got {type(self.ranges).__name__}"
            )
        try:
            lower, upper = (
                np.broadcast_to(finite_array(end, name="ranges"), (columns,)) for end in self.ranges
            )
        except ValueError as error:
            raise InvalidParameter(
                f"ranges: expected finite ends, numbers or one for each of {columns} columns"
            ) from error
        with np.errstate(over="ignore"):
            spans = upper - lower
        if not bool(((spans >= 2.0**-1022) & np.isfinite(spans)).all()):
            raise InvalidParameter(
                "ranges: expected lower < upper in every column, less than 1.8e308 apart"
            )
        return Box(lower, upper)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags
