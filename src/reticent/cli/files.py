"""Files in and out: rows, arrays, released values and receipts. Nothing is ever unpickled."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput
from reticent.core.files import check_replaceable, output_file, read_regular
from reticent.core.releases import Release
from reticent.core.signatures import receipt_content, sign_receipt
from reticent.pages.page import Table
from reticent.tables.batches import (
    FORMATS,
    check_format,
    column_names,
    encoded_columns,
    file_kind,
    names_in,
    read_frame,
    read_whole,
)
from reticent.tables.files import rows_of_words
from reticent.tables.frames import listed, ordered_rows
from reticent.tables.schema import TabularSchema

AnyArray = npt.NDArray[Any]

ANSWERS = ("npz", *FORMATS)
"""Formats for numbers and labels, by the end of a file's name."""

_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_DAMAGED = "damaged, cut short, or holding Python objects; write it again"
_LARGEST_RELEASE = 2**33
_LARGEST_RECEIPT = 1_000_000
_PAGE_ROOM = 2**22
_ROOM_FOR_THE_REST = 16384
"""Most bytes that receipt and zip headers take."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a file.

    Attributes:
        inputs: array of shape (n, ...), or a data frame with names.
        names: cells of the one column that was asked for beside the inputs, one for each row, or
            None.
        columns: further arrays or columns by name, shape (n,) each.
    """

    inputs: Any
    names: tuple[str, ...] | None = None
    columns: dict[str, AnyArray] = field(default_factory=dict)

    @property
    def labels(self) -> AnyArray | None:
        """Return ``names`` as labels, like ``read_labels``, or None."""
        return None if self.names is None else _labels(self.names)

    def numbers(self) -> AnyArray:
        """Return an array unchanged, or a table as finite numbers, shape (n, columns)."""
        if isinstance(self.inputs, np.ndarray):
            return self.inputs
        return finite_array(ordered_rows(self.inputs, self.column_names), name="rows", ndim=2)

    @property
    def column_names(self) -> list[str]:
        """Return the names of a table's columns, or an empty list for an array."""
        if isinstance(self.inputs, np.ndarray):
            return []
        return list(getattr(self.inputs, "column_names", None) or self.inputs.columns)


def read_rows(
    path: Path,
    *,
    system: Any = None,
    schema: TabularSchema | None = None,
    array: str | None = None,
    ignore: Sequence[str] | None = None,
    beside: str | None = None,
    columns: Sequence[str] | None = None,
    name: str = "input",
) -> Rows:
    """Return the rows of a file of any kind, and the columns beside them.

    Args:
        path: a CSV, Parquet or Arrow file, with columns found by name, or an .npy or .npz file,
            with columns found by position. A CSV file may be a pipe.
        system: a fitted system that takes the rows, or None.
        schema: the description of the columns if there is no system. Without both, all columns that
            have no other use are read as numbers.
        array: the name of the rows' array in an .npz file, or None for its only one beside
            ``columns``.
        ignore: columns that are not read.
        beside: a column that is not data, such as labels or the subject of each row.
        columns: arrays of an .npz file, or columns that may be data too.
        name: the caller's name for the file, used in messages.

    Raises:
        InvalidInput: the file cannot be read, or does not hold what was asked for.
        MissingExtra: a Parquet or Arrow file, and pyarrow is not installed.
    """
    where, further = f"{name}={str(path)!r}", list(columns or ())
    known = schema or getattr(getattr(system, "query_", system), "schema", None)
    kind = kind_of(path, name)
    if kind in ("npy", "npz"):
        if ignore or beside is not None or (further and kind == "npy"):
            raise InvalidInput(
                f"{where}: an array has no column names; expected a CSV, Parquet or Arrow file"
                f"{', or an .npz file with several arrays' if further else ''}"
            )
        inputs = read_array(path, name=name, array=array, beside=further)
        if isinstance(known, TabularSchema) and inputs.dtype.kind == "U":
            inputs = rows_of_words(inputs, known, name=where)
        found = {each: read_array(path, name=name, array=each) for each in further}
        return Rows(inputs, columns=found)
    if array is not None:
        raise InvalidInput(f"{where}: array={array!r} is for .npz files; other files have columns")
    found, names = {}, None
    if further:
        names = column_names(path, name=name)
        missing = [each for each in further if each not in names]
        if missing:
            raise InvalidInput(f"{where}: has no column {listed(missing)}; has {listed(names)}")
        frame = read_frame(path, name=name)
        found = {each: ordered_rows(frame, [each])[:, 0].astype(str) for each in further}
    wanted = _wanted(path, system, schema, {*(ignore or ()), beside, *further}, name)
    taken = wanted.column_names if isinstance(wanted, TabularSchema) else wanted
    left_out = [*(ignore or ()), *(each for each in further if each not in taken)]
    table = read_whole(path, wanted, ignore=left_out, subject_column=beside, name=name)
    return Rows(table.rows, table.subjects, found)


