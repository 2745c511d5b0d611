"""Mechanisms for labels that look at the embedded point and the classifier's logits, and take
nothing for granted about either: one interface for the three, and how a bundle holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from reticent.core.arrays import Array, Arrays
from reticent.core.errors import CorruptBundle
from reticent.core.guarantees import Neighborhood
from reticent.mechanisms import ArgmaxResponse, HopRelease, LabelTable
from reticent.noise import Sampler

LabelRule = ArgmaxResponse | HopRelease | LabelTable


def chances(rule: LabelRule, points: Array, logits: Array) -> Array:
    """Probability of each label at each point, shape (n, classes).

    Args:
        rule: the mechanism.
        points: clipped embeddings, shape (n, d).
        logits: the classifier's, shape (n, classes).
    """
    if isinstance(rule, LabelTable):
        return rule.probabilities(points)
    if isinstance(rule, HopRelease):
        return rule.probabilities(points, logits)
    return rule.probabilities(logits)


def labels(
    rule: LabelRule, points: Array, logits: Array, *, sampler: Sampler
) -> npt.NDArray[np.int64]:
    """One label for each point, shape (n,).

    Args:
        rule: the mechanism.
        points: clipped embeddings, shape (n, d).
        logits: the classifier's, shape (n, classes).
        sampler: source of randomness.
    """
    if isinstance(rule, LabelTable):
        return rule.release(points, sampler=sampler)
    if isinstance(rule, HopRelease):
        return rule.release(points, logits, sampler=sampler)
    return rule.release(logits, sampler=sampler)


def described(rule: LabelRule) -> tuple[dict[str, Any], Arrays]:
    """Plain JSON values and named arrays that ``rebuilt`` reads."""
    if isinstance(rule, ArgmaxResponse):
        return {}, {}
    return rule.describe()


def rebuilt(
    mechanism: str,
    settings: dict[str, Any],
    arrays: Arrays,
    *,
    classes: int,
    dimension: int,
    epsilon: float,
    adjacency: Neighborhood,
) -> LabelRule:
    """The mechanism that ``described`` took apart, checked again from the first entry to the last.

    Args:
        mechanism: "table", "hop" or "response".
        settings, arrays: what ``described`` gave.
        classes: number of labels.
        dimension: of an embedding.
        epsilon: of one label.
        adjacency: neighbours.

    Raises:
        CorruptBundle: sizes that do not fit.
        InvalidInput, InvalidParameter: whatever the mechanism itself refuses.
    """
    if mechanism == "response":
        return ArgmaxResponse(classes=classes, epsilon=epsilon, adjacency=adjacency)
    kind: type[HopRelease] | type[LabelTable] = HopRelease if mechanism == "hop" else LabelTable
    rule = kind.from_description(settings, arrays, epsilon=epsilon, adjacency=adjacency)
    if rule.classes != classes or rule.lattice.dimension != dimension:
        raise CorruptBundle(
            f"bundle: its table has {rule.classes} labels and {rule.lattice.dimension} "
            f"coordinates, its network {classes} and {dimension}; fetch or fit it again"
        )
    return rule
