"""What the Private-kNN front doors check and turn into arrays before anything is kept, spent or computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import column_or_1d
from torch import nn

from reticent.core.checks import finite_array
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.guarantees import AddRemove, Unit, data_set_name
from reticent.training.features import FeatureMap, HogFeatures, IdentityFeatures, ModuleFeatures, Origin

Array = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FEATURE_MAPS = ("identity", "hog", "upright hog")
"""Feature maps that go by a name."""

_HOG_CELL = 4


def checked_records(
    inputs: Array, y: npt.ArrayLike, keys: Sequence[Any] | None, classes: Sequence[Any] | None
) -> tuple[npt.NDArray[Any], Integers]:
    """The classes, sorted, and the place of every record's label among them, shape (n,).

    Raises:
        InvalidInput: not one label, or one key, per record; fewer than two classes; a label that is none of them. Labels are
            never shown.
    """
    if y is None:
        raise InvalidInput("y: expected labels; this estimator requires y to be passed, but the target y is None")
    labels = column_or_1d(y, warn=True)
    if labels.shape != (len(inputs),):
        raise InvalidInput(f"y: expected one label for each of {len(inputs)} records, got shape={labels.shape}")
    if labels.dtype.kind == "f" and not bool(np.isfinite(labels).all()):
        raise InvalidInput("y: contains NaN or infinity")
    check_classification_targets(labels)
    known = unique_labels(labels) if classes is None else np.array(sorted(set(classes)))
    if len(known) < 2:
        raise InvalidInput(f"classes: expected at least two, got {len(known)} class")
    codes = np.searchsorted(known, labels)
    if not bool((known[np.minimum(codes, len(known) - 1)] == labels).all()):
        raise InvalidInput("y: expected labels from classes only; values are not shown")
    if keys is not None and len(keys) != len(inputs):
        raise InvalidInput(f"keys: expected one per record, got {len(keys)} for {len(inputs)} records")
    return known, codes.astype(np.int64)


def protected(data_set: str | None, keys: Sequence[Any] | None) -> AddRemove:
    """What a plan for one fit protects: a person's records where ``keys`` say whose they are, one record otherwise.

    Raises:
        InvalidParameter: no such name for a data set.
    """
    return AddRemove(1, Unit.RECORD if keys is None else Unit.PERSON, data_set_name(data_set))


def feature_map_of(choice: str | FeatureMap | nn.Module, shape: tuple[int, ...]) -> FeatureMap:
    """The feature map that a front door was asked for, for inputs of ``shape``.

    Raises:
        UnknownName: a name that is not in ``FEATURE_MAPS``.
        InvalidParameter: neither name, feature map nor torch module, or "hog" for inputs that are no pictures.
    """
    if isinstance(choice, FeatureMap):
        return choice
    if isinstance(choice, nn.Module):
        return ModuleFeatures(choice, shape, Origin.PUBLIC)
    if not isinstance(choice, str):
        raise InvalidParameter(f"feature_map: expected a name, a feature map or a torch module, got {type(choice).__name__}")
    if choice not in FEATURE_MAPS:
        raise UnknownName(f"feature_map={choice!r}: expected one of {', '.join(FEATURE_MAPS)}, a FeatureMap or a torch module")
    if choice == "identity":
        return IdentityFeatures()
    planes = picture_shape(shape)
    return HogFeatures(image_shape=planes, cell=min(_HOG_CELL, min(planes[1:]) // 2), orientations=9, upright=choice != "hog")


def picture_shape(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Channels, height and width of inputs of ``shape``.

    Raises:
        InvalidParameter: the inputs are not pictures.
    """
    if len(shape) == 2:
        return (1, *shape)
    if len(shape) == 3:
        return shape
    raise InvalidParameter(f"feature_map='hog': expected pictures of shape (n, height, width), got inputs of shape {shape}")


def input_rows(X: npt.ArrayLike) -> tuple[Array, tuple[int, ...]]:
    """Inputs as rows, and the shape of one.

    Raises:
        InvalidInput: not numbers, empty, NaN or infinity, or a single axis.
    """
    if issparse(X):
        raise InvalidInput("X: sparse input is not supported; expected an array")
    values = finite_array(X, name="X", allow_empty=True)
    if values.ndim < 2:
        raise InvalidInput(
            f"X: expected 2D array, got {values.ndim}D array instead with shape={values.shape}. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one query"
        )
    if values.shape[0] == 0:
        raise InvalidInput(f"X: found array with 0 sample(s) (shape={values.shape}) while a minimum of 1 is required.")
    if values.size == 0:
        raise InvalidInput(f"X: found array with 0 feature(s) (shape={values.shape}) while a minimum of 1 is required.")
    return values.reshape(len(values), -1), values.shape[1:]