def read_labelled(
    path: Path,
    *,
    schema: TabularSchema | None = None,
    array: str | None = None,
    ignore: Sequence[str] | None = None,
    labels: Path | None = None,
    labels_array: str | None = None,
    label_column: str | None = None,
    name: str = "rows",
    table: str = "",
) -> tuple[Rows, AnyArray | None]:
    """Return the rows of a file, and their labels from one of its columns or from a second file.

    Args:
        path, schema, array, ignore, name: the arguments of ``read_rows``.
        labels: a file with the labels, or None.
        labels_array: the name of the labels' array if ``labels`` is an .npz file.
        label_column: the column of ``path`` that holds the labels, or None.
        table: the prefix of these arguments' names in a message.

    Raises:
        InvalidInput: an error of ``read_rows`` or ``read_labels``, or labels from both places.
    """
    if labels is not None and label_column is not None:
        raise InvalidInput(f"{table}labels, {table}label_column: expected one of them")
    if labels_array is not None and labels is None:
        raise InvalidInput(f"{table}labels_array: expected together with {table}labels")
    found = read_rows(
        path, schema=schema, array=array, ignore=ignore, beside=label_column, name=name
    )
    if labels is None:
        return found, found.labels
    return found, read_labels(labels, name=f"{table}labels", array=labels_array)


def read_labels(path: Path, *, name: str, array: str | None = None) -> AnyArray:
    """Return the labels in a file of any kind, shape (n,).

    Args:
        path: an .npy or .npz file, or a CSV, Parquet or Arrow file with one column. Its cells are
            words, or integers if all of them are whole numbers.
        name: the caller's name for the file, used in messages.
        array: the name of an array in an .npz file, or None for the only one.

    Raises:
        InvalidInput: an error of ``read_array`` or ``names_in``, or a table with several columns.
    """
    if kind_of(path, name) in ("npy", "npz"):
        return read_array(path, name=name, array=array)
    columns = column_names(path, name=name)
    if len(columns) != 1 or array is not None:
        raise InvalidInput(
            f"{name}={str(path)!r}: expected a table with one column, of labels, or an array; "
            f"has {listed(columns)}"
        )
    return _labels(names_in(path, columns[0], name=name))


def _labels(cells: Sequence[str]) -> AnyArray:
    """Return labels as words, or as integers if all of them are."""
    if all(cell.removeprefix("-").isdecimal() and cell.isascii() for cell in cells):
        return np.array([int(cell) for cell in cells])
    return np.array(cells)


