"""Feature maps for neighbour search, each from a picture to a vector, one picture at a time.

Each map states its origin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from reticent.core.arrays import Array
from reticent.core.checks import count, finite_array
from reticent.core.errors import InvalidInput, InvalidParameter, UnknownName
from reticent.core.extras import is_torch_module, require
from reticent.core.rows import each_row, finite_or_zero, in_blocks
from reticent.training.hog import oriented_gradients

if TYPE_CHECKING:
    from torch import nn


_PLANES_AT_ONCE = 8
"""Rows whose planes are worked on together: a public number, whatever is asked."""

LARGEST_INPUT = 2.0**100
"""Larger inputs count as this one, either side of 0: float32 holds it, and double precision its
cube.
"""

_FARTHEST = 1e6  # pixels


class Origin(StrEnum):
    """The data that a feature map was made from. Only these origins may be used on private
    records.
    """

    FIXED = "fixed in advance, learned from nothing"
    PUBLIC = "learned from public data alone"
    RELEASED = "learned from public data and released labels"


@dataclass(frozen=True, eq=False)
class FeatureBall:
    """A public ball that holds the features, and so decides how fine a grid they need.

    Attributes:
        center: shape (d,).
        radius: above 0.
    """

    center: Array
    radius: float


class FeatureMap(ABC):
    """A map from inputs to vectors that the private records had no say in.

    **Guarantee.** None of its own. Private-kNN needs that a record's features depend on that record
    and on public things only. So a map handles *one row at a time*. Matrix products of a whole
    batch may round a row differently in another batch, and then one record's presence would move
    the features of others. The map must not have been fitted on the private records. ``origin``
    states what it was made from, and goes into the card.

    It is *total*: every finite row has finite features. Values beyond 2^100 count as that. A row
    for which the map computes something that is not finite has the features 0. A map that refused
    one record would tell that the record is there.

    A map of your own has ``name``, ``origin`` and ``row``. It has ``columns`` and ``ball`` where it
    knows them.

    Attributes:
        name: the name on cards and receipts.
        origin: the data that it was made from.
    """

    name: str
    origin: Origin

    @property
    def columns(self) -> int | None:
        """The number of values in one input row, or None where the map takes any number."""
        return None

    @property
    def ball(self) -> FeatureBall | None:
        """The ball that features lie in, from public things alone, or None where the map cannot
        say.
        """
        return None

    @abstractmethod
    def row(self, row: Array) -> Array:
        """Return features, shape (1, d), float64, of one row of shape (1, p) of finite numbers up
        to 2^100 in magnitude.
        """

    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, shape (n, d), float64, finite, of inputs of shape (n, p).

        Raises:
            InvalidInput: the map is not made for such inputs, or they hold NaN or infinity. Values
                are never shown.
        """
        rows = finite_array(inputs, name="inputs", ndim=2, columns=self.columns, allow_empty=True)
        with np.errstate(all="ignore"):
            return finite_or_zero(each_row(self.row, np.clip(rows, -LARGEST_INPUT, LARGEST_INPUT)))


