"""Bodies that are Arrow streams, read without a library for them.

Messages of Arrow are flatbuffers, where many places may name one text: a library that copies each
of them makes gigabytes of a megabyte. Here every place is checked before it is read, no byte stands
for two columns, and nothing is allocated beyond the cells that a request may have.

References:
    - Apache Arrow, "Arrow Columnar Format" 1.5, "Serialization and Interprocess Communication", and
      its files Message.fbs and Schema.fbs.
    - Google, "FlatBuffers internals" (tables, vectors and their places).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrow_bodies import MEMBERS, unnamed
from reticent.core.errors import InvalidInput, ReticentError
from reticent.core.scopes import LONGEST_NAME
from reticent.service.catalogue import ServedBundle
from reticent.service.requests import About, Answers, parsed
from reticent.service.structure import Structure
from reticent.tables.frames import kept_names

_SCHEMA, _BATCH = 1, 3
_INTEGER, _FLOAT, _TEXT, _BOOL, _LARGE_TEXT = 2, 3, 5, 6, 20
_BITS = "bits"
_OFFSETS = {_TEXT: "<i4", _LARGE_TEXT: "<i8"}
_END = struct.pack("<iI", -1, 0)
_FIELDS = 5
"""Fields of a table at most that anything here reads."""
_OFFSETS_OF = [struct.Struct(f"<{many}H") for many in range(_FIELDS + 1)]

_MOST_KEPT = 2**14
"""Bytes of a schema's message whose columns are kept for the next request."""

_MOST_METADATA = 100
"""Entries of a schema's metadata."""


def arrow_rows(content: bytes, *, bundle: ServedBundle, most: int) -> Answers:
    """Return the request that a body of one Arrow stream makes.

    Args:
        content: a schema and one batch. Columns hold numbers, truth values (as 0 and 1) or texts.
        bundle: the bundle that is asked.
        most: rows at most.

    Returns:
        The request as JSON would make it. ``rows`` is an array, shape (n, columns), where the
        bundle takes numbers and all cells are numbers.

    Raises:
        InvalidInput: the body cannot be used. The message shows no cell.
    """
    try:
        return _read(content, bundle, most)
    except ReticentError:
        raise
    except (ValueError, struct.error):  # a place that is not there, or a text that is none
        raise InvalidInput(
            "body: expected one Arrow stream of a schema and one batch, little-endian, without "
            "dictionaries, extensions and compression"
        ) from None


def _read(content: bytes, bundle: ServedBundle, most: int) -> Answers:
    width = int(bundle.system.n_features_in_)
    schema, _, place = _message(content, 0, _SCHEMA)
    found = schema.vector(1, 4)[1]
    if found != width:
        raise InvalidInput(f"rows: expected {width} cells in each, got {found}")
    _need(not schema.number(0, "<h") and b"ARROW:extension" not in schema.data)
    # A client repeats its columns. What it says beside them may be about persons, and is not kept.
    kept = len(schema.data) <= _MOST_KEPT and not schema.vector(2, 4)[1]
    forms, names = map(list, (_kept_fields if kept else _fields)(schema.data))
    about = _about(schema, most)
    batch, body, place = _message(content, place, _BATCH)
    _need(content[place:] in (b"", _END) and batch.table(3) is None)
    rows = batch.number(0, "<q")
    if not 1 <= rows <= most:
        raise InvalidInput(f"rows: expected 1 to {most}, got {rows}")
    columns = list(_columns(batch, body, forms, rows))
    numbers = [column for column in columns if isinstance(column, np.ndarray)]
    plain = bundle.schema is None and len(numbers) == width
    if plain:
        table = np.ascontiguousarray(np.array(numbers).T)  # column_stack takes three times as long
        if not np.isfinite(table).all():
            raise InvalidInput("rows: expected finite numbers")
        cells: Any = [[0.0]]  # stands for the table until everything else is checked
    else:
        cells = list(map(list, zip(*(_listed(column) for column in columns), strict=True)))
    ordered = kept_names(bundle.system) is None and names in (bundle.columns, unnamed(width))
    told = {"rows": cells, "columns": None if ordered else names}
    answers = parsed(told | about.model_dump(), bundle.asks)
    return answers.model_copy(update={"rows": table}) if plain else answers


class _Table:
    """A table of a flatbuffer: the place ``at`` in ``data`` from which its fields are found."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        slots = at - _number(data, "<i", at)
        many = _number(data, "<H", slots) // 2 - 2
        self._offsets = _OFFSETS_OF[max(0, min(many, _FIELDS))].unpack_from(data, slots + 4)

    def number(self, field: int, form: str) -> int:
        """Return a number, 0 where the field is not there."""
        place = self._place(field)
        return _number(self.data, form, place) if place else 0

    def table(self, field: int) -> _Table | None:
        place = self._place(field)
        return _Table(self.data, _referred(self.data, place)) if place else None

    def tables(self, field: int) -> Iterator[_Table]:
        start, many = self.vector(field, 4)
        for place in range(start, start + 4 * many, 4):
            yield _Table(self.data, _referred(self.data, place))

    def vector(self, field: int, size: int) -> tuple[int, int]:
        """Return where items of ``size`` bytes begin, and how many there are."""
        place = self._place(field)
        if not place:
            return 0, 0
        start = _referred(self.data, place)
        many = _number(self.data, "<I", start)
        _need(start + 4 + size * many <= len(self.data))
        return start + 4, many

    def text(self, field: int, *, most: int) -> bytes:
        start, many = self.vector(field, 1)
        _need(many <= most)
        return self.data[start : start + many]

    def pairs(self, field: int) -> npt.NDArray[np.int64]:
        """Return pairs of numbers, shape (n, 2)."""
        start, many = self.vector(field, 16)
        content = self.data[start : start + 16 * many]
        return np.frombuffer(content, "<i8").reshape(-1, 2).astype(np.int64)

    def _place(self, field: int) -> int:
        """Return the place of a field, or 0 where it is not there."""
        offset = self._offsets[field] if field < len(self._offsets) else 0
        return self.at + offset if offset else 0


def _message(content: bytes, start: int, kind: int) -> tuple[_Table, memoryview, int]:
    """Return a message's header, its body, and the place behind it."""
    mark, length = struct.unpack_from("<iI", content, start)
    begin = start + 8 + length
    data = content[start + 8 : begin]
    root = _Table(data, _referred(data, 0))
    header, size = root.table(2), root.number(3, "<q")
    _need(mark == -1 and root.number(1, "<B") == kind)
    _need(0 <= size <= len(content) - begin)
    if header is None:
        raise ValueError
    return header, memoryview(content)[begin : begin + size], begin + size


