"""A student network as sizes and weights in a bundle, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from reticent.core.arrays import Arrays
from reticent.core.checks import count
from reticent.core.errors import CorruptBundle
from reticent.training.students import Student


def network_parts(student: Student) -> tuple[dict[str, Any], Arrays]:
    """Return the sizes that a settings file holds, and weights by name."""
    sizes = {
        "image_shape": list(student.image_shape),
        "channels": [student.features[0].out_channels, student.features[3].out_channels],
        "width": student.head.in_features,
    }
    return sizes, {name: value.detach().numpy() for name, value in student.state_dict().items()}


def stored_network(settings: dict[str, Any], classes: int, arrays: Arrays) -> Student:
    """Return the stored network.

    Sizes from a file are compared with its weights before any memory is taken for them.

    Args:
        settings: settings with the sizes of ``network_parts``.
        classes: number of labels.
        arrays: the weights.

    Raises:
        CorruptBundle: weights that are not of 32 bits.
        InvalidParameter, KeyError, RuntimeError, TypeError, ValueError: sizes that cannot be, or
            that are not those of the weights. ``rebuilding`` makes one error of them.
    """
    planes, height, width = (count(size, name="image_shape") for size in settings["image_shape"])
    first, second = (count(size, name="channels") for size in settings["channels"])
    if any(array.dtype != np.float32 for array in arrays.values()):
        raise CorruptBundle("bundle: expected weights of 32 bits")
    with torch.device("meta"):
        units = count(settings["width"], name="width")
        student = Student((planes, height, width), classes, channels=(first, second), width=units)
    student.load_state_dict(
        {name: torch.from_numpy(array) for name, array in arrays.items()}, assign=True
    )
    return student.eval()
