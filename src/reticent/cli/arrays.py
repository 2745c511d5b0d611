"""Arrays from and to files, for the command line. Nothing is ever unpickled."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.errors import InvalidInput
from reticent.core.releases import Release

NPY = b"\x93NUMPY"
"""First bytes of an .npy file."""

_ROOM_FOR_THE_REST = 16384
"""Bytes that receipt and zip headers take at most."""


def starts_with(path: Path, mark: bytes) -> bool:
    """Whether ``mark`` is how the file begins; False for one that cannot be read, or only once, as a pipe."""
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
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{name}={str(path)!r}: cannot be read ({error.strerror}); expected an .npy file") from error
    if not content.startswith(NPY):
        raise InvalidInput(f"{name}={str(path)!r}: not an .npy file; write one with numpy.save")
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InvalidInput(f"{name}={str(path)!r}: damaged, cut short, or holding Python objects; write it again") from error
    return np.asarray(array)


def release_size(rows: int, outputs: int) -> int:
    """Bytes that ``release_content`` will need at most, known before anything is answered."""
    return rows * (8 * outputs + 1) + _ROOM_FOR_THE_REST


def release_content(release: Release) -> bytes:
    """An .npz file with ``values``, ``withheld`` and ``receipt`` (JSON text)."""
    values = release.values
    if values.dtype == object:  # labels in the user's own words, None where withheld
        values = np.array(["" if value is None else str(value) for value in values])
    buffer = io.BytesIO()
    receipt = np.frombuffer(json.dumps(release.receipt.to_dict()).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, values=values, withheld=release.withheld, receipt=receipt)
    return buffer.getvalue()


def npy_content(array: npt.NDArray[Any]) -> bytes:
    """The bytes of an .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