def kind_of(path: Path, name: str) -> str:
    """Return the kind of a file, like ``file_kind``. A pipe is read once, so its name decides."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return "npy" if path.suffix == ".npy" else "csv"
    return file_kind(path, name=name)


def _wanted(
    path: Path, system: Any, schema: TabularSchema | None, used: set[str | None], name: str
) -> TabularSchema | Sequence[str]:
    """Return the schema or the columns to read from a table."""
    if schema is not None:
        return schema
    if system is not None:
        from reticent.release.system import columns_of

        return columns_of(system, name=name)
    names = [each for each in column_names(path, name=name) if each not in used]
    if not names:
        raise InvalidInput(f"{name}={str(path)!r}: expected at least one column that is read")
    return names


def read_array(
    path: Path, *, name: str, array: str | None = None, beside: Sequence[str] = ()
) -> AnyArray:
    """Return an array of an .npy or .npz file.

    Args:
        path: the file. An .npy file may be a pipe.
        name: the caller's name for the file, used in messages.
        array: the array's name in an .npz file, or None for the only one there is.
        beside: names of arrays that None does not mean.

    Raises:
        InvalidInput: no such file, no array, cut short, one that holds Python objects, or a name
            that the file does not have.
    """
    where = f"{name}={str(path)!r}"
    if _is_archive(path):
        return _stored(path, array, where, beside)
    if array is not None:
        raise InvalidInput(f"{where}: expected an .npz file, which has arrays of that name")
    try:
        with path.open("rb") as file:  # a device without end is no array from its first bytes on
            content = file.read(len(_NPY))
            if content != _NPY:
                raise InvalidInput(f"{where}: not an .npy file; write one with numpy.save")
            content += file.read()
    except OSError as error:
        raise InvalidInput(
            f"{where}: cannot be read ({error.strerror}); expected an .npy file"
        ) from error
    try:
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False))
    except (ValueError, EOFError, OSError, MemoryError) as error:  # a header may state any shape
        raise InvalidInput(f"{where}: {_DAMAGED}") from error


def _is_archive(path: Path) -> bool:
    """Return whether a plain file begins as an .npz file does."""
    try:
        with path.open("rb") if path.is_file() else io.BytesIO() as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


def _stored(path: Path, array: str | None, where: str, beside: Sequence[str]) -> AnyArray:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            others = [found for found in stored.files if found not in beside]
            chosen = others[0] if array is None and len(others) == 1 else array
            if chosen in stored.files:
                return np.asarray(stored[chosen])
            names = ", ".join(stored.files)
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise InvalidInput(f"{where}: {_DAMAGED}") from error
    raise InvalidInput(f"{where}: expected the name of one of its arrays, {names}")


def format_of(path: Path, formats: Sequence[str], *, name: str = "output") -> str:
    """Return the format that the end of a file's name says.

    Commands call this before they compute anything for the file.

    Raises:
        InvalidInput: none of ``formats``. No file is written in another format than its name says.
        MissingExtra: the package that writes the format is not installed.
    """
    found = path.suffix.removeprefix(".").lower()
    if found not in formats:
        raise InvalidInput(
            f"{name}={str(path)!r}: expected a name that ends in "
            f"{', '.join(f'.{each}' for each in formats)}"
        )
    if found in FORMATS:
        check_format(found)
    return found


def check_page(page: Path | None, *, overwrite: bool) -> None:
    """Raise if a page is asked for and cannot be written.

    Raises:
        InvalidInput: a name that does not end in .html, or a file that may not be replaced.
    """
    if page is not None:
        format_of(page, ("html",), name="page")
        check_replaceable(page, overwrite=overwrite)


def write_page(
    page: Path | None, content: Callable[[], str | bytes], *, overwrite: bool, quiet: bool = False
) -> None:
    """Write a page if one is asked for, and say where unless ``quiet``."""
    if page is None:
        return
    with output_file(page, size=_PAGE_ROOM, overwrite=overwrite) as put:
        made = content()
        put(made if isinstance(made, bytes) else made.encode())
    if not quiet:
        typer.echo(f"written to {page}")


def print_table(table: Table, title: str) -> None:
    """Print a table of a page, if it has rows."""
    from rich import table as rich_table
    from rich.console import Console
    from rich.text import Text

    made = rich_table.Table(table.first, *table.columns, title=title)
    for name, cells in table.rows:
        made.add_row(Text(name), *map(Text, cells))
    if table.rows:
        Console().print(made)


def column_content(name: str, values: AnyArray, kind: str) -> bytes:
    """Return one column as the bytes of a file, with the ``kind`` of ``release_content``."""
    if kind in FORMATS:
        return encoded_columns({name: values}, kind)
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{name: values})
    return buffer.getvalue()


def release_size(rows: int, outputs: int, kind: str) -> int:
    """Return the most bytes that ``release_content`` will need, before anything is answered."""
    return (rows * (8 * outputs + 1) + _ROOM_FOR_THE_REST) * (4 if kind in FORMATS else 1)


def release_content(release: Any, kind: str, *, key: Path | None = None) -> bytes:
    """Return released values as the bytes of a file.

    Args:
        release: the answers, a ``Release`` or what an algorithm as printed answers, which has no
            receipt.
        kind: one of ``FORMATS`` for a table, or "npz" for ``values``, ``withheld``, ``receipt``
            (JSON text) and, with a private key, the receipt's ``signature``.
        key: the private key, for "npz".

    Raises:
        InvalidInput: no such key.
        MissingExtra: a key, and the package cryptography is not installed.
    """
    if kind in FORMATS:
        return encoded_columns(release.to_columns(), kind)
    values = release.values
    if values.dtype == object:  # labels in the user's own words, None where withheld
        values = np.array(["" if value is None else str(value) for value in values])
    buffer = io.BytesIO()
    texts = {}
    if isinstance(release, Release):
        texts["receipt"] = receipt_content(release.receipt)
    if key is not None:
        texts["signature"] = sign_receipt(release.receipt, key=key)
    arrays = {name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()}
    np.savez(buffer, allow_pickle=False, values=values, withheld=release.withheld, **arrays)
    return buffer.getvalue()


def read_signed_receipt(path: Path, *, name: str = "path") -> tuple[bytes, bytes | None]:
    """Return the receipt in a file that `reticent release` wrote, and its signature or None.

    Raises:
        InvalidInput: no plain file, or none with a receipt.
    """
    where = f"{name}={str(path)!r}"
    try:
        content = read_regular(path, most=_LARGEST_RELEASE)
        with zipfile.ZipFile(io.BytesIO(content)) as stored:
            names = set(stored.namelist())
            texts = [
                _text(stored, f"{each}.npy") if f"{each}.npy" in names else None
                for each in ("receipt", "signature")
            ]
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from error
    except (
        ValueError,
        EOFError,
        OSError,
        RuntimeError,
        NotImplementedError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InvalidInput(
            f"{where}: expected an .npz file that `reticent release` wrote"
        ) from error
    if texts[0] is None:
        raise InvalidInput(
            f"{where}: holds no receipt; expected an .npz file that `reticent release` wrote"
        )
    return texts[0], texts[1]


def read_receipt(path: Path, *, name: str) -> dict[str, Any]:
    """Return a receipt as ``Receipt.to_dict`` gives it, from JSON or from released values.

    Raises:
        InvalidInput: no such file, or a file without a receipt.
    """
    where = f"{name}={str(path)!r}"
    try:
        if _is_archive(path):
            content = read_signed_receipt(path, name=name)[0]
        else:
            with path.open("rb") as file:
                content = file.read(_LARGEST_RECEIPT)
    except OSError as error:
        raise InvalidInput(f"{where}: cannot be read ({error.strerror})") from error
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{where}: expected a receipt as JSON, or a file that `reticent release` wrote"
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{where}: expected a receipt, an object in JSON")
    return found


def _text(stored: zipfile.ZipFile, name: str) -> bytes:
    with stored.open(name) as part:
        content = part.read(_ROOM_FOR_THE_REST + 1)
    if len(content) > _ROOM_FOR_THE_REST:
        raise InvalidInput(f"{name} is larger than a receipt")
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise InvalidInput(f"{name} holds no text")
    return bytes(array.tobytes())
