"""Where data files are looked for, and how a file that is not the expected one is refused."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from reticent.core.errors import DataUnavailable

DATA_VARIABLE = "RETICENT_DATA"
"""Environment variable that names the folder with data files."""


def data_folder(folder: str | Path | None) -> Path | None:
    """The folder with data files: ``folder``, else the one that ``RETICENT_DATA`` names, else None.

    Raises:
        DataUnavailable: the folder that was named does not exist.
    """
    named = folder if folder is not None else os.environ.get(DATA_VARIABLE) or None
    if named is None:
        return None
    path = Path(named)
    if not path.is_dir():
        source = "folder" if folder is not None else DATA_VARIABLE
        raise DataUnavailable(f"{source}={str(path)!r}: expected an existing folder with data files")
    return path


def read_idx(path: Path, *, sha256: str) -> npt.NDArray[np.uint8]:
    """The array in a gzipped idx file of unsigned bytes.

    Args:
        path: an ``idx1-ubyte.gz`` or ``idx3-ubyte.gz`` file.
        sha256: digest of the *uncompressed* bytes, so that recompressing a file does not matter.

    Raises:
        DataUnavailable: cannot be read, is cut short, is not an idx file, or has other bytes than expected.
    """
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataUnavailable(f"{path.name}: expected a whole gzip file, got {error}; fetch the file again") from error
    if len(content) < 8 or content[:3] != b"\x00\x00\x08":
        raise DataUnavailable(f"{path.name}: expected an idx file of unsigned bytes; fetch the file again")
    axes = content[3]
    header = 4 + 4 * axes
    if len(content) < header:
        raise DataUnavailable(f"{path.name}: expected a header of {header} bytes, got {len(content)}; fetch the file again")
    shape = struct.unpack(f">{axes}I", content[4:header])
    if len(content) - header != int(np.prod(shape)):
        raise DataUnavailable(
            f"{path.name}: expected {int(np.prod(shape))} values for shape={shape}, got {len(content) - header}; "
            "fetch the file again"
        )
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise DataUnavailable(f"{path.name}: expected sha256={sha256[:16]}..., got sha256={digest[:16]}...; fetch the file again")
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape)
