"""Feature maps for neighbour search: from a picture to a vector, one picture at a time, and where the map comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import torch
from scipy.ndimage import affine_transform
from torch import nn

from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter
from reticent.training.hog import oriented_gradients
from reticent.training.students import Student

Array = npt.NDArray[np.float64]


class Origin(StrEnum):
    """What a feature map was made from; only these may be used on private records."""

    FIXED = "fixed in advance, learned from nothing"
    PUBLIC = "learned from public data alone"
    RELEASED = "learned from public data and released labels"


class FeatureMap(ABC):
    """A map from inputs to vectors that the private records had no say in.

    **Guarantee.** None of its own. Private-kNN needs that a record's features depend on that record and on public things only.
    So a map handles *one row at a time*: matrix products of a whole batch may round a row differently in another batch, and then
    one record's presence would move the features of others. And it must not have been fitted on the private records; ``origin``
    says what it was made from, and goes into the card.

    Attributes:
        name: for cards and receipts.
        origin: what it was made from.
    """

    name: str
    origin: Origin

    @abstractmethod
    def features(self, inputs: npt.ArrayLike) -> Array:
        """Features, shape (n, d), float64, of inputs of shape (n, p).

        Raises:
            InvalidInput: inputs that the map is not made for, NaN or infinity. Values are never shown.
        """


@dataclass(frozen=True)
class IdentityFeatures(FeatureMap):
    """The inputs themselves.

    Example:
        >>> IdentityFeatures().features([[1, 2]]).tolist()
        [[1.0, 2.0]]
    """

    name = "inputs"
    origin = Origin.FIXED

    def features(self, inputs: npt.ArrayLike) -> Array:
        """See ``FeatureMap.features``."""
        return finite_array(inputs, name="inputs", ndim=2)


@dataclass(frozen=True, kw_only=True)
class HogFeatures(FeatureMap):
    """Histograms of oriented gradients of each plane of a picture.

    Attributes:
        image_shape: channels, height, width.
        cell: pixels a side of the squares that a histogram counts over; at most half of height and width.
        orientations: bins of a histogram.
        upright: whether each plane is first sheared until its principal axis is vertical, and centred; helps with handwriting.

    Reference: Dalal and Triggs 2005, see ``oriented_gradients``.

    Example:
        >>> HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=False).features(np.eye(8).reshape(1, 64)).shape
        (1, 36)
    """

    image_shape: tuple[int, int, int]
    cell: int
    orientations: int
    upright: bool

    name = "histograms of oriented gradients"
    origin = Origin.FIXED

    def __post_init__(self) -> None:
        count(self.orientations, name="orientations")
        if len(self.image_shape) != 3 or 2 * count(self.cell, name="cell") > min(self.image_shape[1:]):
            raise InvalidParameter(f"cell={self.cell}: expected at most half of a side of image_shape={self.image_shape}")

    def features(self, inputs: npt.ArrayLike) -> Array:
        """See ``FeatureMap.features``."""
        rows = finite_array(inputs, name="inputs", ndim=2, columns=int(np.prod(self.image_shape)))
        planes = rows.reshape(-1, *self.image_shape[1:])
        if self.upright:
            planes = np.stack([upright(plane) for plane in planes])
        # All planes at once: each comes out as if it were alone.
        return oriented_gradients(planes, orientations=self.orientations, cell=self.cell).reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class ReducedFeatures(FeatureMap):
    """Another map's features along the principal directions of public ones; made by ``ReducedFeatures.of``.

    Attributes:
        base: the other map.
        center: shape (d,), mean of the public features.
        directions: shape (m, d), orthonormal rows.
    """

    base: FeatureMap
    center: Array
    directions: Array

    @property
    def name(self) -> str:  # type: ignore[override]
        """For cards and receipts."""
        return f"{len(self.directions)} principal components of {self.base.name}"

    @property
    def origin(self) -> Origin:  # type: ignore[override]
        """What it was made from."""
        return Origin.PUBLIC if self.base.origin is Origin.FIXED else self.base.origin

    @classmethod
    def of(cls, base: FeatureMap, public_inputs: npt.ArrayLike, *, dimension: int) -> ReducedFeatures:
        """The map for the ``dimension`` directions in which the features of public inputs vary most.

        Args:
            base: the other map.
            public_inputs: shape (n, p); never private records.
            dimension: at least 1; at most as many as there are inputs and features are used.

        Example:
            >>> ReducedFeatures.of(IdentityFeatures(), [[0, 0], [2, 0]], dimension=1).features([[3, 7]]).round(6).tolist()
            [[2.0]]
        """
        features = base.features(public_inputs)
        center = features.mean(axis=0)
        _, _, directions = np.linalg.svd(features - center, full_matrices=False)
        directions = directions[: count(dimension, name="dimension")]
        # The sign of a direction is arbitrary; the largest entry is made positive, so that equal inputs give equal maps.
        largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
        return cls(base, center, directions * np.where(largest < 0, -1.0, 1.0))

    def features(self, inputs: npt.ArrayLike) -> Array:
        """See ``FeatureMap.features``."""
        return np.stack([self.directions @ (row - self.center) for row in self.base.features(inputs)])


@dataclass(frozen=True, eq=False)
class ModuleFeatures(FeatureMap):
    """Outputs of a torch module, in evaluation mode, one row at a time.

    Attributes:
        module: from (1, *input_shape) to (1, ...).
        input_shape: shape of one input of the module.
        origin: what its weights were made from. The caller answers for this; a module that saw the private records voids every
            guarantee.

    Example:
        >>> ModuleFeatures(nn.Linear(3, 2), (3,), Origin.PUBLIC).features(np.zeros((4, 3))).shape
        (4, 2)
    """

    module: nn.Module
    input_shape: tuple[int, ...]
    origin: Origin

    name = "torch module"

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", Origin(self.origin))
        if not isinstance(self.module, nn.Module):
            raise InvalidInput(f"module: expected a torch module, got {type(self.module).__name__}")

    def features(self, inputs: npt.ArrayLike) -> Array:
        """See ``FeatureMap.features``."""
        values = finite_array(inputs, name="inputs", ndim=2, columns=int(np.prod(self.input_shape)))
        rows = torch.from_numpy(values.astype(np.float32)).reshape(len(values), 1, *self.input_shape)
        return _one_by_one(self.module.eval(), rows)


@dataclass(frozen=True, eq=False)
class StudentFeatures(FeatureMap):
    """The last hidden layer of a student, scaled to unit length.

    Attributes:
        student: trained on released labels only.
    """

    student: Student

    name = "last hidden layer of the previous student"
    origin = Origin.RELEASED

    def features(self, inputs: npt.ArrayLike) -> Array:
        """See ``FeatureMap.features``."""
        size = int(np.prod(self.student.image_shape))
        values = finite_array(inputs, name="inputs", ndim=2, columns=size)
        rows = torch.from_numpy(values.astype(np.float32)).reshape(len(values), 1, size)
        hidden = _one_by_one(self.student.features.eval(), rows.reshape(len(values), 1, *self.student.image_shape))
        # Each row sums alone, so that its length does not depend on how many rows there are.
        lengths = np.array([np.sqrt(row @ row) for row in hidden])
        return np.asarray(hidden / np.maximum(lengths, 1e-12)[:, None])


def upright(plane: Array) -> Array:
    """One plane of a picture, sheared along its rows until rows and columns of its mass are uncorrelated, and centred.

    Edge cases: a plane without mass, or with all of it in one row, is returned as it is.
    """
    rows, columns = np.mgrid[: plane.shape[0], : plane.shape[1]]
    mass = plane.sum()
    if mass <= 0:
        return plane
    center = np.array([(rows * plane).sum(), (columns * plane).sum()]) / mass
    away = rows - center[0]
    spread = (away * away * plane).sum()
    if spread <= 1e-9 * mass:
        return plane
    shear = np.array([[1.0, 0.0], [(away * (columns - center[1]) * plane).sum() / spread, 1.0]])
    middle = (np.array(plane.shape) - 1) / 2
    return np.asarray(affine_transform(plane, shear, offset=center - shear @ middle, order=1))


def _one_by_one(module: nn.Module, rows: torch.Tensor) -> Array:
    """Outputs of ``module`` for every (1, ...) row by itself, flattened, shape (n, d)."""
    with torch.inference_mode():
        outputs = [module(row).reshape(-1).numpy().astype(np.float64) for row in rows]
    return np.stack(outputs)
