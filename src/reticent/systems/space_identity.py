"""The identity of a space: a digest of everything that maps an input to the point whose distance is
measured.

Two embedders of one shape and kind put the same two pictures at different distances, so a space
is its map and not its words.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.regions import Box

MAPS_VERSION = 1
"""Version of reticent's own part of the map (flattening, number format, clipping); raised
whenever that part changes.
"""


def arrays_digest(arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays: names, types, shapes and bytes.

    Example:
        >>> arrays_digest({"a": np.zeros(2)}) == arrays_digest({"a": np.zeros((2, 1))})
        False
    """
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        plain = np.ascontiguousarray(array)
        plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False).reshape(array.shape)
        head = json.dumps([name, plain.dtype.str, list(plain.shape)]).encode()
        for part in (head, plain.tobytes()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()


def space_identity(described: dict[str, Any], arrays: dict[str, npt.NDArray[Any]], box: Box) -> str:
    """Return the identity of the space of embeddings that are clipped to a box.

    Moving points to a grid afterwards belongs to a mechanism, which adds its step to the radius,
    and has no part in this: an embedding and a label of one embedder share a budget.

    Args:
        described: JSON values that say what the map is: kind, settings, input shape, structure,
            name or serial.
        arrays: its weights.
        box: the box that embeddings are clipped to.
    """
    head = {
        "maps": MAPS_VERSION,
        "embedding": described,
        "weights": arrays_digest(arrays),
        "box": arrays_digest({"lower": box.lower, "upper": box.upper}),
    }
    return hashlib.sha256(
        json.dumps(head, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
    ).hexdigest()
