"""Weights of labels from their public prevalence, for data sets with a rare label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.checks import positive
from reticent.core.errors import InvalidParameter


def checked_weights(weights: Sequence[float], *, classes: int) -> tuple[float, ...]:
    """Return one weight in (0, 1] for each label, the largest of them 1.

    With no weight above 1 a record counts for no more than it does without weights. So every
    bound on what one record can change still holds.

    Raises:
        InvalidParameter: another number of weights, or one out of range.
    """
    found = tuple(positive(weight, name="class_weights") for weight in weights)
    if len(found) != classes or max(found) != 1.0:
        raise InvalidParameter(
            f"class_weights={found!r}: expected {classes} numbers in (0, 1], the largest 1"
        )
    return found


def weights_of_prevalence(
    prevalence: Mapping[Any, float] | None, classes: npt.NDArray[Any]
) -> tuple[float, ...]:
    """Return weights that make every label count alike: the least share over each label's own.

    **Guarantee.** They are public if the shares are. Shares counted in the records are not: one
    record moves them, and with them the weight of every other record.

    Args:
        prevalence: share of each label, by label, above 0, known from elsewhere (statistics, the
            literature, public rows). They need not add up to 1. None for equal weights.
        classes: the labels, shape (c,).

    Returns:
        The weights, in the order of ``classes``.

    Raises:
        InvalidParameter: no share for a label, or for something that is none.

    Example:
        >>> weights_of_prevalence({"ill": 0.1, "well": 0.9}, np.array(["ill", "well"]))
        (1.0, 0.11111111111111112)
    """
    labels = classes.tolist()
    if prevalence is None:
        return (1.0,) * len(labels)
    if not isinstance(prevalence, Mapping) or set(prevalence) != set(labels):
        raise InvalidParameter(
            f"prevalence: expected a share for each of the {len(labels)} labels and nothing else, "
            f"by label, got {type(prevalence).__name__}"
            + (f" with {len(prevalence)}" if isinstance(prevalence, Mapping) else "")
        )
    shares = np.array([positive(prevalence[label], name="prevalence") for label in labels])
    return tuple((shares.min() / shares).tolist())
