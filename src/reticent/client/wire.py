"""Requests and replies of a service as bytes: what is sent, and what is accepted as an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from reticent.core.arrow_bodies import MEMBERS, unnamed
from reticent.core.errors import InvalidInput, ServiceUnreachable
from reticent.core.extras import require
from reticent.core.names import checked_name
from reticent.core.releases import Receipt
from reticent.core.strict_json import strict_dumps
from reticent.tables.frames import names_of, plain_rows

_RECEIPT = {
    "mechanism": str,
    "answers": int,
    "bundle": str,
    "certificate": str,
    "sampler": str,
    "seeded": bool,
    "booked": str,
    "position": int,
    "digest": str,
    "identifier": str,
}
_BOUND = {"request": str, "reply": str}
"""What a service's receipt has besides."""


def json_bytes(value: Any) -> bytes:
    """Encode a JSON body, compact and without NaN.

    pydantic writes a number in a tenth of the time of Python's own encoder.
    """
    try:
        content = to_json(value, inf_nan_mode="constants")
        if b"NaN" in content or b"Infinity" in content:  # in a text, or a number
            json.dumps(value, allow_nan=False)
        return content
    except ValueError as error:
        raise InvalidInput("rows: expected finite numbers, texts or missing cells") from error


def json_cells(X: Any) -> tuple[list[list[Any]], list[str] | None]:
    """Return rows as lists of cells that JSON has, and the names of their columns, or None.

    Args:
        X: rows, as a data frame of pandas, polars or pyarrow, whose missing cells are None or NaN,
            or as an array (n, columns), or (n, height, width) for pictures, which become flat rows.

    Raises:
        InvalidInput: not rows, none at all, an infinity, or a cell that is neither number nor text.

    Example:
        >>> json_cells([[1.5, 2.0]])
        ([[1.5, 2.0]], None)
    """
    table, names = _table(X)
    if table.dtype.kind == "f" and np.isnan(table).any():
        whole, table = table, table.astype(object)
        table[np.isnan(whole)] = None
    elif table.dtype.kind not in "iuf":
        return [[_cell(cell) for cell in row] for row in table.tolist()], names
    return table.tolist(), names


def arrow_columns(X: Any) -> tuple[list[Any], list[str] | None]:
    """Return the columns of rows as arrays of pyarrow, and their names, or None.

    Args:
        X: rows, as ``json_cells`` takes them, with numbers or texts alone in each column.

    Raises:
        InvalidInput: the errors of ``json_cells``, or a column of both numbers and texts.
        MissingExtra: pyarrow is not installed.
    """
    arrow = require("pyarrow", extra="arrow")
    table, names = _table(X)
    if table.dtype.kind in "iuf":
        return [arrow.array(column, from_pandas=True) for column in table.T], names
    columns = [[_cell(cell) for cell in column] for column in table.T.tolist()]
    kinds = [
        arrow.string() if str in {*map(type, column)} else arrow.float64() for column in columns
    ]
    try:
        return list(map(arrow.array, columns, kinds)), names
    except (TypeError, ValueError):  # pyarrow's own, whose text shows a cell
        raise InvalidInput(
            "rows: expected numbers or texts alone in each column of an Arrow stream"
        ) from None


def arrow_bytes(columns: Sequence[Any], names: Sequence[str], about: dict[str, Any]) -> bytes:
    """Encode a body of one Arrow stream.

    Args:
        columns: arrays of pyarrow.
        names: a name for each, or others where the service is to take them in order.
        about: the body's members beside rows and columns.
    """
    arrow = require("pyarrow", extra="arrow")
    named = list(names) if len(names) == len(columns) else unnamed(len(columns))
    metadata = {MEMBERS: json_bytes(about)} if about else None
    batch = arrow.RecordBatch.from_arrays(list(columns), names=named, metadata=metadata)
    sink = arrow.BufferOutputStream()
    with require("pyarrow.ipc", extra="arrow").new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def checked_subjects(
    subject: str | Sequence[str] | None, rows: int
) -> tuple[str | None, tuple[str, ...] | None]:
    """Return one subject for all rows, or one for each row, or neither.

    Raises:
        InvalidInput: not as many as rows, or a name that could be mistaken for another.
    """
    if subject is None:
        return None, None
    if isinstance(subject, str):
        return _subject(subject), None
    listed = tuple(_subject(one) for one in subject)
    if len(listed) != rows:
        raise InvalidInput(
            f"subject: expected one name, or one for each of the {rows} rows, got {len(listed)}"
        )
    return None, listed


