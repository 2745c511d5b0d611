"""Receipts from files: JSON text, or an .npz file that ``reticent release`` wrote."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from reticent.core.errors import InvalidInput

_LARGEST = 1_000_000
"""Bytes of a receipt at most."""


def read_receipt(path: Path, *, name: str) -> dict[str, Any]:
    """The receipt in a file, as ``Receipt.to_dict`` gives it.

    Raises:
        InvalidInput: no such file, or it holds no receipt.
    """
    where = f"{name}={str(path)!r}"
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"PK":
                with zipfile.ZipFile(file) as archive, archive.open("receipt.npy") as member:
                    content = np.load(
                        io.BytesIO(member.read(_LARGEST)), allow_pickle=False
                    ).tobytes()
            else:
                content = file.read(_LARGEST)
        found = json.loads(content)
    except OSError as error:
        raise InvalidInput(f"{where}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"{where}: expected a receipt as JSON, or a file that `reticent release` wrote"
        ) from error
    if not isinstance(found, dict):
        raise InvalidInput(f"{where}: expected a receipt, an object in JSON")
    return found
