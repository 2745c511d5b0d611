"""The search for data files, and the refusal of a file that is not the expected one."""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numpy.lib.npyio import NpzFile

from reticent.core.errors import DataUnavailable, InvalidInput
from reticent.core.files import unpacked

DATA_VARIABLE = "RETICENT_DATA"
"""Environment variable that names the folder with data files."""


def data_folder(folder: str | Path | None) -> Path | None:
    """Return the folder with data files: ``folder``, else the one that ``RETICENT_DATA`` names,
    else None.

    Raises:
        DataUnavailable: the folder that was named does not exist.
    """
    named = folder if folder is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return None
    path = Path(named)
    if not path.is_dir():
        source = "folder" if folder is not None else DATA_VARIABLE
        raise DataUnavailable(
            f"{source}={str(path)!r}: expected an existing folder with data files"
        )
    return path


def needed_file(folder: str | Path | None, name: str, *, about: str) -> Path:
    """Return the file called ``name`` in the folder with data files.

    Args:
        folder: the argument of ``data_folder``.
        name: the name of the file.
        about: the content and the source of the file, for the message.

    Raises:
        DataUnavailable: no folder is named, or the file is not there.
    """
    place = data_folder(folder)
    if place is None or not (place / name).is_file():
        raise DataUnavailable(f"expected {name} in the folder that {DATA_VARIABLE} names; {about}")
    return place / name


@contextmanager
def opened_npz(path: Path, *, holds: str) -> Iterator[NpzFile]:
    """Open the arrays of an npz file, without pickle. A fault while they are read and converted
    means a damaged file.

    Args:
        path: the path of the file.
        holds: names of the arrays that it should hold, for the message.

    Raises:
        DataUnavailable: the file cannot be read, is no npz file, is damaged, or lacks an array.
    """
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            if not isinstance(stored, NpzFile):
                raise ValueError("a single array")
            with stored:
                yield stored
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataUnavailable(
            f"{path.name}: expected a whole npz file with {holds}; fetch the file again"
        ) from error


def read_idx(path: Path, *, sha256: str) -> npt.NDArray[np.uint8]:
    """Return the array in a gzipped idx file of unsigned bytes.

    Args:
        path: an ``idx1-ubyte.gz`` or ``idx3-ubyte.gz`` file.
        sha256: digest of the *uncompressed* bytes, so that recompressing a file does not matter.

    Raises:
        DataUnavailable: the file cannot be read, is cut short, is not an idx file, or has other
            bytes than expected.
    """
    try:
        content = unpacked(path.read_bytes())
    except (OSError, InvalidInput) as error:
        raise DataUnavailable(
            f"{path.name}: expected a whole gzip file, got {error}; fetch the file again"
        ) from error
    if len(content) < 8 or content[:3] != b"\x00\x00\x08":
        raise DataUnavailable(
            f"{path.name}: expected an idx file of unsigned bytes; fetch the file again"
        )
    axes = content[3]
    header = 4 + 4 * axes
    if len(content) < header:
        raise DataUnavailable(
            f"{path.name}: expected a header of {header} bytes, got {len(content)}; fetch the "
            "file again"
        )
    shape = struct.unpack(f">{axes}I", content[4:header])
    if len(content) - header != int(np.prod(shape)):
        raise DataUnavailable(
            f"{path.name}: expected {int(np.prod(shape))} values for shape={shape}, got "
            f"{len(content) - header}; "
            "fetch the file again"
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataUnavailable(
            f"{path.name}: expected sha256={sha256[:16]}..., got sha256={digest[:16]}...; "
            "fetch the file again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)