def loaded(content: bytes) -> Any:
    """Return a JSON reply.

    Raises:
        ServiceUnreachable: the reply is no JSON, so something else answers there.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ServiceUnreachable(
            "service: its reply is no JSON; expected a reticent service at this address"
        ) from error


def receipt_of(values: Any) -> Receipt:
    """Return the receipt that ``Receipt.to_dict`` described, every field of it.

    Raises:
        InvalidInput: a field is missing, of another type, or unknown.
    """
    expected = _RECEIPT | (_BOUND if isinstance(values, dict) and _BOUND.keys() & values else {})
    if not isinstance(values, dict) or set(values) != {*expected, "guarantee"}:
        raise InvalidInput("receipt: expected the fields of a receipt")
    for name, kind in expected.items():
        if type(values[name]) is not kind:
            raise InvalidInput(f"receipt: expected {kind.__name__} for {name}")
    receipt = Receipt.from_dict(values)
    if strict_dumps(receipt.to_dict()) != strict_dumps(values):
        raise InvalidInput("receipt: expected a guarantee as reticent writes it")
    return receipt


def values_of(
    answers: Any, withheld: Any, rows: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return released values and which of them are withheld, as a ``Release`` has them.

    Args:
        answers: a label, or a list of numbers, for each row, None where withheld.
        withheld: a truth value for each row.
        rows: number of rows that were asked about.

    Returns:
        Vectors, shape (n, m) float64, NaN where withheld, or labels, shape (n,), with -1 (numbers)
        or None where withheld.

    Raises:
        InvalidInput: not one answer for each row.
    """
    if not isinstance(answers, list) or not isinstance(withheld, list):
        raise InvalidInput("reply: expected lists of answers and of what is withheld")
    if len(answers) != rows or len(withheld) != rows:
        raise InvalidInput(f"reply: expected {rows} answers, got {len(answers)}")
    if {*map(type, withheld)} - {bool}:
        raise InvalidInput("reply: expected truth values of what is withheld")
    mask = np.array(withheld, dtype=np.bool_)
    if [answer is None for answer in answers] != withheld:
        raise InvalidInput("reply: expected null for what is withheld, and for nothing else")
    given = [answer for answer in answers if answer is not None]
    kinds = {*map(type, given)}
    if list in kinds:
        widths = {*map(len, given)} if kinds == {list} else set()
        if len(widths) != 1:
            raise InvalidInput("reply: expected vectors of one length")
        if not {*map(type, chain.from_iterable(given))} <= {int, float}:
            raise InvalidInput("reply: expected numbers in every vector")
        vectors = np.full((rows, widths.pop()), np.nan)
        vectors[~mask] = given
        return vectors, mask
    if kinds <= {int}:
        labels = np.full(rows, -1, dtype=np.int64)
        labels[~mask] = given
        return labels, mask
    if mask.any() or len(kinds) > 1:
        named = np.full(rows, None, dtype=object)
        named[~mask] = given
        return named, mask
    return np.array(given), mask


def _table(X: Any) -> tuple[npt.NDArray[Any], list[str] | None]:
    """Return rows of whole numbers, floats or other cells, shape (n, columns), and their names."""
    names = names_of(X)
    table = np.asarray(plain_rows(X))
    if table.ndim < 2 or len(table) == 0:
        raise InvalidInput(f"rows: expected shape (n, columns), n >= 1, got shape={table.shape}")
    table = table.reshape(len(table), -1)
    if table.dtype.kind == "b":
        table = table.astype(np.float64)
    if table.dtype.kind == "f" and np.isinf(table).any():
        raise InvalidInput("rows: expected finite numbers, got an infinity")
    return table, None if names is None else [str(name) for name in names]


def _subject(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"subject: expected a name, got {type(name).__name__}")
    return checked_name(name, name="subject")


def _cell(cell: Any) -> Any:
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool | np.bool_):
        return float(cell)
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, float | np.floating):
        number = float(cell)
        if number != number:
            return None
        if abs(number) == float("inf"):
            raise InvalidInput("rows: expected finite numbers, got an infinity")
        return number
    raise InvalidInput(f"rows: expected numbers, texts or missing cells, got {type(cell).__name__}")