def _fields(data: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the form and the name of each column of a schema's message."""
    schema = _Table(data, _referred(data, 0)).table(2)
    assert schema is not None  # as _message has seen
    fields = list(schema.tables(1))
    forms = tuple(_form(field) for field in fields)
    return forms, tuple(field.text(0, most=8 * LONGEST_NAME).decode() for field in fields)


_kept_fields = lru_cache(maxsize=64)(_fields)


def _form(field: _Table) -> str:
    """Return numpy's name for the numbers of a column or the offsets of its texts, or ``_BITS``."""
    kind, details = field.number(2, "<B"), field.table(3)
    if details is not None and field.table(4) is None:  # no dictionary
        if kind in _OFFSETS:
            return f"text {_OFFSETS[kind]}"
        if kind == _BOOL:
            return _BITS
        if kind == _INTEGER and (bits := details.number(0, "<i")) in (8, 16, 32, 64):
            return f"<{'i' if details.number(1, '<B') else 'u'}{bits // 8}"
        if kind == _FLOAT and (precision := details.number(0, "<h")) in (0, 1, 2):
            return f"<f{2 << precision}"
    raise InvalidInput("columns: expected numbers, truth values or texts; cast what is neither")


def _about(schema: _Table, most: int) -> About:
    """Return what the schema's metadata says beside the rows."""
    _need(schema.vector(2, 4)[1] <= _MOST_METADATA)
    entries = schema.tables(2)
    said = [entry for entry in entries if entry.text(0, most=8 * LONGEST_NAME) == MEMBERS.encode()]
    _need(len(said) <= 1)
    if not said:
        return About()
    content = said[0].text(1, most=len(schema.data))
    structure = Structure(lists=1, items=most + 2)
    structure.feed(content)
    return parsed(content, About, names=structure.names)


def _columns(
    batch: _Table, body: memoryview, forms: list[str], rows: int
) -> Iterator[npt.NDArray[np.float64] | list[Any]]:
    """Yield each column: its numbers, or a list where some are texts or missing."""
    nodes, buffers = batch.pairs(1), batch.pairs(2)
    texts = sum(form.startswith("text") for form in forms)
    _need(len(nodes) == len(forms) and len(buffers) == 2 * len(forms) + texts)
    _need(((buffers >= 0) & (buffers <= len(body))).all())
    # Buffers in their order, none over another: no byte stands for two columns.
    ends = buffers.sum(axis=1)
    _need((buffers[1:, 0] >= ends[:-1]).all() and ends[-1] <= len(body))
    parts = (
        body[start:end] for start, end in zip(buffers[:, 0].tolist(), ends.tolist(), strict=True)
    )
    for form, (length, missing) in zip(forms, nodes.tolist(), strict=True):
        _need(length == rows)
        valid, part, given = next(parts), next(parts), None
        if missing:
            given = _bits(valid, rows).tolist()
            _need(given.count(False) == missing)
        if form.startswith("text"):
            offsets = np.frombuffer(part, form[5:], rows + 1)
            yield _texts(offsets, bytes(next(parts)), given or [True] * rows)
            continue
        values = _bits(part, rows) if form == _BITS else np.frombuffer(part, form, rows)
        column = values.astype(np.float64, copy=False)
        if given is None:
            yield column
        else:
            cells = zip(column.tolist(), given, strict=True)
            yield [number if there else None for number, there in cells]


def _texts(offsets: npt.NDArray[Any], data: bytes, given: list[bool]) -> list[Any]:
    places = offsets.tolist()
    _need(places[0] >= 0 and sorted(places) == places and places[-1] <= len(data))
    return [
        data[start:end].decode() if there else None
        for (start, end), there in zip(pairwise(places), given, strict=True)
    ]


def _bits(part: memoryview, rows: int) -> npt.NDArray[np.bool_]:
    content = np.frombuffer(part, np.uint8, (rows + 7) // 8)
    return np.unpackbits(content, count=rows, bitorder="little").astype(np.bool_)


def _listed(column: npt.NDArray[np.float64] | list[Any]) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def _referred(data: bytes, place: int) -> int:
    """Return the place that the number at ``place`` refers to."""
    return place + _number(data, "<I", place)


def _number(data: bytes, form: str, place: int) -> int:
    if place < 0:  # the library would count from the end
        raise ValueError
    found: int = struct.unpack_from(form, data, place)[0]
    return found


def _need(holds: bool | np.bool_) -> None:
    if not holds:
        raise ValueError
