"""Arrays from and to files, for the command line. Nothing is ever unpickled."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.core.files import read_regular
from reticent.core.releases import Release
from reticent.core.signatures import receipt_content, sign_receipt

if TYPE_CHECKING:
    from reticent.tables.schema import TabularSchema

NPY = b"\x93NUMPY"
"""First bytes of an .npy file."""

ZIP = b"PK\x03\x04"
"""First bytes of an .npz file."""

_LARGEST_RELEASE = 2**33
_ROOM_FOR_THE_REST = 16384
"""Bytes that receipt and zip headers take at most."""


def starts_with(path: Path, mark: bytes) -> bool:
    """Whether ``mark`` is how the file begins; False for one that cannot be read, or only once,
    as a pipe.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.peek(len(mark))[: len(mark)] == mark
    except OSError:
        return False


def read_array(path: Path, *, name: str) -> npt.NDArray[Any]:
    """The array in an .npy file.

    Raises:
        InvalidInput: no such file, not an .npy file, cut short, or one that holds Python objects.
    """
    try:
        with (
            path.open("rb") as file
        ):  # a pipe may be read too; a device without end is no .npy file from its first bytes on
            content = file.read(len(NPY))
            if content != NPY:
                raise InvalidInput(
                    f"{name}={str(path)!r}: not an .npy file; write one with numpy.save"
                )
            content += file.read()
    except OSError as error:
        raise InvalidInput(
            f"{name}={str(path)!r}: cannot be read ({error.strerror}); expected an .npy file"
        ) from error
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError) as error:  # a header may state any shape
        raise InvalidInput(
            f"{name}={str(path)!r}: damaged, cut short, or holding Python objects; write it again"
        ) from error
    return np.asarray(array)


def read_stored_array(
    path: Path, array: str | None, *, name: str, beside: Sequence[str] = ()
) -> npt.NDArray[Any]:
    """An array of an .npy or .npz file; nothing is unpickled.

    Args:
        path: the file.
        array: its name in an .npz file; None for the only one there is.
        name: what the caller calls the file; used in messages.
        beside: names of arrays that are not meant by None.

    Raises:
        InvalidInput: see ``read_array``; a name that the file does not have.
    """
    where = f"{name}={str(path)!r}"
    if not starts_with(path, ZIP):
        if array is not None:
            raise InvalidInput(f"{where}: expected an .npz file, which has arrays of that name")
        return read_array(path, name=name)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            others = [found for found in stored.files if found not in beside]
            chosen = others[0] if array is None and len(others) == 1 else array
            if chosen not in stored.files:
                raise InvalidInput(
                    f"{where}: expected the name of one of its arrays, {', '.join(stored.files)}"
                )
            return np.asarray(stored[chosen])
    except (ValueError, EOFError, OSError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"{where}: damaged, cut short, or holding Python objects; write it again"
        ) from error


def read_rows_by_position(
    path: Path, schema: TabularSchema | None, *, name: str
) -> npt.NDArray[Any]:
    """The rows in an .npy file: numbers, or words that ``schema`` reads as the cells of a file are.

    Args:
        path: .npy file.
        schema: what the columns are, or None for an array of any shape.
        name: what the caller calls the file; used in messages.

    Raises:
        InvalidInput: see ``read_array`` and ``rows_of_words``.
    """
    from reticent.tables.files import rows_of_words

    array = read_array(path, name=name)
    if schema is None or array.dtype.kind != "U":
        return array
    return rows_of_words(array, schema, name=f"{name}={str(path)!r}")


def release_size(rows: int, outputs: int) -> int:
    """Bytes that ``release_content`` will need at most, known before anything is answered."""
    return rows * (8 * outputs + 1) + _ROOM_FOR_THE_REST


def release_content(release: Release, *, key: Path | None = None) -> bytes:
    """An .npz file with ``values``, ``withheld`` and ``receipt`` (JSON text); and, by a private
    key, the receipt's ``signature``.

    Raises:
        InvalidInput: no such key.
        MissingExtra: a key, and the package cryptography is not installed.
    """
    values = release.values
    if values.dtype == object:  # labels in the user's own words, None where withheld
        values = np.array(["" if value is None else str(value) for value in values])
    buffer = io.BytesIO()
    texts = {"receipt": receipt_content(release.receipt)}
    if key is not None:
        texts["signature"] = sign_receipt(release.receipt, key=key)
    arrays = {name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()}
    np.savez(buffer, allow_pickle=False, values=values, withheld=release.withheld, **arrays)
    return buffer.getvalue()


def read_signed_receipt(path: Path) -> tuple[bytes, bytes | None]:
    """The receipt in a file that ``release_content`` made, and its signature or None.

    Raises:
        InvalidInput: no plain file, or none with a receipt.
    """
    where = f"path={str(path)!r}"
    try:
        content = read_regular(path, most=_LARGEST_RELEASE)
        with zipfile.ZipFile(io.BytesIO(content)) as stored:
            names = set(stored.namelist())
            texts = [
                _text(stored, f"{name}.npy") if f"{name}.npy" in names else None
                for name in ("receipt", "signature")
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


def _text(stored: zipfile.ZipFile, name: str) -> bytes:
    with stored.open(name) as part:
        content = part.read(_ROOM_FOR_THE_REST + 1)
    if len(content) > _ROOM_FOR_THE_REST:
        raise InvalidInput(f"{name} is larger than a receipt")
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise InvalidInput(f"{name} holds no text")
    return bytes(array.tobytes())


def npy_content(array: npt.NDArray[Any]) -> bytes:
    """The bytes of an .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
