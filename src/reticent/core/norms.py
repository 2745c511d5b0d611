"""The three norms that guarantees are stated in, their duals, and exact operator norms."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from reticent.core.checks import one_of
from reticent.core.errors import UnsupportedNorm

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from reticent.core.arrays import Array

MAX_SIGN_BITS = 20
"""Sign enumerations longer than this many bits are refused rather than started."""


class Norm(StrEnum):
    """l1, l2 or l-infinity."""

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"

    @classmethod
    def parse(cls, name: str | Norm) -> Norm:
        """Return the norm called ``name``.

        Raises:
            UnknownName: ``name`` is not one of ``l1``, ``l2``, ``linf``.

        Example:
            >>> Norm.parse("linf")
            <Norm.LINF: 'linf'>
        """
        return cls(one_of(name, [norm.value for norm in cls], name="norm"))

    @property
    def dual(self) -> Norm:
        """The norm that bounds inner products against this one (Hölder)."""
        return {Norm.L1: Norm.LINF, Norm.L2: Norm.L2, Norm.LINF: Norm.L1}[self]

    def of(self, values: npt.ArrayLike, axis: int = -1) -> Array:
        """Return the norm of ``values`` along ``axis``, which the shape loses.

        Example:
            >>> Norm.L1.of([[3.0, -4.0]]).tolist()
            [7.0]
        """
        # imported here and below, because the command line knows norms by name and starts without
        # numpy
        import numpy as np

        array = np.abs(np.asarray(values, dtype=np.float64))
        if self is Norm.L1:
            return np.asarray(array.sum(axis=axis))
        if self is Norm.L2:
            return np.asarray(np.sqrt(np.square(array).sum(axis=axis)))
        return np.asarray(array.max(axis=axis, initial=0.0))

    def between(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Array:
        """Return the distances between the rows of two arrays of shapes (n, d) and (k, d), shape
        (n, k).

        Each comes from the differences of its own two rows, so equal rows are at 0 exactly, and
        near rows keep their distance. Expanding the square into a matrix product would not.

        Example:
            >>> Norm.LINF.between([[0.0, 0.0]], [[1.0, -2.0], [3.0, 0.0]]).tolist()
            [[2.0, 3.0]]
        """
        import numpy as np
        from scipy.spatial.distance import cdist

        if self is Norm.L1:
            return cdist(np.asarray(first), np.asarray(second), "cityblock")
        if self is Norm.L2:
            return cdist(np.asarray(first), np.asarray(second), "euclidean")
        return cdist(np.asarray(first), np.asarray(second), "chebyshev")

    def of_ones(self, dimension: int) -> float:
        """Return the norm of the all-ones vector of ``dimension`` entries: 1 per entry in l1, 1 in
        l-infinity.
        """
        return {Norm.L1: float(dimension), Norm.L2: math.sqrt(dimension), Norm.LINF: 1.0}[self]


def sign_patterns(bits: int, *, up_to_sign: bool = False) -> Array:
    """Return all vectors of -1 and 1 of length ``bits``, shape (2**bits, bits).

    Args:
        bits: length of a pattern, 1 to 20.
        up_to_sign: whether only one of each pair {s, -s} is kept (with first entry +1), which
            halves the rows.

    Raises:
        UnsupportedNorm: ``bits`` is above ``MAX_SIGN_BITS``.

    Example:
        >>> sign_patterns(2, up_to_sign=True).tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    import numpy as np

    if not 1 <= bits <= MAX_SIGN_BITS:
        raise UnsupportedNorm(
            f"sign enumeration over {bits} coordinates: expected 1 to {MAX_SIGN_BITS}"
        )
    free = bits - 1 if up_to_sign else bits
    codes = np.arange(2**free, dtype=np.int64)
    signs = 1.0 - 2.0 * ((codes[:, None] >> np.arange(free)[::-1]) & 1)
    if up_to_sign:
        signs = np.concatenate([np.ones((len(signs), 1)), signs], axis=1)
    return np.asarray(signs, dtype=np.float64)


def unit_moves(
    dimension: int, norm: Norm, *, directions: int, random: np.random.Generator
) -> Array:
    """Return vectors of ``norm`` 1 for the search of the worst neighbour, shape (2 dimension + 2
    directions, dimension).

    They are all axes both ways, corners of a cube, and random directions.

    Args:
        dimension: number of coordinates of a vector.
        norm: the norm in which they have length 1.
        directions: number of corners, and of random directions, at least 0.
        random: generator of the corners and random directions.

    Example:
        >>> import numpy as np
        >>> moves = unit_moves(2, Norm.L1, directions=1, random=np.random.default_rng(0))
        >>> moves.shape, Norm.L1.of(moves).round(9).tolist()
        ((6, 2), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    """
    import numpy as np

    axes = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    corners = random.choice([-1.0, 1.0], (directions, dimension))
    moves = np.concatenate([axes, corners, random.normal(size=(directions, dimension))])
    return np.asarray(moves / norm.of(moves)[:, None])


def operator_norm(matrix: npt.ArrayLike, input_norm: Norm, output_norm: Norm) -> float:
    """Return the exact operator norm of ``matrix``: the largest ``output_norm`` of M x over
    ``input_norm`` of x at most 1.

    Args:
        matrix: shape (m, n).
        input_norm: norm of the n inputs.
        output_norm: norm of the m outputs.

    Returns:
        The norm, up to floating-point rounding.

    Raises:
        UnsupportedNorm: the pair needs a sign enumeration over more than ``MAX_SIGN_BITS``
            coordinates.

    Example:
        >>> operator_norm([[1.0, 2.0], [0.0, 1.0]], Norm.LINF, Norm.L1)
        4.0
    """
    import numpy as np

    array = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if input_norm is Norm.L1:
        return float(output_norm.of(array, axis=0).max(initial=0.0))
    if output_norm is Norm.LINF:
        return float(input_norm.dual.of(array, axis=1).max(initial=0.0))
    if input_norm is Norm.L2 and output_norm is Norm.L2:
        return float(np.linalg.norm(array, 2))
    by_inputs = input_norm is Norm.LINF and (
        array.shape[1] <= array.shape[0] or output_norm is Norm.L2
    )
    factor, measure = (array.T, output_norm) if by_inputs else (array, input_norm.dual)
    signs = sign_patterns(len(factor), up_to_sign=True)
    # In parts: 2**19 patterns times a wide layer would not fit in memory.
    at_once = max(1, 2**22 // factor.shape[1])
    parts = (signs[start : start + at_once] @ factor for start in range(0, len(signs), at_once))
    return max(float(measure.of(part, axis=1).max()) for part in parts)