@dataclass(frozen=True)
class IdentityFeatures(FeatureMap):
    """The inputs themselves.

    Example:
        >>> IdentityFeatures().features([[1, 2]]).tolist()
        [[1.0, 2.0]]
    """

    name = "inputs"
    origin = Origin.FIXED

    @override
    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return the inputs, as ``FeatureMap.features`` does. Nothing is computed, and so nothing
        is cut.
        """
        return finite_array(inputs, name="inputs", ndim=2, allow_empty=True, copy=False)

    @override
    def row(self, row: Array) -> Array:
        """Return the row, as ``FeatureMap.row`` does."""
        return row


@dataclass(frozen=True, kw_only=True)
class HogFeatures(FeatureMap):
    """Histograms of oriented gradients of each plane of a picture.

    Attributes:
        image_shape: channels, height, width.
        cell: pixels a side of the squares that a histogram counts over, at most half of height and
            width.
        orientations: bins of a histogram.
        upright: True to shear each plane first until its principal axis is vertical, and to centre
            it. This helps with handwriting.

    Reference: Dalal and Triggs 2005 (``oriented_gradients``).

    Example:
        >>> HogFeatures(image_shape=(1, 8, 8), cell=4, orientations=9, upright=False).features(
        ...     np.eye(8).reshape(1, 64)
        ... ).shape
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
        if len(self.image_shape) != 3 or 2 * count(self.cell, name="cell") > min(
            self.image_shape[1:]
        ):
            raise InvalidParameter(
                f"cell={self.cell}: expected at most half of a side of "
                f"image_shape={self.image_shape}"
            )

    @property
    @override
    def columns(self) -> int:
        """The number of pixels of all planes."""
        return int(np.prod(self.image_shape))

    @property
    @override
    def ball(self) -> FeatureBall:
        """The ball of features, in which every block of 2 x 2 cells has a length of at most 1."""
        planes, height, width = self.image_shape
        blocks = planes * (height // self.cell - 1) * (width // self.cell - 1)
        return FeatureBall(np.zeros(4 * self.orientations * blocks), float(np.sqrt(blocks)))

    @override
    def features(self, inputs: npt.ArrayLike) -> Array:
        """Return features, as ``FeatureMap.features`` does.

        The planes of a few rows are computed at once, since each comes out as if it were alone.
        """
        rows = finite_array(inputs, name="inputs", ndim=2, columns=self.columns, allow_empty=True)
        with np.errstate(all="ignore"):
            clipped = np.clip(rows, -LARGEST_INPUT, LARGEST_INPUT)
            return finite_or_zero(in_blocks(self.row, clipped, block=_PLANES_AT_ONCE))

    @override
    def row(self, row: Array) -> Array:
        """Return the features of one row, as ``FeatureMap.row`` does."""
        planes = row.reshape(-1, *self.image_shape[1:])
        if self.upright and len(planes):
            planes = np.stack([upright(plane) for plane in planes])
        found = oriented_gradients(planes, orientations=self.orientations, cell=self.cell)
        # In numbers: numpy finds out no axis of an array without rows.
        return found.reshape(len(row), self.image_shape[0] * found.shape[1])


@dataclass(frozen=True, eq=False)
class ModuleFeatures(FeatureMap):
    """Outputs of a torch module, in evaluation mode, one row at a time.

    Attributes:
        module: the module, from (1, *input_shape) to (1, ...).
        input_shape: shape of one input of the module.
        origin: the data that its weights were made from. The caller answers for this. A module that
            saw the private records voids every guarantee.

    Example:
        >>> from torch import nn
        >>> ModuleFeatures(nn.Linear(3, 2), (3,), Origin.PUBLIC).features(np.zeros((4, 3))).shape
        (4, 2)
    """

    module: nn.Module
    input_shape: tuple[int, ...]
    origin: Origin

    name = "torch module"

    def __post_init__(self) -> None:
        if self.origin not in list(Origin):
            raise UnknownName(
                f"origin={self.origin!r}: expected one of "
                f"{', '.join(repr(origin.value) for origin in Origin)}"
            )
        object.__setattr__(self, "origin", Origin(self.origin))
        if not is_torch_module(self.module):
            raise InvalidInput(f"module: expected a torch module, got {type(self.module).__name__}")

    @property
    @override
    def columns(self) -> int:
        """The number of values of one input of the module."""
        return int(np.prod(self.input_shape))

    @override
    def row(self, row: Array) -> Array:
        """Return the features of one row, as ``FeatureMap.row`` does."""
        return _outputs(self.module.eval(), row, self.input_shape)


def upright(plane: Array) -> Array:
    """Return one plane of a picture, sheared along its rows until rows and columns of its mass are
    uncorrelated, and centred.

    Edge cases: a plane without mass, or with all of it in one row, is returned as it is. So is a
    plane with so little mass beside so much of the other sign that center and shear lie outside of
    every picture.
    """
    rows, columns = np.mgrid[: plane.shape[0], : plane.shape[1]]
    with np.errstate(all="ignore"):
        mass = plane.sum()
        if not mass > 0:
            return plane
        center = np.array([(rows * plane).sum(), (columns * plane).sum()]) / mass
        away = rows - center[0]
        spread = (away * away * plane).sum()
        if not spread > 1e-9 * mass:
            return plane
        shear = np.array([[1.0, 0.0], [(away * (columns - center[1]) * plane).sum() / spread, 1.0]])
        middle = (np.array(plane.shape) - 1) / 2
        offset = center - shear @ middle
        # Written so that NaN stays out as well: scipy looks up pixels at these places.
        if not bool((np.abs(offset) <= _FARTHEST).all() and np.abs(shear[1, 0]) <= _FARTHEST):
            return plane
    from scipy.ndimage import affine_transform

    return np.asarray(affine_transform(plane, shear, offset=offset, order=1))


def _outputs(module: nn.Module, row: Array, shape: tuple[int, ...]) -> Array:
    """Return outputs of ``module`` for a row of shape (1, p) as float32 of shape (1, *shape),
    flattened, shape (1, d).
    """
    torch = require("torch", extra="networks")
    with torch.inference_mode():
        # torch's own copy is aligned in memory, whatever the array was.
        values = torch.from_numpy(row).to(torch.float32, copy=True).reshape(1, *shape)
        try:
            return np.asarray(module(values).reshape(1, -1).numpy().astype(np.float64))
        except Exception as error:
            raise InvalidInput(
                f"inputs: {type(module).__name__} does not take inputs of shape "
                f"{tuple(values.shape)} ({type(error).__name__})"
            ) from error
