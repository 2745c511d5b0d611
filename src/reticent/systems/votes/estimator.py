"""``VoteEstimator``: the checks and preparations of all estimators of this package, before any
charge.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from reticent.core.arrays import Array, Integers
from reticent.core.checks import one_each, one_of
from reticent.core.errors import InvalidInput, InvalidParameter, NotFittedYet
from reticent.core.guarantees import AddRemove, Replace, Unit, data_set_name
from reticent.core.rows import finite_or_zero
from reticent.core.settings import a_part, learned, with_settings
from reticent.neighbours.records import key_bytes
from reticent.systems.features import Features, ends_of, rows_to_fit
from reticent.systems.input_rows import input_rows
from reticent.systems.releasing_system import inputs_as_fitted
from reticent.systems.votes.outputs import Columns
from reticent.systems.votes.voters import ReadVoters, Voters, voters_of
from reticent.tables.frames import keep_names
from reticent.tables.schema import TabularSchema
from reticent.tables.shards import Shards
from reticent.training.public_features import features_of
from reticent.training.public_space import PublicSpace, RowMap, range_of

COUNTINGS = ("add-remove", "replace")


class Given(NamedTuple):
    """The arguments of ``fit``: private records with labels, public rows, and whose records are
    whose.
    """

    X: Any
    y: Any = None
    public_X: Any = None  # noqa: N815  (as fit has it)
    public_y: Any = None
    persons: Sequence[Any] | None = None


@dataclass(frozen=True, eq=False)
class PublicRows:
    """The public rows of one fit.

    Attributes:
        points: shape (n, m), whole numbers.
        codes: their labels as ``Voters`` has them, or None where they have no labels.
    """

    points: Array
    codes: Integers | None


@dataclass(frozen=True, eq=False)
class KnownStart:
    """A start from public models whose points and offsets are computed already. Rows are numbers of
    places in its table.

    Attributes:
        table: shape (rows, m), points and, after them, offsets of all rows, in whole steps.
        parts: places of offsets among a row's coordinates.
        held_out: shape (public rows, classes), offsets by models that did not see the row.
        records: public number, about that of the private records that rows stand in for.
        alone: whether the start is no public model.
    """

    table: Array
    parts: tuple[slice, ...]
    held_out: Array
    records: int
    alone: bool = False

    @property
    def space(self) -> KnownStart:
        """Return the start itself: its ``dimension`` is that of points without offsets."""
        return self

    @property
    def dimension(self) -> int:
        """The number of coordinates of a point, without offsets."""
        return int(self.table.shape[1] - self.parts[-1].stop)

    def points(self, rows: Array) -> Array:
        """Return points and offsets of rows, shape (n, m), by their numbers, shape (n, 1)."""
        return self.table[rows[:, 0].astype(np.int64)]


@with_settings
class VoteEstimator(BaseEstimator):
    """The arguments that all estimators of this package have, checked and turned into points."""

    epsilon: float
    delta: float
    features: Features | None = None
    counting: str = "add-remove"
    data_set: str | None = None
    schema_: TabularSchema | None = learned()
    n_features_in_: int = learned()
    input_shape_: tuple[int, ...] = learned()
    space_: PublicSpace = learned()
    map_: RowMap | None = learned()
    most_records_: int = learned()
    held_out_: Array = learned()
    _columns: Columns = learned()

    _start = cast("KnownStart | None", None)

    _space_kind: ClassVar[Any] = PublicSpace
    """What ``space_`` is, for bundles."""

    _shapes: ClassVar[tuple[str, ...]] = ("schema", "map", "range", "components", "whitening")
    """Settings of ``features`` that it uses."""

    _once: ClassVar[bool] = False
    """True if it looks at points once, so that they need not lie beside the rows."""

    _reach: ClassVar[float | None] = None
    """Length to which vectors are cut where none is asked for; None where all have one length."""

    @abstractmethod
    def _read(self, y: npt.ArrayLike | None, rows: int) -> tuple[Columns, Integers]:
        """Return the columns of labels, and the records' labels as whole numbers.

        Refuse what is no label.
        """

    def on_known_rows(self, known: KnownStart) -> Self:
        """Return a copy that is fitted on rows of ``known``, and makes no start of its own.

        It is for plans, in which one row has several roles.
        """
        made = copy(self)
        made._start = known
        return made

    def _keep_columns(self, columns: Columns) -> None:
        """Keep what is public of labels."""
        self._columns = columns

    def _prepare(self, given: Given) -> tuple[Voters | ReadVoters, PublicRows | None]:
        """Return records and public rows as points. Refuse what does not fit, before any charge.

        Raises:
            InvalidInput, InvalidParameter, UnknownName: nothing was kept, spent or drawn.
        """
        X, y, public_X, public_y, persons = given
        one_of(self.counting, COUNTINGS, name="counting")
        features = self._shaping.only(*self._shapes, of=self)
        shards = X if isinstance(X, Shards) else None
        if shards is not None and (y is not None or persons is not None):
            raise InvalidInput(
                "y, persons: expected None with shards, which hold their labels; a person's "
                "records "
                "have to be in one table"
            )
        if shards is not None and features.schema is not None:
            raise InvalidInput("features, schema: expected None with shards, which hold numbers")
        records, public_X, names = rows_to_fit(
            self, features, X if shards is None else shards.first, public_X
        )
        inputs, shape = input_rows(records, records=True)
        labels = y if shards is None else shards.all_labels()
        rows = len(inputs) if shards is None else len(shards)
        columns, codes = self._read(labels, rows)
        numbers = _persons(persons, len(inputs))
        row_map = _row_map(features.map, shape)
        public_inputs, public_codes = _public(
            public_X, public_y, columns, shape=shape, width=inputs.shape[1]
        )
        public_features = None if public_inputs is None else features_of(row_map, public_inputs)
        space: Any
        space, public_points = self._start, public_features
        if self._start is None:
            space, public_points = self._space(
                row_map, inputs.shape[1], public_features, public_codes, columns
            )
        elif public_features is not None:
            public_points = self._start.points(public_features)
            self.held_out_ = self._start.held_out
        points_of = _Points(space, row_map)
        voters: Voters | ReadVoters
        if shards is not None:
            shards.check()
            voters = ReadVoters(shards, codes, points_of)
        elif self._once and numbers is None and row_map is None:
            voters = ReadVoters(inputs, codes, points_of)
        else:
            voters = voters_of(points_of(inputs), codes, numbers)
        self._adjacency = self._protected(by_person=persons is not None)
        self.map_, self.space_ = row_map, space
        self._keep_columns(columns)
        self.input_shape_, self.n_features_in_ = shape, inputs.shape[1]
        self.by_person_ = persons is not None
        self.public_rows_ = 0 if public_points is None else len(public_points)
        self.public_labels_ = 0 if public_codes is None else len(public_codes)
        keep_names(self, names)
        public = None if public_points is None else PublicRows(public_points, public_codes)
        return voters, public

    @property
    def _shaping(self) -> Features:
        return a_part(self.features, Features, name="features")

    def _space(
        self,
        row_map: RowMap | None,
        columns: int,
        public_features: Array | None,
        public_codes: Integers | None,
        labels: Columns,
    ) -> tuple[PublicSpace, Array | None]:
        asked = self._shaping
        if public_features is None:
            if row_map is not None:
                raise InvalidInput(
                    "public_X: expected public rows to scale the feature map's features by, got "
                    "none"
                )
            ends = range_of(asked.range, columns) or ends_of(self.schema_)
            if ends is None:
                raise InvalidParameter(
                    "features, range: expected public (lower, upper) ends of every feature, or "
                    "public_X in fit; neither may come from the private records"
                )
            if asked.components is not None:
                raise InvalidParameter(
                    f"components={asked.components!r}: expected None without public rows, whose "
                    "principal components are meant"
                )
            return PublicSpace.of_range(*ends), None
        space = PublicSpace.around(
            public_features,
            components=asked.components,
            whitening=asked.whitening,
            lower_upper=None if row_map else range_of(asked.range, columns),
            alike=row_map is not None,
        )
        return space, space.points(public_features)

    def _protected(self, *, by_person: bool) -> AddRemove | Replace:
        unit = Unit.PERSON if by_person else Unit.RECORD
        kind = Replace if self.counting == "replace" else AddRemove
        return kind(1, unit, data_set_name(self.data_set))

    def _points(self, X: npt.ArrayLike) -> Array:
        """Return queries as points. Refuse what does not fit."""
        if not hasattr(self, "space_"):
            raise NotFittedYet(f"this {type(self).__name__} is not fitted yet; call fit")
        return self.space_.points(_features(self.map_, inputs_as_fitted(self, X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True, eq=False)
class _Points:
    """A map from rows to points, each from its own row alone."""

    space: PublicSpace
    row_map: RowMap | None

    def __call__(self, rows: Array) -> Array:
        return self.space.points(_features(self.row_map, rows))


def _features(row_map: RowMap | None, inputs: Array) -> Array:
    """Return features of each row, finite.

    They are zeros where a map gives none, which would fail after the charge.
    """
    return finite_or_zero(features_of(row_map, inputs))


def _row_map(choice: Any, shape: tuple[int, ...]) -> RowMap | None:
    if choice is None or isinstance(choice, RowMap):
        return choice
    if hasattr(choice, "state_dict") and callable(choice):
        from reticent.training.features import ModuleFeatures, Origin  # torch, so late

        found: RowMap = ModuleFeatures(choice, shape, Origin.PUBLIC)
        return found
    raise InvalidParameter(
        "features, map: expected None, a feature map or a torch module, got "
        f"{type(choice).__name__}"
    )


def _public(
    public_X: npt.ArrayLike | None,
    public_y: npt.ArrayLike | None,
    columns: Columns,
    *,
    shape: tuple[int, ...],
    width: int,
) -> tuple[Array | None, Integers | None]:
    if public_X is None:
        if public_y is not None:
            raise InvalidInput("public_y: expected public_X beside it, got none")
        return None, None
    rows, public_shape = input_rows(public_X)
    if rows.shape[1] != width or (
        len(shape) > 1 and len(public_shape) > 1 and shape != public_shape
    ):
        raise InvalidInput(f"public_X: expected rows of shape {shape}, got {public_shape}")
    if public_y is None:
        return rows, None
    try:
        codes = columns.codes(public_y, len(rows))
    except InvalidInput as error:
        raise InvalidInput(f"public_{error}") from error
    return rows, codes


def _persons(persons: Sequence[Any] | None, records: int) -> Integers | None:
    """Return a number for each record, equal for those of one person, or None without persons.

    Raises:
        InvalidInput: another number of persons, or one that is no text, bytes or integer.
    """
    if persons is None:
        return None
    numbers: dict[bytes, int] = {}
    names = [key_bytes(person) for person in one_each(persons, records, name="persons")]
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
